"""A page on a console: headings, lines, bullets and tables that never overflow its width.

All text goes through `legible`: what the console cannot encode is spelled in ASCII, and control
characters, which a server's error message may hold, become visible question marks.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Group
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from legato.legible import legible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_FIGURE = re.compile(r"(\d) (ms|µs|s|%)(?!\w)")


def wrapped(text: str, columns: int) -> str:
    """Lines of at most `columns`; a figure is never parted from its unit."""
    joined = _FIGURE.sub("\\1\u00a0\\2", text)
    lines = textwrap.wrap(joined, max(1, columns), break_on_hyphens=False)
    return "\n".join(lines).replace("\u00a0", " ")


def _trimmed(line: Sequence[Segment]) -> list[Segment]:
    """A line without blanks at its end, unless they have a colour behind them."""
    kept = list(line)
    while kept and not (kept[-1].style and kept[-1].style.bgcolor):
        last = kept.pop()
        if text := last.text.rstrip():
            return [*kept, Segment(text, last.style)]
    return kept


class Page:
    """What a report prints through."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._encoding = console.encoding or "ascii"
        self.width = console.width

    def can_show(self, characters: str) -> bool:
        return legible(characters, self._encoding) == characters

    def line(self, text: str) -> None:
        if text:
            self._print(self._text(wrapped(text, self.width)))

    def gap(self) -> None:
        self._console.print()

    def heading(self, text: str) -> None:
        self._print(self._text(text, "bold"))

    def headline(self, badge: str, style: str, text: str) -> None:
        grid = Table.grid(padding=(0, 1), expand=False)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        room = self.width - len(badge) - 3
        grid.add_row(self._text(f" {badge} ", style), self._text(wrapped(text, room), "bold"))
        self._print(grid)

    def bullets(self, texts: Sequence[str]) -> None:
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for text in texts:
            grid.add_row(self._text(" •"), self._text(wrapped(text, self.width - 3)))
        self._print(grid)

    def labelled(self, lines: Sequence[tuple[str, str]]) -> None:
        """Lines that start with a short label; a long one goes on under itself."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(overflow="fold", max_width=self.width // 3)
        grid.add_column(overflow="fold")
        longest = max(len(label) for label, _ in lines)
        room = self.width - min(longest + 2, self.width // 3) - 2
        for label, text in lines:
            grid.add_row(self._text(f"  {label}"), self._text(wrapped(text, room)))
        self._print(grid)

    def readings(
        self, header: Sequence[str], rows: Sequence[tuple[Sequence[str], Sequence[str]]]
    ) -> None:
        """Figures after a name; what is said below the name is indented, wrapped lines too."""
        table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
        table.add_column("", overflow="fold")
        for name in header:
            table.add_column(self._text(name), justify="right", overflow="fold", no_wrap=True)
        for (name, *notes), figures in rows:
            said = [Padding(self._text(note), (0, 0, 0, 4)) for note in notes]
            who = Group(Padding(self._text(name), (0, 0, 0, 2)), *said)
            table.add_row(who, *(self._text(figure) for figure in figures))
        self._print(table)

    def verbatim(self, text: str) -> None:
        """A line of a drawing: cut at the edge, never wrapped."""
        self._console.print(self._text(f"  {text}"), no_wrap=True, overflow="crop")

    def figures(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table whose first column is words and whose others are figures."""
        table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
        table.add_column(self._text(header[0]), overflow="fold")
        for name in header[1:]:
            table.add_column(self._text(name), justify="right", overflow="fold", no_wrap=True)
        for row in rows:
            table.add_row(*(self._text(cell) for cell in row))
        self._print(table)

    @staticmethod
    def columns_of(rows: Sequence[Sequence[str]]) -> int:
        """How wide `figures` draws these rows where nothing limits it."""
        widest = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        return sum(widest) + 2 * (len(widest) - 1)

    def _print(self, drawn: RenderableType) -> None:
        """Without the spaces that tables pad their lines with: pages are piped and compared."""
        for line in self._console.render_lines(drawn, pad=False):
            self._console.print(Segments([*_trimmed(line), Segment.line()]), end="")

    def _text(self, text: str, style: str = "") -> Text:
        return Text(legible(text, self._encoding), style=style, overflow="fold")
