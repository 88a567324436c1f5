"""How a figure changed from one side to the other: difference, ratio, their 95 % intervals and a
p value. Pure arithmetic on estimates; it knows no recording.

With one run a side the interval comes from the two runs' own (combined by MOVER: Zou and Donner
2008); with several, runs are the unit and the spread between them is what counts (Welch's t, or
a paired t when runs were interleaved).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from legato.compare.estimate import Estimate, Figure
from legato.compare.span import Span
from legato.compare.student import point_975, two_sided_p

ALPHA = 0.05
Basis = Literal["streams", "runs", "pairs"]


@dataclass(frozen=True, slots=True)
class Change:
    """B against A. `p_holm` is `p` corrected for how many figures were looked at; the primary
    figure is declared beforehand and needs no correction."""

    figure: Figure
    a: float
    b: float
    difference: Span
    ratio: Span | None  # B ÷ A; none where A is zero
    p: float | None
    basis: Basis
    p_holm: float | None = None

    @property
    def shown(self) -> bool:
        """Is there a difference, at 95 %, after correction?"""
        return self.p_holm is not None and self.p_holm < ALPHA


def changed(
    figure: Figure, a: Sequence[Estimate], b: Sequence[Estimate], *, paired: bool = False
) -> Change:
    """From the estimates of each side's runs; at least one a side."""
    mean_a, mean_b = (statistics.fmean(e.value for e in side) for side in (a, b))
    basis: Basis = "streams"
    if len(a) + len(b) > 2:
        basis = "pairs" if paired else "runs"
    span = _from_streams if basis == "streams" else _from_runs
    difference, p = span(a, b, _same, mean_b - mean_a, paired)
    ratio = None
    if mean_a > 0:
        ratio = Span(mean_b / mean_a)
    if all(e.value > 0 for e in (*a, *b)):
        logs, p_log = span(a, b, math.log, math.log(mean_b / mean_a), paired)
        ratio = Span(mean_b / mean_a, _exp(logs.low), _exp(logs.high))
        # A ratio means the same at every size, so it is what a time or a rate is judged by.
        p = p if figure.is_share else p_log
    return Change(figure, mean_a, mean_b, difference, ratio, p, basis)


def corrected(changes: Sequence[Change]) -> list[Change]:
    """The same with `p_holm` filled in: one family of tests, corrected for its size."""
    adjusted = iter(holm([c.p for c in changes if c.p is not None]))
    return [c if c.p is None else replace(c, p_holm=next(adjusted)) for c in changes]


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's step-down correction (1979): below α where the figure differs at that level."""
    adjusted = [0.0] * len(ps)
    least = 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = max(least, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = least
    return adjusted


_Scale = Callable[[float], float]


def _same(value: float) -> float:
    return value


def _exp(end: float | None) -> float | None:
    return None if end is None else math.exp(min(end, 700.0))


def _from_streams(
    a: Sequence[Estimate], b: Sequence[Estimate], scale: _Scale, centre: float, _: bool
) -> tuple[Span, float | None]:
    reach_a, reach_b = _reach(a[0], scale), _reach(b[0], scale)
    if reach_a is None or reach_b is None:
        return Span(centre), None
    down = math.hypot(reach_b[0], reach_a[1])
    up = math.hypot(reach_b[1], reach_a[0])
    reach = (reach_b[0], reach_a[1]) if centre > 0 else (reach_b[1], reach_a[0])
    p = _p_of(centre, math.hypot(*reach), _combined_df(*reach, b[0].df, a[0].df))
    return Span(centre, centre - down, centre + up), p


def _reach(estimate: Estimate, scale: _Scale) -> tuple[float, float] | None:
    """How far the interval reaches below and above, on the scale."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return None
    if scale is math.log and low <= 0:
        return math.inf, scale(high) - scale(estimate.value)
    value = scale(estimate.value)
    return value - scale(low), scale(high) - value


def _combined_df(one: float, two: float, df_one: float, df_two: float) -> float:
    """Of a sum of two errors of these sizes (Welch, Satterthwaite)."""
    largest = max(one, two)
    if not 0 < largest < math.inf:
        return min(df_one, df_two)
    one, two = (one / largest) ** 2, (two / largest) ** 2
    spent = one**2 / df_one + two**2 / df_two
    return (one + two) ** 2 / spent if spent else math.inf


def _p_of(centre: float, half_width: float, df: float) -> float | None:
    """The p value at which an interval of this half-width at 95 % would just reach zero; none
    where nothing varied and nothing changed, which is no test at all."""
    if half_width == 0:
        return 0.0 if centre else None
    return two_sided_p(point_975(df) * centre / half_width, df)


def _from_runs(
    a: Sequence[Estimate], b: Sequence[Estimate], scale: _Scale, centre: float, paired: bool
) -> tuple[Span, float | None]:
    of_a, of_b = ([scale(e.value) for e in side] for side in (a, b))
    if paired:
        steps = [there - here for here, there in zip(of_a, of_b, strict=True)]
        error, df = math.sqrt(statistics.variance(steps) / len(steps)), len(steps) - 1.0
    else:
        error, df = _welch(of_a, of_b)
    reach = point_975(df) * error
    if error == 0:
        return Span(centre, centre, centre), 0.0 if centre else None
    return Span(centre, centre - reach, centre + reach), two_sided_p(centre / error, df)


def _welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """(standard error of the difference of means, degrees of freedom).

    A side of one run shows no spread: it is taken to spread as the other does.
    """
    if min(len(a), len(b)) == 1:
        several = max(a, b, key=len)
        variance = statistics.variance(several)
        return math.sqrt(variance * (1 / len(a) + 1 / len(b))), len(several) - 1.0
    part_a, part_b = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    total = part_a + part_b
    if total == 0:
        return 0.0, float(len(a) + len(b) - 2)
    df = total**2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))
    return math.sqrt(total), df
