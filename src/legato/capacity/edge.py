"""Where the pressure on an SLO crosses its limit, from runs at several levels, with an interval.

Pure arithmetic on measurements: it starts no run and knows nothing of what was measured.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from legato.compare.student import point_975
from legato.metrics.gaps import Floats

# Runs count by how near they are to the edge, in pressure and in level: a straight line holds
# only there. Where runs are noisier than NOISE, the window is as many times wider.
NEAR_PRESSURE = 0.3
NEAR_LOG_LEVEL = 0.2
NEAR_STREAMS = 1.5
NOISE = 0.05
LEAST_ERROR = 0.002
# No two runs of a server are alike: before repeats tell, they are taken to differ by about 1 %, and
# that guess counts as much as PRIOR_RUNS of them.
PRIOR_BETWEEN = 0.012
PRIOR_RUNS = 1.0
# A run this many standard errors from the limit, and this far at least since repeats may differ
# by more than their own errors, is on its side of it beyond doubt.
CLEAR_ERRORS = 3.0
CLEAR_PRESSURE = 0.1
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
    """The level at which pressure is 0, and its 95 % interval. At `kept` the SLO held and at
    `broken` it failed, both beyond doubt. `support` is how many runs at the very edge the line
    is worth that the interval was read from; 0 where there is none, and only the two levels."""

    level: float
    low: float
    high: float
    kept: float
    broken: float
    support: float

    @property
    def half_width(self) -> float:
        return max(self.high - self.level, self.level - self.low)


def find_edge(runs: Sequence[Measurement]) -> Edge | None:
    """The edge; none until one run passed and one failed."""
    if all(run.passes for run in runs) or not any(run.passes for run in runs):
        return None
    noise = max(float(np.median([run.error for run in runs])), LEAST_ERROR)
    guess = _crossing(runs)
    line = _line(runs, guess, noise)
    if line is None:
        kept, broken = _bracket(runs, noise)
        return Edge(min(max(guess, kept), broken), kept, broken, kept, broken, 0.0)
    kept, broken = _bracket(runs, math.hypot(noise, line.between))
    level = min(max(line.root, kept), broken)
    bottom, top = line.interval()
    low, high = min(max(kept, bottom), level), max(min(broken, top), level)
    return Edge(level, low, high, kept, broken, line.support)


def _crossing(runs: Sequence[Measurement]) -> float:
    """A first guess: half way, on a log scale, between the levels around the split into passed
    below and failed above that contradicts the fewest runs."""
    levels = sorted({run.level for run in runs})
    splits = [levels[0] / 2, *(math.sqrt(a * b) for a, b in itertools.pairwise(levels))]

    def contradictions(split: float) -> float:
        wrong = (run for run in runs if run.passes != (run.level < split))
        return sum(min(abs(run.pressure), NEAR_PRESSURE) for run in wrong)

    return min([*splits, levels[-1] * 2], key=contradictions)


def _bracket(runs: Sequence[Measurement], noise: float) -> tuple[float, float]:
    """The highest level that clearly held and the lowest that clearly did not."""

    def is_clear(run: Measurement) -> bool:
        return abs(run.pressure) > max(CLEAR_ERRORS * max(run.error, noise), CLEAR_PRESSURE)

    clear = [run for run in runs if is_clear(run)]
    failed = [run.level for run in clear if not run.passes]
    broken = min(failed, default=max(run.level for run in runs) * 2)
    kept = max((run.level for run in clear if run.passes and run.level < broken), default=0.0)
    return kept, broken


@dataclass(frozen=True, slots=True)
class _Line:
    """figure ÷ limit − 1 = height + slope · (level − centre), with the covariance of the two.
    `between` is how much repeats differ beyond their own errors (a standard deviation);
    `support` is the summed weight of the runs."""

    centre: float
    height: float
    slope: float
    covariance: Floats
    t: float
    between: float
    support: float

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


def _line(runs: Sequence[Measurement], guess: float, noise: float) -> _Line | None:
    """Weighted least squares near the edge; none without two levels there or without a rise."""
    weighed = [(run, _nearness(run, guess, max(1.0, noise / NOISE))) for run in runs]
    weighed = [(run, weight) for run, weight in weighed if weight >= _SMALLEST_WEIGHT]
    near = [run for run, _ in weighed]
    if len({run.level for run in near}) < 2:
        return None
    level = np.asarray([run.level for run in near])
    ratio = np.exp([run.pressure for run in near])
    nearness = np.asarray([weight for _, weight in weighed])
    # One variance for all: a run that missed a rare stall looks both fast and certain, and would
    # by a weight of its own outvote those that met it.
    squares = np.asarray([max(run.error, LEAST_ERROR) for run in near]) ** 2
    within = float(np.average(squares, weights=nearness))
    centre = float(np.average(level, weights=nearness))
    design = np.column_stack([np.ones(len(near)), level - centre])
    inverse = np.linalg.pinv(design.T @ (design * nearness[:, None]))
    height, slope = inverse @ (design.T @ (nearness * (ratio - 1)))
    if slope <= 0:
        return None
    residual = ratio - 1 - design @ np.asarray([height, slope])
    freedom = max(0.0, float(nearness.sum()) - 2)
    beyond = max(0.0, float((nearness * residual**2).sum()) - freedom * within)
    between = (PRIOR_RUNS * PRIOR_BETWEEN**2 + beyond) / (PRIOR_RUNS + freedom)
    squared = inverse @ (design.T @ (design * (nearness**2)[:, None])) @ inverse
    return _Line(
        centre=centre,
        height=float(height),
        slope=float(slope),
        covariance=squared * (within + between),
        # Even where repeats agree, that is known from few of them only.
        t=point_975(freedom + 2 * PRIOR_RUNS),
        between=math.sqrt(between),
        support=float(nearness.sum()),
    )


def _nearness(run: Measurement, guess: float, wider: float) -> float:
    in_pressure = run.pressure / NEAR_PRESSURE
    reach = max(NEAR_LOG_LEVEL, NEAR_STREAMS / guess)
    in_level = math.log(run.level / guess) / reach
    return math.exp(-0.5 * (in_pressure**2 + in_level**2) / wider**2)
