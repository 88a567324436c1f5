"""How hard a run presses on an SLO: for each condition the figure, its interval, and how far it
is from its limit on a scale on which 0 is the limit and a straight line is a fair model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from legato.compare.estimate import Estimate, Figure, estimates, population
from legato.errors import UsageError
from legato.expressions import SHARES, TIMES, Condition, parse
from legato.metrics import samples
from legato.metrics.distribution import QUANTILES
from legato.metrics.intervals import quantile_intervals
from legato.metrics.samples import NS_PER_MS
from legato.metrics.summary import measure
from legato.recording import Recording

# A load under which requests fail is not held, whether or not the SLO says so.
IMPLIED = "error<1%"
MOST_PRESSURE = 5.0
_GROWING = ("tps.system", "goodput")
# Shares are compared with this much added to both, or a share of 0 would be infinitely good.
_SHARE_OFFSET = 0.01
# Of a figure that has no interval.
_UNKNOWN_ERROR = 0.05
_Z_975 = 1.96


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition held against a run. `few`: the quantile rests on fewer samples than a summary
    would show it by; it counts all the same, with the interval it has."""

    condition: Condition
    estimate: Estimate | None
    pressure: float
    error: float
    few: bool = False

    def describe(self) -> dict[str, Any]:
        found = self.estimate
        return {
            "condition": str(self.condition),
            "value": None if found is None else found.value,
            "ci95": None if found is None or found.low is None else [found.low, found.high],
            "holds": self.pressure <= 0,
            "few_samples": self.few,
        }


def with_implied(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """The conditions, and the one on errors that every SLO has; what no search for the highest
    load can answer is refused."""
    for condition in conditions:
        if condition.op in ("<", "<=") and condition.limit <= 0 and condition.metric in TIMES:
            raise UsageError(f"{condition} can never hold: nothing takes no time")
        if condition.metric in _GROWING:
            raise UsageError(
                f"{condition} is of the whole system and grows with load: leave it out, and read"
                " it at the answer"
            )
    if any(condition.metric == "error" for condition in conditions):
        return tuple(conditions)
    return (*conditions, *parse(IMPLIED, relative=False))


def judge(recording: Recording, conditions: Sequence[Condition]) -> list[Judged]:
    """Each condition against one run, in the order given."""
    return [_judge(recording, condition) for condition in conditions]


def worst(judged: Sequence[Judged]) -> Judged:
    return max(judged, key=lambda one: one.pressure)


def _judge(recording: Recording, condition: Condition) -> Judged:
    found, few = _estimate(recording, condition)
    if found is None:
        # Nothing was delivered that could be judged: the load was not held.
        return Judged(condition, None, MOST_PRESSURE, 0.0)
    pressure = _pressure(condition, found.value)
    if found.low is None or found.high is None:
        return Judged(condition, found, pressure, _UNKNOWN_ERROR, few)
    ends = (_pressure(condition, found.low), _pressure(condition, found.high))
    return Judged(condition, found, pressure, abs(ends[1] - ends[0]) / 2 / _Z_975, few)


def _pressure(condition: Condition, value: float) -> float:
    limit = condition.limit
    upper = condition.op in ("<", "<=")
    if condition.metric in SHARES:
        if not upper:
            value, limit = 1 - value, 1 - limit
        value, limit = value + _SHARE_OFFSET, limit + _SHARE_OFFSET
        upper = True
    if value <= 0 or limit <= 0:
        holds = condition.met_by(value)
        return -MOST_PRESSURE if holds else MOST_PRESSURE
    ratio = math.log(value / limit)
    return max(-MOST_PRESSURE, min(MOST_PRESSURE, ratio if upper else -ratio))


def _estimate(recording: Recording, condition: Condition) -> tuple[Estimate | None, bool]:
    """(the figure, whether it rests on few samples)."""
    figure = Figure(condition.metric, condition.statistic)
    found = estimates(recording, [figure]).get(figure)
    if found is not None or condition.statistic not in QUANTILES:
        return found, False
    return _of_few(recording, condition.metric, QUANTILES[condition.statistic]), True


def _of_few(recording: Recording, metric: str, p: float) -> Estimate | None:
    """A quantile a summary would withhold."""
    of = population(recording, measure(recording), metric)
    value_ns = samples.quantile(of, p)
    if value_ns is None:
        return None
    (interval,) = quantile_intervals(of, [p])
    if interval is None:
        return Estimate(value_ns / NS_PER_MS)
    # The sample's own top is no bound of a quantile that few samples lie beyond.
    reach_ns = max(interval.high_ns - value_ns, value_ns - interval.low_ns)
    return Estimate(
        value_ns / NS_PER_MS, interval.low_ns / NS_PER_MS, (value_ns + reach_ns) / NS_PER_MS
    )
