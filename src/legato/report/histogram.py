"""A histogram of gaps in a few lines of text: the axis is the one the bins were made on.

A bin that holds anything is visible, however small its share: the tail is why people look.
"""

from __future__ import annotations

from collections.abc import Sequence

from legato.report.figures import in_one_unit

HEIGHT = 4
LABEL_COLUMNS = 12  # from the start of one label to the next, at least
UNICODE_BARS = " ▁▂▃▄▅▆▇█"
ASCII_BARS = " .:#"


def histogram_lines(
    edges_ms: Sequence[float], counts: Sequence[float], width: int, bars: str = UNICODE_BARS
) -> list[str]:
    """Bars of `HEIGHT` lines, then the axis; every line at most `width` wide."""
    edges_ms, counts = _merge(edges_ms, counts, max(1, width - 2))
    columns = max(1, min(4, (width - 2) // len(counts)))
    rows = _rows(counts, columns, bars)
    return [*rows, _labels(edges_ms, columns, width)]


def _merge(
    edges_ms: Sequence[float], counts: Sequence[float], most: int
) -> tuple[list[float], list[float]]:
    """At most `most` bins, by joining neighbours."""
    step = -(-len(counts) // most)
    starts = range(0, len(counts), step)
    merged = [sum(counts[start : start + step]) for start in starts]
    return [edges_ms[start] for start in starts] + [edges_ms[-1]], merged


def _rows(counts: Sequence[float], columns: int, bars: str) -> list[str]:
    steps = len(bars) - 1
    tallest = max(counts)
    heights = [
        max(1, round(count / tallest * HEIGHT * steps)) if count > 0 else 0 for count in counts
    ]
    rows = []
    for row in reversed(range(HEIGHT)):
        levels = [min(steps, max(0, height - row * steps)) for height in heights]
        rows.append("".join(bars[level] * columns for level in levels).rstrip())
    return rows


def _labels(edges_ms: Sequence[float], columns: int, width: int) -> str:
    """The values of edges at even distances, each starting under its edge."""
    line = ""
    chosen = range(0, len(edges_ms), -(-LABEL_COLUMNS // columns))
    labels = in_one_unit([edges_ms[index] for index in chosen])
    for index, label in zip(chosen, labels, strict=True):
        at = index * columns
        if len(line) <= max(0, at - 1) and at + len(label) <= width:
            line = line.ljust(at) + label
    return line
