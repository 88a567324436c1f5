"""ITL against output position, context length and streams in flight, and its histogram.

Samples arrive sorted by value and stay so in every bin, so a bin's quantiles cost no sort.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legato.metrics import samples as sample
from legato.metrics.distribution import in_ms
from legato.metrics.gaps import Floats
from legato.metrics.samples import NS_PER_MS, Samples
from legato.recording import Ints

HISTOGRAM_BINS = 24
HISTOGRAM_FLOOR_MS = 0.01  # shorter gaps fall into the first bin
HISTOGRAM_MIN_RATIO = 1.5  # narrower data is shown with room around it

_DOUBLING = [1 << i for i in range(41)]
_HALF_DOUBLING = sorted({*_DOUBLING, *(3 << i for i in range(40))})


def by_doubling(samples: Samples, key: Ints) -> list[dict[str, Any]]:
    """Bins [1, 2), [2, 4), [4, 8), … of a key (one for each sample; below 1: left out)."""
    return _by_bins(samples, key, _DOUBLING)


def by_half_doubling(samples: Samples, key: Ints) -> list[dict[str, Any]]:
    """Bins [1, 2), [2, 3), [3, 4), [4, 6), [6, 8), [8, 12), … of a key."""
    return _by_bins(samples, key, _HALF_DOUBLING)


def _by_bins(samples: Samples, key: Ints, edges: list[int]) -> list[dict[str, Any]]:
    which = np.searchsorted(edges, key, side="right").astype(np.int8)
    # A stable sort keeps the samples of a bin in order of value.
    order = np.argsort(which, kind="stable")
    bounds = np.cumsum(np.bincount(which, minlength=1))
    rows = []
    for i in np.flatnonzero(np.diff(bounds)) + 1:
        part = sample.subset(samples, order[bounds[i - 1] : bounds[i]])
        rows.append(
            {
                "from": edges[i - 1],
                "to": edges[i],
                "n": part.n,
                "p50": in_ms(sample.supported_quantile(part, 0.5)),
                "p99": in_ms(sample.supported_quantile(part, 0.99)),
            }
        )
    return rows


def histogram_ms(samples: Samples) -> dict[str, list[float]]:
    """Token gaps in log-spaced bins: one more edge than counts."""
    if samples.n == 0:
        return {"edges": [], "counts": []}
    value_ms = samples.value_ns / NS_PER_MS
    edges = _histogram_edges(float(value_ms[0]), float(value_ms[-1]))
    # The values are sorted: a bin's count is a difference of two running weights.
    bounds = np.searchsorted(value_ms, edges[1:-1], side="left")
    upto = np.concatenate([[0], samples.upto])[np.concatenate([[0], bounds, [len(value_ms)]])]
    return {"edges": edges.tolist(), "counts": np.diff(upto).tolist()}


def _histogram_edges(low_ms: float, high_ms: float) -> Floats:
    low = max(low_ms, HISTOGRAM_FLOOR_MS)
    high = max(high_ms, low)
    if high < low * HISTOGRAM_MIN_RATIO:
        middle = np.sqrt(low * high)
        low, high = middle / np.sqrt(HISTOGRAM_MIN_RATIO), middle * np.sqrt(HISTOGRAM_MIN_RATIO)
    edges = np.geomspace(low, high, HISTOGRAM_BINS + 1)
    edges[0], edges[-1] = min(edges[0], low_ms), max(edges[-1], high_ms)
    return np.asarray(edges, dtype=np.float64)
