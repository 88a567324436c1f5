"""A comparison in sentences. Pure functions; a change that chance may explain is never told as
one."""

from __future__ import annotations

from legato.compare import span
from legato.compare.change import Change
from legato.compare.comparison import Comparison, Ranked
from legato.compare.estimate import Figure
from legato.compare.gate import Gate, Judged
from legato.compare.span import Span
from legato.expressions import RATES
from legato.report.figures import ms, of, percent, significant

NAMES = {
    "itl": "ITL",
    "itl_zeros": "ITL, zeros",
    "chunk_gap": "chunk gap",
    "tpot": "TPOT",
    "tpot_incl": "TPOT incl. first",
    "ttft": "TTFT",
    "ttft_intended": "intended TTFT",
    "ttft_any": "TTFT, any chunk",
    "e2e": "E2E",
    "decode": "decode time",
    "error": "failures",
    "fluidity": "fluidity",
    "stall_ratio": "in stalls",
    "burst_share": "in bursts",
    "tps.stream": "stream tok/s",
    "tps.system": "system tok/s",
}
# What the headline tells beside the primary figure, if it changed.
_HEADLINE = (
    Figure("itl", "p50"),
    Figure("itl", "p99"),
    Figure("itl", "std"),
    Figure("ttft", "p50"),
    Figure("ttft", "p99"),
    Figure("error"),
    Figure("stall_ratio"),
    Figure("e2e", "p50"),
)
_MOST_IN_HEADLINE = 3
_FACTOR_FROM = 2.0  # from twice as much on, a factor reads better than a percentage


def name_of(figure: Figure) -> str:
    """`p99 ITL`, `mean TTFT`, `failures`."""
    name = NAMES.get(figure.metric, figure.metric)
    if figure.statistic == "std":
        return "variance" if figure.metric == "itl" else f"variance of {name}"
    return name if figure.statistic is None else f"{figure.statistic} {name}"


def verdict(comparison: Comparison) -> str:
    """`better`, `worse` or `no difference shown`, by the primary figure; or `unknown`."""
    primary = comparison.primary
    if primary is None or (primary.p is None and primary.a != primary.b):
        return "unknown"
    if not primary.shown:
        return "no difference shown"
    more_is_better = primary.figure.metric in (*RATES, "fluidity")
    return "better" if (primary.b > primary.a) == more_is_better else "worse"


def headline(comparison: Comparison) -> str:
    """The primary figure, then the most telling others that changed."""
    primary = comparison.primary
    told = [_primary_words(comparison)]
    others = (comparison.change_of(figure) for figure in _HEADLINE)
    shown = [change for change in others if change and change.shown and change is not primary]
    return "; ".join([*told, *(moved(change) for change in shown[:_MOST_IN_HEADLINE])])


def moved(change: Change) -> str:
    """`p99 ITL fell 71 % [68, 74]`, `variance fell 12 × [10, 14]`."""
    name, unit = name_of(change.figure), difference_unit(change.figure)
    if change.figure.is_share or change.ratio is None:
        by = span.away(in_unit(change))
        return f"{name} {_direction(change.difference)} {span.text(by, unit)}"
    varies = change.figure.statistic == "std"
    ratio = change.ratio.through(lambda end: end * end) if varies else change.ratio
    return f"{name} {_direction(span.as_percent(ratio))} {_size(ratio, factors=varies)}"


def notes(comparison: Comparison) -> list[str]:
    """What must be known to read the figures rightly."""
    runs = len(comparison.baseline.runs), len(comparison.candidate.runs)
    basis = comparison.changes[0].basis if comparison.changes else "streams"
    if basis == "streams":
        return [
            "one run a side: how much two runs of the same thing differ is unknown and in no"
            " interval here; give several (--a A1 A2 … --b B1 B2 …) or use --live"
        ]
    if basis == "pairs":
        return [f"runs are the unit: {of(runs[0], 'pair')} of runs taken in turns"]
    told = [f"runs are the unit: {runs[0]} against {runs[1]}"]
    if min(runs) == 1:
        told.append("the side with one run is taken to vary as much as the other side does")
    return told


def rank_words(ranked: Ranked) -> str:
    whose = "each stream's own" if ranked.unit == "streams" else "the runs'"
    size = ranked.effect
    delta = f"{size.delta:+.2f}"
    if size.low is not None and size.high is not None:
        delta += f" [{size.low:.2f}, {size.high:.2f}]"
    shift = span.text(Span(size.shift), "ms" if ranked.figure.is_time else "", sign=True)
    return (
        f"Mann–Whitney on {whose} {name_of(ranked.figure)} ({ranked.n[0]} and {ranked.n[1]}"
        f" {ranked.unit}): p {p_words(ranked.test.p)}; Cliff's delta of streams"
        f" {delta.replace('-', '−')}, {size.size}; Hodges–Lehmann shift {shift}"
    )


def p_words(p: float | None) -> str:
    if p is None:
        return "–"
    if p < 0.001:
        return "<0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def gate_words(gate: Gate) -> str:
    """What the gate asked and what was found."""
    found = "; ".join(judged_words(one) for one in gate.judged)
    word = {"holds": "FAILED", "fails": "passed", "unknown": "FAILED (cannot be judged)"}
    return f"{word[gate.verdict]}: {gate.candidate}, fail if {gate.text}: {found}"


def judged_words(judged: Judged) -> str:
    figure = judged.condition.figure
    if judged.value is None:
        return f"{figure} is not known from these runs"
    told = f"{figure} {_value_found(judged.value, judged)}"
    if judged.verdict == "unknown":
        return f"{told}, which one run a side cannot tell from chance"
    if judged.verdict == "fails" and judged.condition.met_by(judged.value):
        return f"{told}, which chance may explain"
    return told


def value_words(figure: Figure, value: float) -> str:
    if figure.is_share:
        return percent(value)
    return ms(value) if figure.is_time else significant(value)


def difference_unit(figure: Figure) -> str:
    return "points" if figure.is_share else "ms" if figure.is_time else ""


def in_unit(change: Change) -> Span:
    """The difference in ms, percentage points or a rate."""
    return change.difference.through(lambda end: end * _scale(change.figure))


def _primary_words(comparison: Comparison) -> str:
    change = comparison.primary
    if change is None:
        return f"{comparison.primary_figure} is not known from these runs"
    if change.shown:
        return moved(change)
    if change.figure.is_share or change.ratio is None:
        size = span.text(in_unit(change), difference_unit(change.figure), sign=True)
    else:
        size = span.text(span.as_percent(change.ratio), "%", sign=True)
    return f"no difference in {name_of(change.figure)} shown: {size}"


def _value_found(value: float, judged: Judged) -> str:
    condition = judged.condition
    figure = Figure(condition.metric, condition.statistic)
    if condition.relation == "change":
        return f"changed by {span.text(Span(value * 100), '%', sign=True)}"
    if condition.relation == "difference":
        by = Span(value * _scale(figure))
        return f"changed by {span.text(by, difference_unit(figure), sign=True)}"
    return f"is {value_words(figure, value)}"


def _size(ratio: Span, *, factors: bool) -> str:
    """How far a ratio is from one: a percentage, or a factor where that reads better."""
    if ratio.value >= _FACTOR_FROM:
        return span.text(ratio, "×")
    if factors and ratio.value <= 1 / _FACTOR_FROM:
        return span.text(ratio.through(lambda end: 1 / end), "×")
    return span.text(span.away(span.as_percent(ratio)), "%")


def _direction(change: Span) -> str:
    return "fell" if change.value < 0 else "rose"


def _scale(figure: Figure) -> float:
    return 100.0 if figure.is_share else 1.0
