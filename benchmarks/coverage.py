"""How often the 95 % intervals of gap quantiles contain the truth, on runs whose truth is known.

Each scenario simulates many runs of a load test and asks the shipped method for its intervals.
Beside it stands what resampling streams alone would have covered. Nothing is timed here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from legato.metrics import intervals
from legato.metrics.gaps import Floats
from legato.metrics.samples import Samples, per_stream, quantile, sort, supported
from legato.metrics.windows import windows_ns

SHARES = (0.5, 0.9, 0.99)
NS_PER_MS = 1_000_000
LOW_PERCENT, HIGH_PERCENT = 92.0, 98.0

Generator = np.random.Generator


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load test of `slots` streams open together, `rounds` one after another in each slot."""

    name: str
    slots: int
    rounds: int
    tokens: int
    speed_sigma: float = 0.0  # spread of the streams' own pace, lognormal
    stalls_per_s: float = 0.0  # stalls of 200–500 ms that hit every open stream at once
    whole: bool = False  # the figure is how long a stream took, one value a stream


SCENARIOS = (
    Scenario("independent gaps", 50, 10, 200),
    Scenario("stalls shared by 50 streams", 50, 10, 200, stalls_per_s=2),
    Scenario("stalls shared, short run", 50, 5, 200, stalls_per_s=2),
    Scenario("streams of different speed", 50, 4, 100, speed_sigma=0.2),
    Scenario("different speed, shared stalls", 50, 10, 200, speed_sigma=0.2, stalls_per_s=2),
    Scenario("independent gaps, 10 streams", 10, 1, 200),
    Scenario("one value a stream, 300 streams", 10, 30, 1),
    Scenario("E2E, stalls shared", 50, 20, 200, speed_sigma=0.1, stalls_per_s=0.5, whole=True),
)


def simulate(scenario: Scenario, rng: Generator) -> Samples:
    """One run as sorted samples.

    Streams advance on a clock that stands still during a stall: a stall lengthens the gap each
    open stream is in, and ends for all of them at the same moment.
    """
    shape = (scenario.slots, scenario.rounds, scenario.tokens)
    pace = rng.lognormal(0, scenario.speed_sigma, (*shape[:2], 1))
    gap_ms = (10 * rng.lognormal(0, 0.3, shape) * pace).reshape(scenario.slots, -1)
    moving_ms = np.cumsum(gap_ms, axis=1)
    length_ms = float(moving_ms.max())
    stalls = rng.poisson(scenario.stalls_per_s * length_ms / 1000)
    stall_at_ms = np.sort(rng.uniform(0, length_ms, stalls))
    stood_ms = np.concatenate([[0.0], np.cumsum(rng.uniform(200, 500, stalls))])
    at_ms = moving_ms + stood_ms[np.searchsorted(stall_at_ms, moving_ms)]
    if scenario.whole:
        return _whole_streams(at_ms.reshape(shape))
    gap_ms = np.diff(at_ms, axis=1, prepend=0.0)
    return sort(
        gap_ms.ravel() * NS_PER_MS,
        np.ones(gap_ms.size, np.int64),
        np.repeat(np.arange(scenario.slots * scenario.rounds), scenario.tokens),
        (at_ms.ravel() * NS_PER_MS).astype(np.int64),
    )


def _whole_streams(at_ms: Floats) -> Samples:
    """How long each stream took, placed in time as the summary places it."""
    ended_ms = at_ms[:, :, -1]
    sent_ms = np.concatenate([np.zeros((len(ended_ms), 1)), ended_ms[:, :-1]], axis=1)
    took_ns = ((ended_ms - sent_ms).ravel() * NS_PER_MS).astype(np.int64)
    sent_ns = (sent_ms.ravel() * NS_PER_MS).astype(np.int64)
    stream = np.arange(len(took_ns))
    return per_stream(took_ns.astype(np.float64), stream, windows_ns(sent_ns, took_ns))


def truth_ns(scenario: Scenario) -> Floats:
    """The quantiles of the process, from many more independent draws than a run has."""
    rng = np.random.default_rng(0)
    alone = replace(scenario, slots=1, rounds=4_000_000 // scenario.tokens)
    samples = simulate(alone, rng)
    return np.asarray([quantile(samples, p) for p in SHARES], dtype=np.float64)


def streams_alone(samples: Samples) -> Samples:
    """The same samples with their times replaced by their streams, so that a time block holds
    whole streams and what happens to all of them at once is not seen."""
    count = int(samples.stream.max()) + 1
    return replace(samples, at_ns=samples.stream * 7919 % count)


def covers(samples: Samples, truth_ns: Floats) -> list[float]:
    """1 where the interval holds the truth, 0 where not, nan where the quantile is withheld."""
    found = intervals.quantile_intervals(samples, SHARES)
    return [
        float(i.low_ns <= t <= i.high_ns) if i is not None and supported(samples, p) else np.nan
        for i, t, p in zip(found, truth_ns, SHARES, strict=True)
    ]


def coverage_percent(scenario: Scenario, runs: int, seed: int) -> tuple[Floats, Floats]:
    """(with the shipped method, with streams alone) for each of `SHARES`."""
    truth = truth_ns(scenario)
    rng = np.random.default_rng(seed)
    shipped, alone = [], []
    for _ in range(runs):
        samples = simulate(scenario, rng)
        shipped.append(covers(samples, truth))
        alone.append(covers(streams_alone(samples), truth))
    return 100 * np.mean(shipped, axis=0), 100 * np.mean(alone, axis=0)


def show(percents: Floats) -> str:
    return "  ".join("    –" if np.isnan(p) else f"{p:5.1f}" for p in percents)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs a scenario")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    monte_carlo = 196 * (0.05 * 0.95 / options.runs) ** 0.5
    print(f"{options.runs} runs a scenario; coverage in %, ± {monte_carlo:.1f} by chance")
    print(f"{'':34}  {'legato':^19}   {'streams alone':^19}")
    print(f"{'scenario':34}    p50    p90    p99     p50    p90    p99   95 ± 3")
    good = True
    for scenario in SCENARIOS:
        shipped, alone = coverage_percent(scenario, options.runs, options.seed)
        known = shipped[~np.isnan(shipped)]
        holds = bool(np.all((known >= LOW_PERCENT) & (known <= HIGH_PERCENT)))
        # A run has few independent looks at whole streams: shown, not claimed.
        good &= holds or scenario.whole
        word = "yes" if holds else "no"
        print(f"{scenario.name:34}  {show(shipped)}   {show(alone)}   {word}", flush=True)
    print("–: withheld, fewer than ten samples lie beyond")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
