"""`--fail-if`: conditions held against a comparison, for a build to stop on.

A change must be real to fail a gate: beyond the limit, and told from no change at 95 %. What
cannot be judged does not pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from legato.compare.change import ALPHA, Change
from legato.compare.comparison import Comparison
from legato.compare.estimate import Figure
from legato.expressions import Condition, Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """A condition, the figure's value, change or difference, and whether the condition holds."""

    condition: Condition
    value: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Gate:
    """One `--fail-if`: it fails the build when all of its conditions hold."""

    text: str
    candidate: str
    judged: tuple[Judged, ...]

    @property
    def verdict(self) -> Verdict:
        verdicts = {one.verdict for one in self.judged}
        if "fails" in verdicts:
            return "fails"
        return "unknown" if "unknown" in verdicts else "holds"

    @property
    def passed(self) -> bool:
        return self.verdict == "fails"


def figure_of(condition: Condition) -> Figure:
    return Figure(condition.metric, condition.statistic)


def judge(text: str, conditions: Sequence[Condition], comparison: Comparison) -> Gate:
    judged = tuple(_judge(c, comparison.change_of(figure_of(c))) for c in conditions)
    return Gate(text, comparison.candidate.letter, judged)


def _judge(condition: Condition, change: Change | None) -> Judged:
    if change is None:
        return Judged(condition, None, "unknown")
    value = _value(condition, change)
    if not condition.met_by(value):
        return Judged(condition, value, "fails")
    # Where no change at all would meet it (`itl.p50>-10%`), chance is no excuse.
    if condition.relation == "value" or condition.met_by(0.0):
        return Judged(condition, value, "holds")
    if change.p is None:
        return Judged(condition, value, "unknown")
    return Judged(condition, value, "holds" if change.p < ALPHA else "fails")


def _value(condition: Condition, change: Change) -> float:
    if condition.relation == "value":
        return change.b
    if condition.relation == "difference":
        return change.difference.value
    if change.ratio is not None:
        return change.ratio.value - 1
    return math.inf if change.b > 0 else 0.0
