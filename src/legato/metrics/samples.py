"""Weighted samples sorted by value, and their quantiles.

A chunk of k tokens is one value of weight k, so nothing is expanded; every figure taken here
equals, to the last bit, the one taken from the expanded sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.metrics.gaps import Floats, Gaps
from legato.recording import Ints

NS_PER_MS = 1_000_000

# A quantile is shown only where this many samples, of this many streams, lie beyond it.
MIN_BEYOND_SAMPLES = 10
MIN_BEYOND_STREAMS = 5


@dataclass(frozen=True, slots=True)
class Samples:
    """Values in ascending order; each counts `weight` times."""

    value_ns: Floats
    weight: Ints
    upto: Ints  # inclusive running sum of the weights
    stream: Ints
    at_ns: Ints  # when the sample was taken, epoch
    origin: Ints  # index of the sample in the arrays it was sorted from

    def __len__(self) -> int:
        return len(self.value_ns)

    @property
    def n(self) -> int:
        """The size of the expanded sample."""
        return int(self.upto[-1]) if len(self.upto) else 0


def sort(value_ns: Floats, weight: Ints, stream: Ints, at_ns: Ints) -> Samples:
    origin = np.argsort(value_ns)
    weight = weight[origin]
    return Samples(
        value_ns[origin], weight, np.cumsum(weight), stream[origin], at_ns[origin], origin
    )


def subset(samples: Samples, chosen: Ints) -> Samples:
    """The samples at ascending indices; they stay sorted."""
    weight = samples.weight[chosen]
    return Samples(
        samples.value_ns[chosen],
        weight,
        np.cumsum(weight),
        samples.stream[chosen],
        samples.at_ns[chosen],
        samples.origin[chosen],
    )


def spread_evenly(gaps: Gaps) -> Samples:
    """ITL: the k tokens that end a gap share it, k times gap ÷ k."""
    return sort(gaps.gap_ns / gaps.tokens, gaps.tokens, gaps.stream, gaps.at_ns)


def zeros_then_gap(gaps: Gaps) -> Samples:
    """ITL the other way: the first of the k tokens took the whole gap, the others no time."""
    many = np.flatnonzero(gaps.tokens > 1)
    return sort(
        np.concatenate([gaps.gap_ns.astype(np.float64), np.zeros(len(many))]),
        np.concatenate([np.ones(len(gaps), np.int64), gaps.tokens[many] - 1]),
        np.concatenate([gaps.stream, gaps.stream[many]]),
        np.concatenate([gaps.at_ns, gaps.at_ns[many]]),
    )


def chunk_gaps(gaps: Gaps) -> Samples:
    """One sample a chunk, whatever it holds."""
    return per_stream(gaps.gap_ns.astype(np.float64), gaps.stream, gaps.at_ns)


def per_stream(value_ns: Floats, stream: Ints, at_ns: Ints) -> Samples:
    """Samples that count once each."""
    return sort(value_ns, np.ones(len(value_ns), np.int64), stream, at_ns)


def quantile(samples: Samples, p: float) -> float | None:
    """Linear interpolation between order statistics (type 7, numpy's default)."""
    n = samples.n
    if n == 0:
        return None
    rank = (n - 1) * min(max(p, 0.0), 1.0)
    below = int(rank)
    low, high = (
        float(samples.value_ns[np.searchsorted(samples.upto, index, side="right")])
        for index in (below, min(below + 1, n - 1))
    )
    return _interpolate(low, high, rank - below)


def supported(samples: Samples, p: float) -> bool:
    """Whether enough samples of enough streams lie beyond the quantile to speak of it.

    Ties with the quantile are interchangeable, so all of their streams count.
    """
    n, value_ns = samples.n, quantile(samples, p)
    if value_ns is None or n - 1 - int((n - 1) * p) < MIN_BEYOND_SAMPLES:
        return False
    beyond = samples.stream[np.searchsorted(samples.value_ns, value_ns, side="left") :]
    # The last samples nearly always come from enough streams: look there first.
    return any(len(np.unique(part)) >= MIN_BEYOND_STREAMS for part in (beyond[-1000:], beyond))


def supported_quantile(samples: Samples, p: float) -> float | None:
    """The quantile, or nothing where it would be a guess."""
    return quantile(samples, p) if supported(samples, p) else None


def mean(samples: Samples) -> float | None:
    if samples.n == 0:
        return None
    return float((samples.value_ns * samples.weight).sum() / samples.n)


def std(samples: Samples) -> float | None:
    """The population's standard deviation (divided by n)."""
    centre = mean(samples)
    if centre is None:
        return None
    squares = (samples.value_ns - centre) ** 2 * samples.weight
    return float(np.sqrt(squares.sum() / samples.n))


def _interpolate(low: float, high: float, share: float) -> float:
    # numpy's form: from the nearer end, so that equal ends give exactly that value.
    step = high - low
    return low + step * share if share < 0.5 else high - step * (1 - share)
