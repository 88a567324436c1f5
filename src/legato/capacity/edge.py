"""Where the pressure on an SLO crosses its limit, from runs at several levels, with an interval.

Pure arithmetic on measurements: it starts no run and knows nothing of what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from legato.compare.student import point_975
from legato.metrics.gaps import Floats

# Runs count by how near their pressure is to the edge: a straight line holds only there.
NEAR_PRESSURE = 0.3
# No two runs of a server are alike: below this nothing is believed of a figure's repeatability.
LEAST_ERROR = 0.004
# A run's own interval rests on some thirty time blocks.
WITHIN_RUN_DF = 29
# A run this many standard errors from the limit is on its side of it beyond doubt.
CLEAR_ERRORS = 3.0
_SMALLEST_WEIGHT = 0.01


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run. Pressure is log(figure ÷ limit) of the condition that fares worst: above 0 the
    SLO fails. `held` is false where the client, not the target, gave way."""

    level: float
    pressure: float
    error: float = 0.0  # standard error of the pressure within this run
    held: bool = True

    @property
    def passes(self) -> bool:
        return self.pressure <= 0


@dataclass(frozen=True, slots=True)
class Edge:
    """The level at which pressure is 0, and its 95 % interval."""

    level: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return max(self.high - self.level, self.level - self.low)


def find_edge(runs: Sequence[Measurement]) -> Edge | None:
    """The edge; none until one run passed and one failed."""
    if all(run.passes for run in runs) or not any(run.passes for run in runs):
        return None
    line = _line(runs)
    low, high = _bracket(runs, 0.0 if line is None else NEAR_PRESSURE)
    if line is None:
        return Edge(_between(low, high), low, high)
    level = min(max(line.root, low), high)
    bottom, top = line.interval()
    return Edge(level, min(max(low, bottom), level), max(min(high, top), level))


def _bracket(runs: Sequence[Measurement], far: float) -> tuple[float, float]:
    """The highest level that clearly held and the lowest that clearly did not. Beside a line
    only `far` runs count: near the edge repeats may differ by more than their own errors."""
    clear = [run for run in runs if abs(run.pressure) > max(CLEAR_ERRORS * _error(run), far)]
    failed = [run.level for run in clear if not run.passes]
    high = min(failed, default=max(run.level for run in runs) * 2)
    low = max((run.level for run in clear if run.passes and run.level < high), default=0.0)
    return low, high


def _error(run: Measurement) -> float:
    return max(run.error, LEAST_ERROR)


def _between(low: float, high: float) -> float:
    """Half way on a log scale: pressure far from 0 says which side, not how far."""
    return math.sqrt(max(low, high / 16) * high)


@dataclass(frozen=True, slots=True)
class _Line:
    """figure ÷ limit − 1 = height + slope · (level − centre), with the covariance of the two."""

    centre: float
    height: float
    slope: float
    covariance: Floats
    t: float

    @property
    def root(self) -> float:
        return self.centre - self.height / self.slope

    def interval(self) -> tuple[float, float]:
        """Fieller: the levels at which the line is not significantly different from 0."""
        v00, v01, v11 = self.covariance[0, 0], self.covariance[0, 1], self.covariance[1, 1]
        a = self.slope**2 - self.t**2 * v11
        b = self.height * self.slope - self.t**2 * v01
        c = self.height**2 - self.t**2 * v00
        if a <= 0:  # the slope itself may be nothing: no end to the interval
            return 0.0, math.inf
        root = math.sqrt(max(0.0, b * b - a * c))
        return self.centre + (-b - root) / a, self.centre + (-b + root) / a


def _line(runs: Sequence[Measurement]) -> _Line | None:
    """Weighted least squares near the edge; none without two levels there or without a rise."""
    near = [run for run in runs if _nearness(run) >= _SMALLEST_WEIGHT]
    if len({run.level for run in near}) < 2:
        return None
    level = np.asarray([run.level for run in near])
    ratio = np.exp([run.pressure for run in near])
    nearness = np.asarray([_nearness(run) for run in near])
    # One variance for all: a run that missed a rare stall looks both fast and certain, and would
    # by a weight of its own outvote those that met it.
    squares = (np.asarray([_error(run) for run in near]) * ratio) ** 2
    within = np.full(len(near), np.average(squares, weights=nearness))
    between = _between_run_variance(level, ratio, nearness, within)
    variance = within + between
    centre = float((level * nearness / variance).sum() / (nearness / variance).sum())
    design = np.column_stack([np.ones(len(near)), level - centre])
    weight = nearness / variance
    inverse = np.linalg.pinv(design.T @ (design * weight[:, None]))
    height, slope = inverse @ (design.T @ (weight * (ratio - 1)))
    if slope <= 0:
        return None
    spread = design.T @ (design * (weight**2 * variance)[:, None])
    covariance = inverse @ spread @ inverse
    df = _degrees(float(np.average(within, weights=weight)), between, float(nearness.sum()) - 2)
    return _Line(centre, float(height), float(slope), covariance, point_975(df))


def _nearness(run: Measurement) -> float:
    return math.exp(-0.5 * (run.pressure / NEAR_PRESSURE) ** 2)


def _between_run_variance(level: Floats, ratio: Floats, nearness: Floats, within: Floats) -> float:
    """What repeats differ by beyond their own intervals: the least variance that makes the
    residuals no larger than expected (Paule and Mandel)."""
    freedom = float(nearness.sum()) - 2
    if freedom <= 0:
        return 0.0

    def excess(between: float) -> float:
        variance = within + between
        weight = nearness / variance
        centre = (level * weight).sum() / weight.sum()
        design = np.column_stack([np.ones(len(level)), level - centre])
        inverse = np.linalg.pinv(design.T @ (design * weight[:, None]))
        residual = ratio - 1 - design @ (inverse @ (design.T @ (weight * (ratio - 1))))
        return float((weight * residual**2).sum()) - freedom

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, float(np.ptp(ratio)) ** 2 + float(within.max())
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def _degrees(within: float, between: float, runs_freedom: float) -> float:
    """Degrees of freedom of the summed variance (Satterthwaite)."""
    known = within**2 / (WITHIN_RUN_DF * max(1.0, runs_freedom + 2))
    repeated = between**2 / max(1.0, runs_freedom)
    summed = (within + between) ** 2 / max(known + repeated, 1e-300)
    # That repeats agree so far is itself known from few of them.
    return max(1.0, min(summed, runs_freedom + 2))
