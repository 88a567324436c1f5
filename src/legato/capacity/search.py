"""The search for the highest load that keeps an SLO: which level to run next, and when to stop.

A pure function of `measure(level)`: it never looks at a clock, a socket or a recording.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from legato.capacity.edge import Edge, Measurement, find_edge

# How the search ended. `settled`: the interval is narrow enough. `budget`: the runs are spent.
# `most`: the highest level allowed still keeps the SLO. `client`: the client could not hold more.
# `none`: even the lowest level fails.
Ending = Literal["settled", "budget", "most", "client", "none", "stopped"]

PROOFS = 2  # once may be chance: a verdict that ends the search is asked for again
FIRST_TRIES = 3  # of the lowest level, which any client can hold in a quiet moment
CLIENT_STEP = 1.2  # a lower bound that could not grow by this much is good enough
GROWTH = 4.0  # a level is at most so many times the highest one that held
SETTLED_SHARE = 0.05
SUPPORT = 4.0  # worth so many runs at the edge must be behind an answer
# Where around the edge the next runs go, in turn: spread, they tell the slope as well.
OFFSETS = (0.0, 0.06, -0.06)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look: from `least` to `most`, in whole numbers or not, with so many runs."""

    least: float = 1.0
    most: float = 4096.0
    whole: bool = True
    runs: int = 12

    def snap(self, level: float) -> float:
        level = min(max(level, self.least), self.most)
        return float(round(level)) if self.whole else float(f"{level:.3g}")

    def tolerance(self, edge: Edge) -> float:
        """How far from the truth an answer may be."""
        return max(SETTLED_SHARE * edge.level, 1.0 if self.whole else 0.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """The highest level that keeps the SLO. `low` and `high` are its 95 % interval; `high` is
    infinite where the true limit lies beyond what could be tried."""

    level: float
    low: float
    high: float
    ending: Ending
    runs: tuple[Measurement, ...]


def search(measure: Callable[[float], Measurement | None], scope: Scope) -> Answer:
    """Grow until the SLO fails, then run around the edge until its interval is narrow.

    A `measure` that returns nothing stops the search; what is known by then is the answer.
    """
    runs: list[Measurement] = []
    while len(runs) < scope.runs:
        level = next_level(runs, scope)
        if level is None:
            break
        run = measure(level)
        if run is None:
            return _answer(runs, scope, stopped=True)
        runs.append(run)
    return _answer(runs, scope, stopped=False)


def next_level(runs: Sequence[Measurement], scope: Scope) -> float | None:
    """The level to run next; none when there is nothing more to learn."""
    least = scope.snap(scope.least)
    held = [run for run in runs if run.held]
    if not held:
        return least if len(runs) < FIRST_TRIES else None
    edge = find_edge(held)
    if edge is None and held[0].passes:
        return _upwards(runs, scope)
    if edge is None:
        return least if len(held) < PROOFS else None
    return None if _is_settled(edge, scope) else _around(held, edge, scope)


def _upwards(runs: Sequence[Measurement], scope: Scope) -> float | None:
    """Every level that was held passes: go higher, up to where the client gives way."""
    held = [run for run in runs if run.held]
    highest = max(run.level for run in held)
    lost = [run.level for run in runs if not run.held and run.level > highest]
    if not lost:
        level = scope.snap(_forecast(held, highest))
        return level if level > highest else None
    lowest = min(lost)
    if lost.count(lowest) < PROOFS:
        return lowest
    level = scope.snap(math.sqrt(highest * lowest))
    return level if level > highest * CLIENT_STEP and level < lowest else None


def _forecast(held: Sequence[Measurement], highest: float) -> float:
    """Where a straight line through the two highest levels meets the limit, and a bit on; never
    less than twice nor more than GROWTH times what held."""
    below = [run for run in held if run.level < highest]
    top = max(held, key=lambda run: run.level)
    if not below:
        return GROWTH * highest
    last = max(below, key=lambda run: run.level)
    slope = (math.exp(top.pressure) - math.exp(last.pressure)) / (top.level - last.level)
    if slope <= 0:
        return GROWTH * highest
    meets = highest + (1 - math.exp(top.pressure)) / slope
    return min(max(1.02 * meets, 2 * highest), GROWTH * highest)


def _is_settled(edge: Edge, scope: Scope) -> bool:
    if edge.high < scope.least or edge.broken - edge.kept <= scope.tolerance(edge):
        return True
    # A line through runs on both sides but far off may be narrow and yet wrong.
    return edge.half_width <= scope.tolerance(edge) and edge.support >= SUPPORT


def _around(held: Sequence[Measurement], edge: Edge, scope: Scope) -> float:
    """Near the edge, but not where the outcome is known already."""
    offset = OFFSETS[len(held) % len(OFFSETS)] if edge.support > 1 else 0.0
    if not scope.whole:
        return scope.snap(edge.level * (1 + offset))
    level = scope.snap(edge.level + math.copysign(max(1.0, abs(offset * edge.level)), offset))
    level = scope.snap(edge.level) if offset == 0 else level
    return scope.snap(min(max(level, math.floor(edge.kept) + 1), math.ceil(edge.broken) - 1))


def _answer(runs: Sequence[Measurement], scope: Scope, *, stopped: bool) -> Answer:
    held = [run for run in runs if run.held]
    passed = [run.level for run in held if run.passes]
    edge = find_edge(held)
    if edge is not None:
        ending: Ending = "settled" if _is_settled(edge, scope) else "budget"
        low, level, high = _levels(held, edge, scope)
        if level < scope.least:
            ending = "none"
        return Answer(level, low, high, "stopped" if stopped else ending, tuple(runs))
    if not passed:
        ending = "none" if held else "client"
        return Answer(0.0, 0.0, scope.least, "stopped" if stopped else ending, tuple(runs))
    highest = max(passed)
    lost = any(not run.held and run.level > highest for run in runs)
    ending = "client" if lost else "budget"
    if highest >= scope.snap(scope.most):
        ending = "most"
    return Answer(highest, highest, math.inf, "stopped" if stopped else ending, tuple(runs))


def _levels(held: Sequence[Measurement], edge: Edge, scope: Scope) -> tuple[float, float, float]:
    """Low, level and high of the answer: the highest whole level below each, where levels are
    whole. At `broken` the SLO fails, so the highest level that keeps it is below. Without a line
    the answer is the highest level that was seen to hold."""
    seen = max((run.level for run in held if run.passes and run.level < edge.level), default=0.0)
    found = edge.low, edge.level if edge.support else seen, edge.high
    if not scope.whole:
        return found
    most = math.ceil(edge.broken) - 1
    low, level, high = (float(max(0, min(math.floor(at + 1e-6), most))) for at in found)
    return low, level, high
