"""A comparison as Markdown, short enough for a pull-request comment; the rest folds away."""

from __future__ import annotations

from collections.abc import Sequence

from legato.compare import table, words
from legato.compare.comparable import Facts
from legato.compare.comparison import Comparison
from legato.compare.gate import Gate

_SIGNS = {"better": "✅", "worse": "❌", "no difference shown": "➖", "unknown": "❔"}
_FIRST = ("itl.p50", "itl.p99", "itl.std", "ttft.p50", "ttft.p99", "error", "tps.system")


def markdown(
    comparisons: Sequence[Comparison],
    facts: dict[str, list[Facts]],
    gates: Sequence[Gate],
    remarks: Sequence[str],
) -> str:
    lines = ["### legato compare", ""]
    for gate in gates:
        lines += [f"{'✅' if gate.passed else '❌'} {_escaped(words.gate_words(gate))}", ""]
    for comparison in comparisons:
        lines += _one(comparison, facts)
    told = [*words.notes(comparisons[0]), *remarks]
    return "\n".join([*lines, *(f"- {_escaped(note)}" for note in told), ""])


def _one(comparison: Comparison, facts: dict[str, list[Facts]]) -> list[str]:
    verdict = words.verdict(comparison)
    candidate = comparison.candidate.letter
    first = {str(comparison.primary_figure), *_FIRST}
    lines = [f"{_SIGNS[verdict]} **{candidate}: {verdict}.** {words.headline(comparison)}.", ""]
    for side in (comparison.baseline, comparison.candidate):
        where = facts[side.letter][0].where
        names = ", ".join(f"`{name}`" for name in side.names)
        lines.append(f"- **{side.letter}** {names}" + (f" – {_escaped(where)}" if where else ""))
    header = table.header(comparison)
    chosen = table.named_rows(comparison, lambda change: str(change.figure) in first)
    every = table.named_rows(comparison, lambda _: True)
    lines += ["", *_table(header, chosen), ""]
    lines += ["<details><summary>All figures</summary>", "", *_table(header, every), ""]
    if comparison.ranked is not None:
        lines += [_escaped(words.rank_words(comparison.ranked)), ""]
    lines += [_escaped(table.legend(comparison)), "", "</details>", ""]
    return lines


def _table(header: table.Row, rows: Sequence[table.Row]) -> list[str]:
    lines = [_line(header), "| --- |" + " ---: |" * (len(header) - 1)]
    return [*lines, *(_line(row) for row in rows)]


def _line(cells: table.Row) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    for character in "\\`*_<>|":
        text = text.replace(character, f"\\{character}")
    return text
