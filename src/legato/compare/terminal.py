"""A comparison on a terminal: the verdict first, then every figure it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from legato.compare import table, words
from legato.compare.comparable import Facts
from legato.compare.comparison import Comparison, Side
from legato.compare.gate import Gate
from legato.report.figures import of
from legato.report.page import Page

if TYPE_CHECKING:
    from rich.console import Console

_BADGES = {
    "better": ("BETTER", "bold white on green"),
    "worse": ("WORSE", "bold white on red"),
    "no difference shown": ("NO DIFFERENCE SHOWN", "bold black on yellow"),
    "unknown": ("UNKNOWN", "bold black on yellow"),
}


def render(
    comparisons: Sequence[Comparison],
    facts: dict[str, list[Facts]],
    gates: Sequence[Gate],
    remarks: Sequence[str],
    console: Console,
    *,
    everything: bool = False,
) -> None:
    """`facts` are those of each side's runs, by its letter."""
    page = Page(console)
    for number, comparison in enumerate(comparisons):
        if number:
            page.gap()
        _one(page, comparison, facts, everything)
    page.gap()
    page.bullets([*(words.notes(comparisons[0])), *remarks])
    if gates:
        page.gap()
        page.bullets([words.gate_words(gate) for gate in gates])


def _one(
    page: Page, comparison: Comparison, facts: dict[str, list[Facts]], everything: bool
) -> None:
    badge, style = _BADGES[words.verdict(comparison)]
    page.headline(f"{comparison.candidate.letter} {badge}", style, words.headline(comparison) + ".")
    page.labelled(
        [_side(side, facts[side.letter]) for side in (comparison.baseline, comparison.candidate)]
    )
    page.gap()
    header, rows = table.header(comparison), table.rows(comparison, everything=everything)
    page.figures(*table.fitted(header, rows, page.width))
    page.line(table.legend(comparison))
    if comparison.ranked is not None:
        page.gap()
        page.line(words.rank_words(comparison.ranked))


def _side(side: Side, runs: Sequence[Facts]) -> tuple[str, str]:
    names = side.names[0] if len(side.names) == 1 else f"{len(side.names)} runs, {side.names[0]} …"
    where = f" ({runs[0].where})" if runs[0].where else ""
    return side.letter, f"{names}{where}, {of(sum(run.ok for run in runs), 'stream')} ok"
