"""Conditions on figures, one grammar everywhere: `itl.p99<50ms, error<0.1%`, `itl.p99>+5%`.

Reads and judges only; it must never guess what a condition means: whatever is not plainly right
is refused in a sentence that says where and what would be.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from legato.errors import UsageError

if TYPE_CHECKING:
    from legato.metrics.gaps import Mask
    from legato.recording import Recording

TIMES = (
    "itl",
    "itl_zeros",
    "chunk_gap",
    "tpot",
    "tpot_incl",
    "ttft",
    "ttft_intended",
    "ttft_any",
    "e2e",
    "decode",
)
SHARES = ("error", "fluidity", "stall_ratio", "burst_share")
RATES = ("tps.stream", "tps.system", "goodput")
METRICS = (*TIMES, *SHARES, *RATES)
STATISTICS = ("mean", "std", "p50", "p90", "p95", "p99", "p999", "max")

Op = Literal["<", "<=", ">", ">="]
# value: the figure itself; change: how much of the baseline it changed; difference: by how much.
Relation = Literal["value", "change", "difference"]
Verdict = Literal["holds", "fails", "unknown"]

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MS_IN = {"us": 0.001, "µs": 0.001, "ms": 1.0, "s": 1000.0}
_PLAIN_OPS = {"≤": "<=", "≥": ">=", "=<": "<=", "=>": ">="}

_CONDITION = re.compile(
    r"""\s*(?P<name>[A-Za-z_][\w.]*?)\s*
        (?P<op>[<>=!≤≥~]+)\s*
        (?P<sign>[+\-−]?)\s*
        (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+\-]?\d+)?)\s*
        (?P<unit>%|/s|[^\W\d_]*)\s*""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition as it was written; `limit` is its value in the unit of the summary."""

    metric: str
    statistic: str | None  # none for shares and rates
    op: Op
    value: float
    unit: str
    relation: Relation = "value"

    @property
    def limit(self) -> float:
        """ms, a share of one, or a rate a second; for a change, a share of the baseline."""
        if self.unit in _MS_IN:
            return self.value * _MS_IN[self.unit]
        return self.value / 100 if self.unit in ("%", "pp") else self.value

    @property
    def figure(self) -> str:
        return self.metric if self.statistic is None else f"{self.metric}.{self.statistic}"

    def met_by(self, value: float) -> bool:
        """Whether `value`, in the unit of `limit`, meets it."""
        return _COMPARE[self.op](value, self.limit)

    def __str__(self) -> str:
        number = repr(self.value)
        sign = "" if self.relation == "value" or number.startswith("-") else "+"
        return f"{self.figure}{self.op}{sign}{number}{self.unit}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A condition judged: the value it was judged by, and that value's 95 % interval if known."""

    condition: Condition
    verdict: Verdict
    value: float | None
    interval: tuple[float, float] | None = None


# --- reading ----------------------------------------------------------------------------------


def parse(text: str, *, relative: bool) -> list[Condition]:
    """The conditions of `text`; a comma means *and*. A signed value (`>+5%`, `>+2ms`) compares
    with a baseline and is accepted only where there is one."""
    conditions = []
    column = 1
    for part in text.split(","):
        start = column + len(part) - len(part.lstrip())
        conditions.append(_condition(part, start, relative))
        column += len(part) + 1
    _check_possible(conditions)
    return conditions


def parse_figure(text: str) -> tuple[str, str | None]:
    """(metric, statistic) of a figure's name alone, such as `itl.p99` or `error`."""
    return _figure(text.strip(), 1)


def _condition(part: str, column: int, relative: bool) -> Condition:
    shown = part.strip()
    if not shown:
        raise UsageError(
            f"there is no condition at position {column}: write one such as itl.p99<50ms"
        )
    found = _CONDITION.fullmatch(part)
    if found is None:
        raise UsageError(
            f"{shown!r} at position {column} is not a condition: write metric.statistic, one of"
            " < <= > >=, a number and its unit, such as itl.p99<50ms"
        )
    offset = column - found.start("name")
    metric, statistic = _figure(found["name"], column)
    op = _op(found["op"], offset + found.start("op"))
    where = offset + found.start("sign")
    relation = _relation(found["sign"], found["unit"], shown, where, relative)
    value = float(found["number"])
    if found["sign"] in ("-", "−"):
        value = -value
    condition = Condition(metric, statistic, op, value, found["unit"], relation)
    _check_unit(condition, shown, offset + found.start("unit"))
    _check_range(condition, shown, where)
    return condition


def _figure(name: str, column: int) -> tuple[str, str | None]:
    if name in SHARES or name in RATES:
        return name, None
    metric, _, statistic = name.partition(".")
    if metric in TIMES:
        statistic = "p999" if statistic == "p99.9" else statistic
        if statistic in STATISTICS:
            return metric, statistic
        wrong = f"has no statistic {statistic!r}" if statistic else "needs a statistic"
        raise UsageError(
            f"{name!r} at position {column}: {metric} {wrong}; write {metric}. and one of"
            f" {', '.join(STATISTICS)}"
        )
    if metric in SHARES or name in ("tps", "goodput") or metric == "goodput":
        near = metric if metric != "tps" else "tps.stream or tps.system"
        raise UsageError(f"{name!r} at position {column}: write {near}")
    raise UsageError(
        f"there is no metric {name!r} (position {column}); there are {', '.join(METRICS)}"
    )


def _op(symbol: str, column: int) -> Op:
    plain = _PLAIN_OPS.get(symbol, symbol)
    for op in ("<", "<=", ">", ">="):
        if plain == op:
            return op
    raise UsageError(f"{symbol!r} at position {column} must be one of < <= > >=")


def _relation(sign: str, unit: str, shown: str, column: int, relative: bool) -> Relation:
    if not sign:
        return "value"
    if not relative:
        raise UsageError(
            f"{shown!r} at position {column} is relative to a baseline, and there is none here:"
            " write the value itself, without a sign"
        )
    return "change" if unit == "%" else "difference"


def _check_unit(condition: Condition, shown: str, column: int) -> None:
    unit, metric = condition.unit, condition.metric
    if condition.relation == "change":
        return
    if metric in TIMES:
        right, units = unit in _MS_IN, "ms, s or us"
    elif metric in SHARES and condition.relation == "difference":
        right, units = unit == "pp", "pp (percentage points), or % of the baseline"
    elif metric in SHARES:
        right, units = unit in ("%", ""), "% or no unit (a share of one)"
    else:
        right, units = unit in ("/s", ""), "/s or no unit"
    if right:
        return
    wrong = f"{unit!r} is no unit of {metric}" if unit else f"{metric} needs a unit"
    raise UsageError(f"{shown!r}: {wrong} (position {column}); write {units}")


def _check_range(condition: Condition, shown: str, column: int) -> None:
    # 1e999 reads as infinity: no limit at all.
    if condition.value in (float("inf"), float("-inf")):
        raise UsageError(f"{shown!r}: the number at position {column} is too large")
    if condition.relation == "value" and condition.metric in SHARES and condition.limit > 1:
        raise UsageError(
            f"{shown!r}: {condition.metric} is a share and is at most 1 or 100% (position {column})"
        )
    if condition.relation == "change" and condition.limit <= -1 and condition.op in ("<", "<="):
        raise UsageError(f"{shown!r}: nothing falls by 100 % or more (position {column})")


def _check_possible(conditions: Iterable[Condition]) -> None:
    """Two conditions on one figure that exclude each other are a slip of the pen."""
    highest: dict[tuple[str, Relation], Condition] = {}
    lowest: dict[tuple[str, Relation], Condition] = {}
    for condition in conditions:
        key = (condition.figure, condition.relation)
        if condition.op in ("<", "<="):
            if key not in highest or condition.limit < highest[key].limit:
                highest[key] = condition
        elif key not in lowest or condition.limit > lowest[key].limit:
            lowest[key] = condition
    for key in highest.keys() & lowest.keys():
        above, below = lowest[key], highest[key]
        touching = above.limit == below.limit and {above.op, below.op} == {">=", "<="}
        if above.limit >= below.limit and not touching:
            raise UsageError(f"{above} and {below} can never hold together: drop one")


# --- judging ----------------------------------------------------------------------------------


def evaluate(conditions: Sequence[Condition], summary: Mapping[str, Any]) -> list[Outcome]:
    """Each condition held against a summary; unknown where the summary withholds the figure.

    Conditions relative to a baseline are judged where there is one (`legato compare`).
    """
    outcomes = []
    for condition in conditions:
        if condition.relation != "value":
            raise ValueError(f"{condition} is relative: one summary cannot judge it")
        value = value_in(summary, condition.metric, condition.statistic)
        verdict: Verdict = "unknown"
        if value is not None:
            verdict = "holds" if condition.met_by(value) else "fails"
        outcomes.append(Outcome(condition, verdict, value, _interval_in(summary, condition)))
    return outcomes


def value_in(summary: Mapping[str, Any], metric: str, statistic: str | None) -> float | None:
    """The figure in a summary: ms, a share of one, or a rate; none where it is not known."""
    if metric in TIMES:
        return _number(_at(summary, f"{metric}_ms", statistic or ""))
    if metric == "error":
        total, ok = (_number(_at(summary, "streams", key)) for key in ("total", "ok"))
        return None if not total or ok is None else (total - ok) / total
    if metric == "fluidity":
        return _number(_at(summary, "smoothness", "fluidity_index"))
    if metric in SHARES:
        return _number(_at(summary, "smoothness", metric))
    if metric == "goodput":
        found = summary.get("goodput")
        return _number(found.get("requests_per_s") if isinstance(found, Mapping) else found)
    return _number(_at(summary, *metric.split(".")))


def streams_meeting(conditions: Sequence[Condition], recording: Recording) -> Mask:
    """The streams that meet every condition by their own figures: goodput counts them.

    A stream counts only if it ended well and is not warm-up. One without a second token has no
    gap that could be too long. Conditions on the whole run (error, tps.system, goodput) say
    nothing of a stream and are left to `evaluate`.
    """
    from legato.metrics.streams import own_figure, whole_streams

    met = whole_streams(recording)
    for condition in conditions:
        if condition.relation != "value":
            raise ValueError(f"{condition} is relative: a stream cannot be judged by it")
        own = own_figure(recording, condition.metric, condition.statistic)
        if own is not None:
            met &= _COMPARE[condition.op](own.value, condition.limit) | ~own.known  # type: ignore[arg-type]
    return met


def _at(summary: Mapping[str, Any], *path: str) -> Any:
    here: Any = summary
    for key in path:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def _number(found: Any) -> float | None:
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return float(found)


def _interval_in(summary: Mapping[str, Any], condition: Condition) -> tuple[float, float] | None:
    ends = _at(summary, f"{condition.metric}_ms", "ci95", condition.statistic or "")
    return (float(ends[0]), float(ends[1])) if ends else None
