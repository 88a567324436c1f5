"""Do requests leave as the schedule says: the spacing of *sent* times at 500 requests a second.

    python -m benchmarks.arrivals [--rate 500] [--seconds 10]

Each spacing runs against the metronome. The times over every tenth send are held against the
distribution that was asked for by a Kolmogorov–Smirnov test, and constant spacing's neighbour, a
gamma of twice the shape, beside it as proof that the test can fail. Over tenth sends, because one
send costs the client some 0.05 ms, and bursty spacing asks for most of its gaps to be shorter. How
late sends were is printed with its quantiles.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.reading import read
from legato.report.live import LiveView
from legato.traffic import bench
from legato.traffic.asking import Asking
from legato.traffic.lengths import fixed
from legato.traffic.plan import check_load

Floats = npt.NDArray[np.float64]
BURSTINESS = 0.25
STRIDE = 10
LIMIT = 0.001  # a right schedule fails this test once in a thousand runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    mean_s = 1 / arguments.rate
    good = True
    for spacing, shape in (("constant", None), ("poisson", 1.0), ("gamma", BURSTINESS)):
        burstiness = shape if spacing == "gamma" else None
        scheduled, sent = _run(arguments.rate, arguments.seconds, spacing, burstiness)
        p50, p99 = np.quantile((sent - scheduled) / 1e6, [0.5, 0.99])
        line = f"{spacing:<9} {len(sent)} sends, {p50:.3f} ms late (p50), {p99:.3f} ms (p99)"
        if shape is None:
            off_s = np.abs(np.diff(np.sort(sent)) / 1e9 - mean_s)
            spread_ms = float(np.quantile(off_s, 0.99)) * 1e3
            print(f"{line}; a gap is off by {spread_ms:.3f} ms at p99 of {mean_s * 1e3:g} ms")
            continue
        times_s = np.diff(np.sort(sent)[::STRIDE]) / 1e9
        right, wrong = (_fit(times_s, mean_s, each) for each in (shape, 2 * shape))
        print(f"{line}; fits: p = {right:.3f}; twice the shape would: p = {wrong:.2g}")
        good &= right > LIMIT > wrong
    return 0 if good else 1


def _fit(times_s: Floats, mean_s: float, shape: float) -> float:
    """The chance that times over `STRIDE` gamma gaps lie so far from their distribution."""
    total = STRIDE * shape
    expected = _gamma_cdf(total, np.sort(times_s) * shape / mean_s)
    ranks = np.arange(1, len(times_s) + 1) / len(times_s)
    distance = np.maximum(ranks - expected, expected - (ranks - 1 / len(times_s))).max()
    return _kolmogorov(float(distance), len(times_s))


def _run(
    rate: float, seconds: float, spacing: str, burstiness: float | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    pattern = Pattern(gap_ms=5.0, first_token_ms=20.0, tokens=5)
    with tempfile.TemporaryDirectory() as name, running(pattern) as metronome, LiveView() as view:
        load = check_load(
            concurrency=None,
            rate=str(rate),
            spacing=spacing,
            burstiness=burstiness,
            duration_s=seconds,
            seed=1,
        )
        out = Path(name) / "run.parquet"
        bench.run(bench.Bench(metronome.url, load, out, asking=Asking(fixed(16), fixed(5))), view)
        recording = read(out)
    sent = recording.ints("sent_ns")
    return recording.ints("scheduled_ns")[sent >= 0], sent[sent >= 0]


def _kolmogorov(distance: float, n: int) -> float:
    """The chance of so large a distance, for many samples."""
    x = distance * (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n))
    if x < 0.2:
        return 1.0
    terms = (2 * (-1) ** (k - 1) * math.exp(-2 * (k * x) ** 2) for k in range(1, 101))
    return float(min(1.0, max(0.0, sum(terms))))


def _gamma_cdf(shape: float, x: Floats) -> Floats:
    """The regularised lower incomplete gamma function, by its series."""
    total = np.ones_like(x)
    term = np.ones_like(x)
    for k in range(1, 400):
        term = term * x / (shape + k)
        total += term
    scale = np.exp(-x + shape * np.log(np.maximum(x, 1e-300)) - math.lgamma(shape + 1))
    return np.clip(total * scale, 0.0, 1.0)


if __name__ == "__main__":
    sys.exit(main())
