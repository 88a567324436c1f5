"""How well `legato capacity` finds limits that are known, and how often its interval holds them.

Simulated servers show both over many searches; the metronome, whose gap grows by a known time for
each open stream, shows the first over real sockets. Figures go to docs/capacity.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from legato import cli
from legato.capacity.edge import Measurement
from legato.capacity.search import Answer, Scope, search
from legato.metrics import samples
from legato.metrics.intervals import quantile_intervals
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern

GAP_MS, PER_STREAM_MS, TOKENS = 10.0, 0.1, 60
LEAST_COVERED_SHARE = 0.9
MOST_ERROR_SHARE = 0.05
MOST_RUNS = 12
INTERRUPTED = 130

Generator = np.random.Generator


@dataclass(frozen=True, slots=True)
class Server:
    """Gaps around a + b · (other open streams), and what disturbs them; the SLO is on a quantile,
    at what it is with `limit` streams."""

    name: str
    limit: int = 100
    share: float = 0.99
    sigma: float = 0.3  # of the lognormal gaps
    stalls_per_s: float = 0.0  # of some 60 ms, that hit every open stream
    between: float = 0.0  # spread of whole runs, lognormal


SERVERS = (
    Server("a + b·N, no noise", sigma=0.0),
    Server("lognormal gaps, p99"),
    Server("lognormal gaps, p50", share=0.5),
    Server("lognormal gaps, 12 streams, p50", limit=12, share=0.5),
    Server("shared stalls, p50", share=0.5, stalls_per_s=1.5),
    Server("shared stalls, p99", stalls_per_s=1.5),
    Server("runs differ by 3 %, p50", share=0.5, between=0.03),
)


def one_run_ms(server: Server, level: int, rng: Generator) -> tuple[float, float, float]:
    """(the quantile, its interval) of one run: four generations of streams."""
    streams = min(max(4 * level, 40), 600)
    mean_ms = GAP_MS + PER_STREAM_MS * (level - 1)
    centre = -(server.sigma**2) / 2
    gap_ms = mean_ms * rng.lognormal(centre, server.sigma, (streams, TOKENS))
    start_ms = (np.arange(streams) // level) * mean_ms * TOKENS
    end_ms = start_ms[:, None] + np.cumsum(gap_ms, axis=1)
    length_ms = float(end_ms.max())
    for at_ms in rng.uniform(0, length_ms, rng.poisson(server.stalls_per_s * length_ms / 1000)):
        caught = (end_ms >= at_ms) & (end_ms - gap_ms < at_ms)
        gap_ms[caught] += 60 * rng.lognormal(0, 0.3)
    gap_ms *= rng.lognormal(0, server.between)
    of = samples.per_stream(
        gap_ms.ravel() * 1e6,
        np.repeat(np.arange(streams), TOKENS),
        (end_ms.ravel() * 1e6).astype(np.int64),
    )
    value = samples.quantile(of, server.share)
    (interval,) = quantile_intervals(of, [server.share])
    assert value is not None
    assert interval is not None
    return value, interval.low_ns, interval.high_ns


def true_limit_ms(server: Server) -> float:
    if not server.sigma:
        return (GAP_MS + PER_STREAM_MS * (server.limit - 1)) * 1e6
    rng = np.random.default_rng(0)
    steady = Server(server.name, server.limit, server.share, server.sigma, server.stalls_per_s)
    return float(np.mean([one_run_ms(steady, server.limit, rng)[0] for _ in range(200)]))


def one_search(server: Server, limit: float, seed: int) -> Answer:
    rng = np.random.default_rng(1000 + seed)

    def measure(level: float) -> Measurement:
        value, low, high = one_run_ms(server, int(level), rng)
        # A hair above: at the limit itself the SLO is kept.
        pressure = math.log(value / limit) - 1e-9
        return Measurement(level, pressure, math.log(high / low) / 2 / 1.96)

    return search(measure, Scope())


def _row(name: str, answers: list[Answer], limit: int) -> bool:
    covered = sum(answer.low <= limit <= answer.high for answer in answers)
    off = [abs(answer.level - limit) / limit for answer in answers]
    allowed = max(MOST_ERROR_SHARE, 1 / limit)
    close = sum(error <= allowed for error in off)
    runs = [len(answer.runs) for answer in answers]
    settled = sum(answer.ending == "settled" for answer in answers)
    n = len(answers)
    print(
        f"{name:<34} {covered:>4} of {n:<4} {close:>4} of {n:<4} {settled:>4} of {n:<4}"
        f" {np.mean(runs):>6.1f} {max(runs):>4}",
        flush=True,
    )
    return covered >= LEAST_COVERED_SHARE * n and max(runs) <= MOST_RUNS


def simulated(searches: int) -> bool:
    head = ("ci95 holds", "within 5 %", "settled")
    print(f"{'simulated server':<34}{''.join(f'{name:>13}' for name in head)}   runs most")
    fine = True
    for server in SERVERS:
        limit = true_limit_ms(server)
        answers = [one_search(server, limit, seed) for seed in range(searches)]
        fine &= _row(server.name, answers, server.limit)
    return fine


def live(searches: int) -> bool:
    """A metronome of 8 ms + 0.2 ms a further stream: 14 ms allow 31 streams."""
    limit = 31
    print(f"\n{'metronome, 8 ms + 0.2 ms a stream':<34} limit {limit}")
    fine = True
    pattern = Pattern(
        gap_ms=8, per_stream_us=200, first_token_ms=20, first_token_spread_ms=10, tokens=50
    )
    with running(pattern) as metronome, tempfile.TemporaryDirectory(prefix="legato-") as folder:
        for number in range(searches):
            out = Path(folder) / f"search-{number}"
            found, code = _asked(
                ["capacity", metronome.url, "--slo", "itl.p50<=14.1ms", "--out", str(out), "--json"]
            )
            if code == INTERRUPTED:
                return False
            capacity = found["capacity"]
            off = abs(capacity["concurrency"] - limit) / limit
            fine &= code == 0 and off <= MOST_ERROR_SHARE and capacity["runs"] <= MOST_RUNS
            print(
                f"  search {number + 1}: {capacity['concurrency']} streams, ci95"
                f" {capacity['ci95']}, {capacity['runs']} runs, {found['ending']}",
                flush=True,
            )
    return fine


def _asked(arguments: list[str]) -> tuple[dict[str, dict[str, int]], int]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = cli.main(arguments)
    return json.loads(out.getvalue()), code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=50, help="of each simulated server")
    parser.add_argument("--live", type=int, default=0, help="searches against the metronome")
    args = parser.parse_args()
    fine = simulated(args.searches)
    if args.live:
        fine &= live(args.live)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
