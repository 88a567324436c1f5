"""Servers whose capacity is known, as functions from a level to a measurement."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from legato.capacity.edge import Measurement
from legato.metrics import samples
from legato.metrics.intervals import quantile_intervals

GAP_MS = 10.0
PER_STREAM_MS = 0.1
TOKENS = 60
SLOTS_OF_STREAMS = 4
MOST_STREAMS = 600

Server = Callable[[float], Measurement]


def affine(limit_streams: float) -> Server:
    """Gap = a + b · other streams, without noise; the SLO is what it is at `limit_streams`."""
    limit_ms = GAP_MS + PER_STREAM_MS * (limit_streams - 1)

    def measure(level: float) -> Measurement:
        return Measurement(level, math.log((GAP_MS + PER_STREAM_MS * (level - 1)) / limit_ms))

    return measure


def cliff(limit_streams: float) -> Server:
    """All is well up to a number of streams, and nothing beyond."""
    return lambda level: Measurement(level, -1.0 if level <= limit_streams else 2.0, 0.01)


def noisy(
    limit_streams: int, share: float, seed: int, *, stalls_per_s: float = 0.0, between: float = 0.0
) -> Server:
    """Lognormal gaps around a + b · others, stalls that hit all open streams at once, and runs
    that differ from each other; the SLO is on the quantile at `share`."""
    rng = np.random.default_rng(seed)
    limit_ms = _true_quantile_ms(limit_streams, share, stalls_per_s)

    def measure(level: float) -> Measurement:
        value, low, high = _one_run_ms(rng, int(level), share, stalls_per_s, between)
        return Measurement(level, math.log(value / limit_ms), math.log(high / low) / 2 / 1.96)

    return measure


_TRUE: dict[tuple[int, float, float], float] = {}


def _true_quantile_ms(streams: int, share: float, stalls_per_s: float) -> float:
    key = (streams, share, stalls_per_s)
    if key not in _TRUE:
        rng = np.random.default_rng(7)
        runs = [_one_run_ms(rng, streams, share, stalls_per_s, 0.0)[0] for _ in range(100)]
        _TRUE[key] = float(np.mean(runs))
    return _TRUE[key]


def _one_run_ms(
    rng: np.random.Generator, level: int, share: float, stalls_per_s: float, between: float
) -> tuple[float, float, float]:
    """(the quantile, its interval) of one run."""
    streams = min(max(SLOTS_OF_STREAMS * level, 40), MOST_STREAMS)
    mean_ms = GAP_MS + PER_STREAM_MS * (level - 1)
    gap_ms = mean_ms * rng.lognormal(-0.045, 0.3, (streams, TOKENS))
    start_ms = (np.arange(streams) // level) * mean_ms * TOKENS
    end_ms = start_ms[:, None] + np.cumsum(gap_ms, axis=1)
    for stall_ms in rng.uniform(0, end_ms.max(), rng.poisson(stalls_per_s * end_ms.max() / 1000)):
        caught = (end_ms >= stall_ms) & (end_ms - gap_ms < stall_ms)
        gap_ms[caught] += 30 * rng.lognormal(0, 0.3)
    gap_ms *= rng.lognormal(0, between)
    of = samples.per_stream(
        gap_ms.ravel() * 1e6,
        np.repeat(np.arange(streams), TOKENS),
        (end_ms.ravel() * 1e6).astype(np.int64),
    )
    value = samples.quantile(of, share)
    (interval,) = quantile_intervals(of, [share])
    assert value is not None
    assert interval is not None
    return value, interval.low_ns, interval.high_ns
