"""The rank test (Mann–Whitney) and the effect sizes that go with it: Cliff's delta and the
Hodges–Lehmann shift. Arrays in, figures out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from legato.metrics.gaps import Floats

MOST_ORDERINGS = 20_000  # up to here every ordering is counted, beyond it the normal law serves
_MOST_VALUES = 2_000  # of each side, whose pairwise differences are taken for the shift

Method = Literal["exact", "normal"]
HalfWidth = Callable[[Floats], float | None]  # of the mean of values, at 95 %


@dataclass(frozen=True, slots=True)
class RankTest:
    p: float
    method: Method


@dataclass(frozen=True, slots=True)
class Effect:
    """Of B over A. `delta`: the chance that a B exceeds an A less the chance of the reverse."""

    delta: float
    low: float | None
    high: float | None
    shift: float  # Hodges–Lehmann: the median of all differences B − A

    @property
    def size(self) -> str:
        """In words (Romano 2006)."""
        limits = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"))
        return next((word for limit, word in limits if abs(self.delta) < limit), "large")


def mann_whitney(a: Floats, b: Floats) -> RankTest:
    """Two-sided, ties counted half: exact for few values, else normal with both corrections."""
    n, m = len(a), len(b)
    ranks, ties = _ranks(np.concatenate([a, b]))
    expected = m * (n + m + 1) / 2
    off = abs(float(ranks[n:].sum()) - expected)
    if math.comb(n + m, m) <= MOST_ORDERINGS:
        sums = np.asarray([sum(chosen) for chosen in combinations(ranks.tolist(), m)])
        return RankTest(float(np.mean(np.abs(sums - expected) >= off - 1e-9)), "exact")
    total = n + m
    tied = float((ties.astype(np.float64) ** 3 - ties).sum()) / (total * (total - 1))
    variance = n * m / 12 * (total + 1 - tied)
    if variance <= 0:
        return RankTest(1.0, "normal")
    z = max(off - 0.5, 0.0) / math.sqrt(variance)
    return RankTest(math.erfc(z / math.sqrt(2)), "normal")


def effect(a: Floats, b: Floats, half_widths: tuple[HalfWidth, HalfWidth] | None) -> Effect:
    """The interval of delta comes from the placements of each side's values among the other's
    (DeLong 1988); the caller knows the half-width of the mean of values so placed, since that is
    where streams and time blocks are minded."""
    placed_a, placed_b = _placements(a, b), _placements(b, a)
    delta = 2 * float(placed_b.mean()) - 1
    shift = hodges_lehmann(a, b)
    if half_widths is None:
        return Effect(delta, None, None, shift)
    reach_a, reach_b = half_widths[0](placed_a), half_widths[1](placed_b)
    if reach_a is None or reach_b is None:
        return Effect(delta, None, None, shift)
    reach = 2 * math.hypot(reach_a, reach_b)
    return Effect(delta, max(-1.0, delta - reach), min(1.0, delta + reach), shift)


def hodges_lehmann(a: Floats, b: Floats) -> float:
    """The median of all differences B − A; of evenly spaced order statistics where many."""
    return float(np.median(np.subtract.outer(_thinned(b), _thinned(a))))


def _thinned(values: Floats) -> Floats:
    if len(values) <= _MOST_VALUES:
        return values
    return np.asarray(np.quantile(values, (np.arange(_MOST_VALUES) + 0.5) / _MOST_VALUES))


def _placements(values: Floats, among: Floats) -> Floats:
    """For each value, the share of the others below it; equals count half."""
    ordered = np.sort(among)
    below = np.searchsorted(ordered, values, side="left")
    upto = np.searchsorted(ordered, values, side="right")
    return np.asarray((below + upto) / (2 * len(among)), dtype=np.float64)


def _ranks(values: Floats) -> tuple[Floats, Floats]:
    """(rank of each value, ties sharing the mean rank; how many values each distinct one has)."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    upto = np.cumsum(counts)
    return (upto - (counts - 1) / 2)[which], counts.astype(np.float64)
