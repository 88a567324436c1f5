"""`legato explain` against causes of known size: simulated runs, then live ones.

    python -m benchmarks.explain [--simulated N] [--live]

Simulated: N runs a pattern of the tests' server, which has no sockets and no error; printed are
the share of 95 % intervals that hold the true cost, and the bias. Live: `legato bench` records
the metronome, and the cost found is set beside the pattern's; how late the metronome's own log
says it was tells how much scatter the machine added.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from legato.explain.attribution import attribute
from legato.explain.part import Part
from legato.metronome import truth as truths
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.recording import Recording, concatenate
from legato.wire.folder import load

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "explain"))
from paced import closed_loop, open_loop

US = 1e3
MS = 1e6
PROMPTS = (10, 50, 200)
LIVE_REQUESTS = 40
LIVE_RATE = 10.0

MIXED = Pattern(
    tokens=60, per_position_us=40, per_context_us=10, per_stream_us=200, interference_ms=8
)
MIXED_COSTS = {"position": 40 * US, "context": 10 * US, "in_flight": 200 * US, "starts": 8 * MS}
NO_COSTS = dict.fromkeys(MIXED_COSTS, 0.0)


@dataclass(frozen=True, slots=True)
class Known:
    """A pattern and what it adds: cause -> ns for one unit of it."""

    pattern: Pattern
    costs_ns: dict[str, float]
    closed: bool = False


KNOWN = {
    "nothing but scatter": Known(Pattern(tokens=60, draw="lognormal", spread=0.4), NO_COSTS),
    "position": Known(Pattern(tokens=60, per_position_us=80), {**NO_COSTS, "position": 80 * US}),
    "context": Known(Pattern(tokens=60, per_context_us=20), {**NO_COSTS, "context": 20 * US}),
    "load": Known(Pattern(tokens=60, per_stream_us=300), {**NO_COSTS, "in_flight": 300 * US}),
    "starts": Known(Pattern(tokens=60, interference_ms=20), {**NO_COSTS, "starts": 20 * MS}),
    "all, scatter": Known(replace(MIXED, draw="lognormal"), MIXED_COSTS),
    "all, three events a write": Known(
        replace(MIXED, draw="lognormal", events_per_write=3), MIXED_COSTS
    ),
    "all, shared stalls": Known(
        replace(
            MIXED, draw="gamma", spread=0.3, stall_ms=300, stall_chance=0.001, stall_scope="all"
        ),
        MIXED_COSTS,
    ),
    "fixed load, starts": Known(
        Pattern(tokens=60, per_position_us=40, interference_ms=8, draw="lognormal", spread=0.3),
        {"position": 40 * US, "starts": 8 * MS},
        closed=True,
    ),
}


def parts(recording: Recording) -> dict[str, Part]:
    found = attribute(recording)
    return {} if found is None else {part.cause: part for part in found.parts}


def simulate(name: str, known: Known, runs: int) -> None:
    """Print a line a cause: coverage, bias and the usual half-width."""
    inside: dict[str, list[bool]] = {cause: [] for cause in known.costs_ns}
    off_ns: dict[str, list[float]] = {cause: [] for cause in known.costs_ns}
    half_ns: dict[str, list[float]] = {cause: [] for cause in known.costs_ns}
    for seed in range(runs):
        pattern = replace(known.pattern, seed=seed)
        run = (
            closed_loop(pattern, slots=8, requests=100, prompts=PROMPTS, seed=seed)
            if known.closed
            else open_loop(pattern, rate=LIVE_RATE, requests=100, prompts=PROMPTS, seed=seed)
        )
        found = parts(run)
        for cause, cost_ns in known.costs_ns.items():
            effect_ns, reach_ns = _effect(found[cause])
            off_ns[cause].append(effect_ns - cost_ns)
            half_ns[cause].append(reach_ns)
            # Without scatter an interval has no width: a thousandth of a µs is the rounding.
            inside[cause].append(abs(effect_ns - cost_ns) <= reach_ns + 1.0)
    for cause, cost_ns in known.costs_ns.items():
        print(
            f"{name:26} {cause:10} {_us(cost_ns)} {np.mean(inside[cause]):6.0%}"
            f" {_us(float(np.mean(off_ns[cause])))} {_us(float(np.mean(half_ns[cause])))}",
            flush=True,
        )


def live(name: str, known: Known, folder: Path) -> None:
    """Record the metronome at three prompt lengths and set the costs side by side."""
    recordings, late_ns = [], []
    for prompt_tokens in PROMPTS:
        out, log = folder / f"{prompt_tokens}.parquet", folder / f"{prompt_tokens}.truth"
        with running(known.pattern, truth=log) as metronome:
            _bench(metronome.url, prompt_tokens, known, out)
        recordings.append(load(out))
        late_ns.append(truths.load(log).lateness_ns)
    found = parts(concatenate(recordings))
    late_p99_ns = float(np.quantile(np.concatenate(late_ns), 0.99))
    for cause, cost_ns in known.costs_ns.items():
        if found[cause].mean_ns is None:
            print(f"{name:26} {cause:10} {_us(cost_ns)} could not be told", flush=True)
            continue
        effect_ns, reach_ns = _effect(found[cause])
        held = "holds it" if abs(effect_ns - cost_ns) <= reach_ns else "misses it"
        print(
            f"{name:26} {cause:10} {_us(cost_ns)} {_us(effect_ns)} ±{_us(reach_ns)} {held:9}"
            f" {_us(late_p99_ns)}",
            flush=True,
        )


def _bench(url: str, prompt_tokens: int, known: Known, out: Path) -> None:
    how = ("--concurrency", "8") if known.closed else ("--rate", str(LIVE_RATE))
    command = [
        *(sys.executable, "-m", "legato.cli", "bench", url, "--json", *how),
        *("--requests", str(LIVE_REQUESTS), "--prompt-tokens", str(prompt_tokens)),
        *("--output-tokens", str(known.pattern.tokens), "--out", str(out)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # 3 is a run that was invalid as a measurement, on a busy machine; the table shows how far.
    if done.returncode not in (0, 3):
        sys.exit(f"legato bench ended with {done.returncode}: {done.stderr.strip()[-300:]}")


def _effect(part: Part) -> tuple[float, float]:
    assert part.effect_ns is not None
    assert part.units is not None
    return part.effect_ns, abs((part.half_width_ns or 0.0) / part.units)


def _us(value_ns: float) -> str:
    return f"{value_ns / US:10,.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", type=int, default=100, metavar="N")
    parser.add_argument("--live", action="store_true")
    asked = parser.parse_args()
    steps: list[tuple[str, Callable[[str, Known], None]]] = []
    if asked.simulated:
        head = f"simulated, {asked.simulated} runs: true µs a unit, intervals that hold it, bias, ±"
        steps.append((head, lambda name, known: simulate(name, known, asked.simulated)))
    if asked.live:
        head = "live: true µs a unit, found, its interval, and the metronome's p99 lateness, µs"
        steps.append((head, _live_in_a_folder))
    for head, step in steps:
        print(head)
        for name, known in KNOWN.items():
            step(name, known)


def _live_in_a_folder(name: str, known: Known) -> None:
    with tempfile.TemporaryDirectory(prefix="legato-") as folder:
        live(name, known, Path(folder))


if __name__ == "__main__":
    main()
