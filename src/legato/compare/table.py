"""The rows of a comparison as text, for the terminal and for Markdown alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from legato.compare import span, words
from legato.compare.change import Change
from legato.compare.comparison import Comparison
from legato.report.figures import UNKNOWN, percent, significant

# Of metrics other than ITL and the primary one, what a first look needs.
_FIRST_LOOK = ("p50", "p90", "p99")
_ONLY_IF_DIFFERENT = ("stall_ratio", "burst_share", "fluidity")

Row = tuple[str, str, str, str, str, str]


def header(comparison: Comparison) -> Row:
    a, b = comparison.baseline.letter, comparison.candidate.letter
    return "", a, b, f"{b} − {a} [95 %]", "change, % [95 %]", "p"


def rows(comparison: Comparison, *, everything: bool) -> list[Row]:
    """Changes of one metric in one unit, under its name."""
    chosen = [c for c in comparison.changes if everything or _worth_a_look(c, comparison)]
    primary = comparison.primary
    found: list[Row] = []
    for metric, group in groupby(chosen, key=lambda change: change.figure.metric):
        changes = list(group)
        unit, size_ms = _unit(changes)
        if unit:
            found.append((f"{words.NAMES[metric]}, {unit}", "", "", "", "", ""))
        found += [_row(change, change is primary, size_ms) for change in changes]
    return found


def fitted(header: Row, rows: Sequence[Row], columns: int) -> tuple[Row, list[Row]]:
    """Header and rows for a page of so many columns: where they are too wide, differences go
    without their intervals, since the changes beside them keep theirs."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) <= columns:
        return header, list(rows)
    short = header[3].partition(" [")[0]
    bare = [(*row[:3], row[3].partition(" [")[0], *row[4:]) for row in rows]
    return (*header[:3], short, *header[4:]), bare


def named_rows(comparison: Comparison, wanted: Callable[[Change], bool]) -> list[Row]:
    """Changes without groups: each has its full name and unit."""
    found = []
    for change in comparison.changes:
        if wanted(change):
            unit, size_ms = _unit([change])
            cells = _row(change, change is comparison.primary, size_ms)
            name = words.NAMES[change.figure.metric]
            full = f"{name} {change.figure.statistic}, {unit}" if unit else name
            found.append((f"{full} †" if change is comparison.primary else full, *cells[1:]))
    return found


def legend(comparison: Comparison) -> str:
    """How to read the last column."""
    primary = f"† the primary figure, {comparison.primary_figure}; " if comparison.primary else ""
    return f"{primary}p below 0.05: differs; p of others is corrected for their number (Holm)"


def _worth_a_look(change: Change, comparison: Comparison) -> bool:
    figure = change.figure
    if figure == comparison.primary_figure or figure.metric == "itl":
        return True
    if figure.metric in _ONLY_IF_DIFFERENT:
        return change.a != change.b
    return figure.statistic is None or figure.statistic in _FIRST_LOOK


def _row(change: Change, primary: bool, size_ms: float) -> Row:
    figure = change.figure
    difference = words.in_unit(change).through(lambda end: end / size_ms)
    a, b = (
        percent(v) if figure.is_share else significant(v / size_ms) for v in (change.a, change.b)
    )
    name = f"  {figure.statistic}" if figure.statistic else words.NAMES[figure.metric]
    return (
        f"{name} †" if primary else name,
        a,
        b,
        UNKNOWN if change.a == change.b else span.text(difference, sign=True),
        _percent_change(change),
        words.p_words(change.p_holm),
    )


def _percent_change(change: Change) -> str:
    if change.ratio is None or change.figure.is_share:
        return UNKNOWN
    return span.text(span.as_percent(change.ratio), sign=True)


def _unit(changes: Sequence[Change]) -> tuple[str, float]:
    """(unit, ms in one) that suits all of them; no unit for what is no time."""
    if not changes[0].figure.is_time:
        return "", 1.0
    least = min(change.a for change in changes)
    if least >= 10_000:
        return "s", 1000.0
    return ("µs", 0.001) if max(change.a for change in changes) < 0.1 else ("ms", 1.0)
