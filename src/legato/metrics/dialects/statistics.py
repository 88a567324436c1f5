"""The order statistics of the tools, each by its own rule, and their tables of figures.

A rule takes sorted samples and a share and gives one figure. Samples are in ns, tables in ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[Any]  # integer or float ns
Rule = Callable[[Samples, float], float]
Table = dict[str, float]

NS_PER_MS = 1e6
NS_PER_S = 1e9


def linear(ordered: Samples, share: float) -> float:
    """Interpolated between neighbours, as numpy and pandas do by default."""
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    below, above = float(ordered[low]), float(ordered[min(low + 1, len(ordered) - 1)])
    return below + (above - below) * (place - low)


def nearest_rank(ordered: Samples, share: float) -> float:
    """The sample at rank ceil(share · n), counted from 1, for whole percentiles."""
    return float(ordered[max(0, math.ceil(len(ordered) * round(share * 100) / 100) - 1)])


def lower(ordered: Samples, share: float) -> float:
    """The sample at or below the interpolated place: numpy's method "lower"."""
    return float(ordered[math.floor((len(ordered) - 1) * share)])


def product_index(ordered: Samples, share: float) -> float:
    """The sample at index ⌊share · n⌋, counted from 0."""
    return float(ordered[int(len(ordered) * share)])


# DDSketch at 0.1 % relative accuracy: buckets in powers of this base, of seconds.
_SKETCH_BASE = 1.001 / 0.999


def sketched(ordered: Samples, share: float) -> float:
    """The middle of the sketch bucket that holds the sample `lower` gives."""
    seconds = lower(ordered, share) / NS_PER_S
    if seconds <= 0:
        return 0.0
    bucket = math.ceil(math.log(seconds) / math.log(_SKETCH_BASE))
    return _SKETCH_BASE**bucket * 2 / (1 + _SKETCH_BASE) * NS_PER_S


def table_ms(
    samples: Samples, percentiles: Sequence[float], *extras: str, rule: Rule = linear
) -> Table:
    """The named figures of samples in ns, in ms; empty where there is no sample.

    `extras` are of mean, min, max, std (of the population) and sample_std.
    """
    if not len(samples):
        return {}
    ordered = samples if _is_sorted(samples) else _ranked(samples, percentiles)
    figures = {name: _EXTRAS[name](ordered) for name in extras}
    figures |= {name_of(p): rule(ordered, p / 100) for p in percentiles}
    return in_ms(figures)


def tables_ms(
    samples: Mapping[str, Samples], percentiles: Sequence[float], *extras: str, rule: Rule = linear
) -> dict[str, Table]:
    """One table a metric, all of the same figures."""
    return {name: table_ms(s, percentiles, *extras, rule=rule) for name, s in samples.items()}


def weighted_table_ms(samples: Samples, weights: Samples, percentiles: Sequence[float]) -> Table:
    """The weighted mean, and as a percentile the smallest sample up to which the samples hold
    that share of the weight (inverted CDF)."""
    if not len(samples):
        return {}
    values, place = np.unique(samples, return_inverse=True)
    weight = np.bincount(place, weights=weights)
    values, weight = values[weight > 0], weight[weight > 0]
    if not len(values):
        return {}
    probability = weight / weight.sum()
    reached = np.cumsum(probability)
    figures = {"mean": float(np.sum(values * probability))}
    for p in percentiles:
        at = min(int(np.searchsorted(reached, p / 100)), len(values) - 1)
        figures[name_of(p)] = float(values[at])
    return in_ms(figures)


def name_of(percentile: float) -> str:
    """p50, p99, p999, p0.1: a percentile's key in a table."""
    return "p999" if percentile == 99.9 else f"p{percentile:g}"


def in_ms(figures: dict[str, float]) -> Table:
    """The figures in ms; one that is not a number is left out, `sample_std` is called std."""
    return {
        "std" if name == "sample_std" else name: value / NS_PER_MS
        for name, value in figures.items()
        if math.isfinite(value)
    }


def _sample_std(ordered: Samples) -> float:
    return float(np.std(ordered, ddof=1)) if len(ordered) > 1 else math.nan


_EXTRAS: dict[str, Callable[[Samples], float]] = {
    "mean": lambda ordered: float(np.mean(ordered)),
    "min": lambda ordered: float(ordered[0]),
    "max": lambda ordered: float(ordered[-1]),
    "std": lambda ordered: float(np.std(ordered)),
    "sample_std": _sample_std,
}


def _ranked(samples: Samples, percentiles: Sequence[float]) -> Samples:
    """The samples in order at both ends and wherever a rule may look; a fraction of a sort."""
    last = len(samples) - 1
    places = [p / 100 * n for p in percentiles for n in (last, last + 1)]
    near = {math.floor(place) + step for place in places for step in (-1, 0, 1)}
    return np.partition(samples, sorted({0, last, *(r for r in near if 0 < r < last)}))


def _is_sorted(samples: Samples) -> bool:
    return bool(np.all(samples[:-1] <= samples[1:]))
