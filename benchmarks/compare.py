"""How often `legato compare` sees a difference that is not there, and finds one that is.

    python -m benchmarks.compare [--comparisons 100] [--live 0]

Each scenario simulates recordings of 200 streams of 100 tokens. A/A: both sides come from one
process; a difference on the primary figure (itl.p50) is a false alarm, of which 5 in 100 are
expected. A/B: side B's gaps are 5 % longer. Nothing is timed there. `--live N` adds N of each kind
by `legato compare --live` against two metronomes with drawn gaps, 5 rounds each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from legato.compare.comparison import Comparison, Side, compare
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.recording import CONTENT, HAS_CHOICES, Recording, Stream

STREAMS, TOKENS, SLOTS = 200, 100, 20
SLOWER = 1.05
LIVE_GAP_MS = 8.0
NS_PER_MS = 1_000_000
EPOCH_NS = 1_700_000_000_000_000_000

MOST_FALSE_ALARMS = 0.10
LEAST_FOUND = 0.95

Generator = np.random.Generator


@dataclass(frozen=True, slots=True)
class Scenario:
    """A process that makes recordings, and how many a side are compared."""

    name: str
    runs: int = 1
    streams: int = STREAMS
    stream_sigma: float = 0.0  # spread of the streams' own pace, lognormal
    run_sigma: float = 0.0  # spread of whole runs' pace: other hours, other neighbours
    stalls_per_s: float = 0.0  # stalls of 200–500 ms that hit every open stream at once
    must_hold: bool = True


SCENARIOS = (
    Scenario("independent gaps"),
    Scenario("streams of different speed", stream_sigma=0.1),
    Scenario("stalls shared by open streams", stalls_per_s=2),
    Scenario("different speed, shared stalls", stream_sigma=0.1, stalls_per_s=2),
    Scenario("runs differ by 1.5 %, 5 a side", runs=5, streams=60, run_sigma=0.015),
    Scenario("runs differ by 1.5 %, 1 a side", run_sigma=0.015, must_hold=False),
)


def simulate(scenario: Scenario, rng: Generator, slowness: float = 1.0) -> Recording:
    """A closed loop of `SLOTS` streams, one after another in each slot.

    Streams advance on a clock that stands still during a stall, which so lengthens the gap each
    open stream is in. `slowness` stretches gaps and not stalls.
    """
    rounds = scenario.streams // SLOTS
    shape = (SLOTS, rounds, TOKENS)
    pace = slowness * rng.lognormal(0, scenario.run_sigma)
    own = rng.lognormal(0, scenario.stream_sigma, (*shape[:2], 1))
    gap_ms = (10 * pace * own * rng.lognormal(0, 0.3, shape)).reshape(SLOTS, -1)
    moving_ms = np.cumsum(gap_ms, axis=1)
    length_ms = float(moving_ms.max())
    stalls = rng.poisson(scenario.stalls_per_s * length_ms / 1000)
    stall_at_ms = np.sort(rng.uniform(0, length_ms, stalls))
    stood_ms = np.concatenate([[0.0], np.cumsum(rng.uniform(200, 500, stalls))])
    at_ms = moving_ms + stood_ms[np.searchsorted(stall_at_ms, moving_ms)]
    at_ns = (at_ms * NS_PER_MS).astype(np.int64).reshape(shape)
    begun_ns = np.zeros(shape[:2], np.int64)
    begun_ns[:, 1:] = at_ns[:, :-1, -1]
    settings = {"mode": "closed", "concurrency": SLOTS, "api": "chat"}
    return Recording.from_streams(
        [
            _stream(slot * rounds + turn, int(begun_ns[slot, turn]), at_ns[slot, turn])
            for slot in range(SLOTS)
            for turn in range(rounds)
        ],
        {"settings": settings},
    )


def _stream(number: int, begun_ns: int, at_ns: np.ndarray) -> Stream:
    n = len(at_ns)
    return Stream(
        stream_id=number,
        scheduled_ns=EPOCH_NS + begun_ns,
        sent_ns=EPOCH_NS + begun_ns,
        ended_ns=EPOCH_NS + int(at_ns[-1]),
        status="ok",
        arrival_ns=at_ns - begun_ns,
        lag_ns=np.full(n, 5_000),
        early_ns=np.zeros(n, np.int64),
        read_index=np.arange(n),
        segments=np.ones(n, np.int64),
        tokens=np.ones(n, np.int64),
        kind=np.full(n, CONTENT),
        flags=np.full(n, HAS_CHOICES),
    )


def compared(scenario: Scenario, rng: Generator, slowness: float) -> Comparison:
    """One comparison of fresh recordings, the second side slower by `slowness`."""
    sides = []
    for letter, slow in (("A", 1.0), ("B", slowness)):
        runs = tuple(simulate(scenario, rng, slow) for _ in range(scenario.runs))
        sides.append(Side(letter, tuple(map(str, range(scenario.runs))), runs))
    return compare(sides[0], sides[1:])[0]


def different(comparison: Comparison) -> bool:
    primary = comparison.primary
    return primary is not None and primary.shown


def covers(comparison: Comparison, slowness: float) -> bool:
    """Whether the interval of the primary figure's ratio holds the truth (stalls are too rare to
    move a median by anything that counts here)."""
    ratio = comparison.primary.ratio if comparison.primary else None
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    return ratio.low <= slowness <= ratio.high


def live(slowness: float, seed: int) -> str:
    """The sentence of one `legato compare --live`; its verdict first."""
    slow = Pattern(gap_ms=LIVE_GAP_MS * slowness, draw="lognormal", seed=2 * seed)
    plain = Pattern(gap_ms=LIVE_GAP_MS, draw="lognormal", seed=2 * seed + 1)
    with running(plain) as a, running(slow) as b, tempfile.TemporaryDirectory() as name:
        load = ["--concurrency", "8", "--requests", "40", "--output-tokens", "50"]
        kept = ["--out", str(Path(name) / "runs"), "--force", "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "legato.cli", "compare", "--live", a.url, b.url, *load, *kept],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        return f"failed: {done.stderr.splitlines()[-1]}"
    (found,) = json.loads(done.stdout)["comparisons"]
    return f"{found['verdict']}: {found['sentence']}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--comparisons", type=int, default=100, help="of each kind, a scenario")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--live", type=int, default=0, help="live comparisons of each kind")
    options = parser.parse_args(arguments)
    n = options.comparisons
    print(f"{n} A/A and {n} A/B comparisons a scenario; primary figure itl.p50 at 95 %")
    print(
        f"{'':32}  {'A/A declared':>12}  {'A/A, others':>12}  {'5 % slower':>10}  {'interval':>8}"
    )
    print(f"{'scenario':32}  {'different':>12}  {'(Holm)':>12}  {'found':>10}  {'holds':>8}")
    good = True
    for scenario in SCENARIOS:
        rng = np.random.default_rng(options.seed)
        same = [compared(scenario, rng, 1.0) for _ in range(n)]
        slower = [compared(scenario, rng, SLOWER) for _ in range(n)]
        alarms = sum(map(different, same))
        # A second look at many figures: at least one declared different, the primary aside.
        others = sum(any(c.shown for c in one.changes if c is not one.primary) for one in same)
        found = sum(map(different, slower))
        held = sum(covers(one, 1.0) for one in same) + sum(covers(one, SLOWER) for one in slower)
        print(
            f"{scenario.name:32}  {alarms:>12}  {others:>12}  {found:>10}"
            f"  {100 * held / (2 * n):>6.1f} %",
            flush=True,
        )
        if scenario.must_hold:
            good &= alarms <= MOST_FALSE_ALARMS * n and found >= LEAST_FOUND * n
    print("the last one is why one run a side prints that between-run variance is unknown")
    for number in range(options.live):
        print(f"live A/A        {live(1.0, number)}", flush=True)
        print(f"live 5 % slower {live(SLOWER, number)}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
