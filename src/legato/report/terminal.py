"""The summary of a run in the terminal, from the verdict down to the instrument.

It lays out what `words`, `peers` and `histogram` say; it computes nothing, and it trusts no text
that came from a server: control characters never reach the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from legato.invocation import as_typed
from legato.report import words
from legato.report.advice import advice, next_command
from legato.report.failures import failure_lines
from legato.report.figures import UNKNOWN, ms, percent, significant, within
from legato.report.histogram import ASCII_BARS, UNICODE_BARS, histogram_lines
from legato.report.instrument import instrument_lines
from legato.report.lookup import (
    Summary,
    finite,
    interval,
    items,
    number,
    recordings,
    setting,
)
from legato.report.page import Page
from legato.report.peers import AGREEMENT, APPROXIMATE, own_reading, peer_groups

if TYPE_CHECKING:
    from rich.console import Console

ALL_READINGS = 70  # from this many columns on, other tools' means and TTFT are shown too
WIDE = 100  # from this many columns on, an interval stands beside its figure

# A badge sets both its colours, so that it reads on light and on dark backgrounds.
BADGES = {
    "valid": "bold black on green",
    "degraded": "bold black on yellow",
    "invalid": "bold white on red",
    "failed": "bold white on red",
}
ROWS = (
    ("ITL", "itl_ms"),
    ("chunk gap", "chunk_gap_ms"),
    ("TPOT", "tpot_ms"),
    ("TTFT", "ttft_ms"),
    ("TTFT, intended", "ttft_intended_ms"),
    ("decode", "decode_ms"),
    ("E2E", "e2e_ms"),
)
# Rows shown only where they say something that another row does not.
ECHOES = {"chunk_gap_ms": "itl_ms", "ttft_intended_ms": "ttft_ms"}
ECHO_LIMIT = 0.01
SLO_WORDS = {
    "holds": "holds",
    "fails": "FAILS",
    "unknown": "not known: too few samples for this figure, or none",
}
COLUMNS = ("p50", "p90", "p99", "max", "mean")
SPARED = ("mean", "p90", "max")  # left out, in this order, where the page is too narrow
GAP_ROWS = ("itl_ms", "chunk_gap_ms")


def render(summary: Summary, console: Console) -> None:
    """Print the summary of a run."""
    page = Page(console)
    _title(page, summary)
    _headline(page, summary)
    if words.measured(summary):
        _table(page, summary)
        _histogram(page, summary)
        _pace(page, summary)
        _peers(page, summary)
    _slo(page, summary)
    _failures(page, summary)
    _instrument(page, summary)
    _next(page, summary)


def _title(page: Page, summary: Summary) -> None:
    page.line(words.subject(summary))
    page.gap()


def _headline(page: Page, summary: Summary) -> None:
    verdict = words.verdict(summary)
    page.headline(verdict.upper(), BADGES.get(verdict, "bold reverse"), words.headline(summary))
    page.gap()


def _table(page: Page, summary: Summary) -> None:
    header, lines = _fitting_lines(summary, page.width)
    page.figures(header, lines)
    if any(UNKNOWN in line for line in lines):
        page.line(
            f"{UNKNOWN} not enough data: a percentile needs 10 samples, from 5 streams, above it;"
            " raise --requests"
        )
    page.line(_throughput(summary))
    page.gap()


def _fitting_lines(summary: Summary, width: int) -> tuple[list[str], list[list[str]]]:
    """(header, lines) with as many columns as fit: a figure is not broken over two lines."""
    rows = [(name, key) for name, key in ROWS if _worth_a_row(summary, key)]
    columns = list(COLUMNS)
    for spared in (None, *SPARED):
        columns = [column for column in columns if column != spared]
        lines = []
        for name, key in rows:
            figures, below = _figures(summary, key, columns, width)
            lines += [[name, *figures], *([["", *below]] if any(below) else [])]
        header = ["", *columns]
        if Page.columns_of([header, *lines]) <= width:
            break
    return header, lines


def _worth_a_row(summary: Summary, key: str) -> bool:
    if number(summary, key, "n") in (None, 0) and number(summary, key, "mean") is None:
        return False
    echo = ECHOES.get(key)
    if echo is None:
        return True
    if key == "ttft_intended_ms" and setting(summary, "mode") == "closed":
        return False  # a slot that falls free intends its next request at once
    pairs = [(number(summary, key, column), number(summary, echo, column)) for column in COLUMNS]
    return any(
        one is not None and other is not None and abs(one - other) > ECHO_LIMIT * abs(other)
        for one, other in pairs
    )


def _figures(
    summary: Summary, key: str, columns: Sequence[str], width: int
) -> tuple[list[str], list[str]]:
    """(figures, what stands below them): narrow pages put the interval on a line of its own."""
    above, below = [], []
    for column in columns:
        figure, ends = number(summary, key, column), interval(summary, key, column)
        error = words.error_ms(summary, column if key in GAP_ROWS else "p50")
        around = "" if figure is None or ends is None else within(*ends, figure, error)
        beside = around and width >= WIDE
        above.append(f"{ms(figure)} ({around})" if beside else ms(figure))
        below.append("" if beside else around)
    return above, below


def _throughput(summary: Summary) -> str:
    stream, system = number(summary, "tps", "stream"), number(summary, "tps", "system")
    parts = [
        None if stream is None else f"{significant(stream)} tokens/s a stream",
        None if system is None else f"{significant(system)} tokens/s in all",
    ]
    return ", ".join(part for part in parts if part)


def _histogram(page: Page, summary: Summary) -> None:
    edges = [finite(edge) for edge in items(summary, "histogram_ms", "edges")]
    counts = [finite(held) for held in items(summary, "histogram_ms", "counts")]
    known_edges = [edge for edge in edges if edge is not None]
    known_counts = [held for held in counts if held is not None and held >= 0]
    whole_bins = len(known_edges) == len(edges) and len(known_counts) == len(counts)
    if not whole_bins or len(edges) != len(counts) + 1 or not sum(known_counts):
        return
    bars = UNICODE_BARS if page.can_show(UNICODE_BARS) else ASCII_BARS
    page.heading("Token gaps, log scale; any mark is at least one gap")
    for line in histogram_lines(known_edges, known_counts, page.width - 2, bars):
        page.verbatim(line)
    page.gap()


def _pace(page: Page, summary: Summary) -> None:
    # What the client added stands with the instrument, below.
    client = words.client_words(summary)
    page.heading("In words")
    page.bullets(
        [said for said in words.verdict_words(summary) if said != client]
        + words.reader_words(summary)
    )
    page.gap()


def _peers(page: Page, summary: Summary) -> None:
    groups = peer_groups(summary)
    if not groups:
        return
    # A narrow page keeps the names legible instead.
    kept = (0, 1, 2, 3) if page.width >= ALL_READINGS else (1, 2)
    own = [ms(figure) for figure in own_reading(summary).figures_ms]
    rows = [(["legato"], own), *(([", ".join(g.names), *g.notes], g.shown) for g in groups)]
    page.heading("What other tools would have printed: ITL, and mean TTFT")
    page.readings(
        [("mean", "p50", "p99", "TTFT")[column] for column in kept],
        [(names, [figures[column] for column in kept]) for names, figures in rows],
    )
    page.line(
        f"Their formulas on our arrival times. Tools of one kind within {percent(AGREEMENT)} share"
        f" a row; {APPROXIMATE} is approximate."
    )
    page.gap()


def _slo(page: Page, summary: Summary) -> None:
    judged = items(summary, "goodput", "conditions")
    if not judged:
        return
    page.heading("SLO")
    page.labelled([(str(one["condition"]), SLO_WORDS[one["verdict"]]) for one in judged])
    share, rate = number(summary, "goodput", "share"), number(summary, "goodput", "requests_per_s")
    if share is not None:
        beside = "" if rate is None else f", {significant(rate)} of them a second"
        page.line(f"{percent(share)} of requests met every condition by themselves{beside}")
    page.gap()


def _failures(page: Page, summary: Summary) -> None:
    failures = failure_lines(summary)
    if not failures:
        return
    page.heading("Failures")
    page.labelled(failures)
    page.gap()


def _instrument(page: Page, summary: Summary) -> None:
    lines = instrument_lines(summary)
    if not lines:
        return
    page.heading("The instrument")
    page.labelled(lines)
    page.gap()


def _next(page: Page, summary: Summary) -> None:
    verdict, reasons, steps = words.verdict(summary), words.reasons(summary), advice(summary)
    if reasons:
        page.heading(f"Why {verdict}")
        page.bullets(reasons)
        page.gap()
    if steps:
        page.heading("Where to look")
        page.bullets(steps)
        page.gap()
    paths = recordings(summary)
    command, purpose = next_command(summary)
    command = as_typed(command)
    page.labelled(
        [*([("recording", ", ".join(paths))] if paths else []), ("next", command), ("", purpose)]
    )
