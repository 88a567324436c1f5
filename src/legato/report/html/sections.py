"""The page's words and tables, as markup: what the terminal report says, with every interval.

It lays out; the sentences come from the same functions as the terminal's, so the two never differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from legato.report import words
from legato.report.advice import advice
from legato.report.failures import failure_lines
from legato.report.figures import UNKNOWN, at_most_ms, ms, of, percent, significant, whole, within
from legato.report.html.markup import Child, Markup, element, pairs, table, together
from legato.report.html.stalls import Stall
from legato.report.instrument import instrument_lines
from legato.report.lookup import Summary, count, interval, number, value
from legato.report.peers import AGREEMENT, APPROXIMATE, Reading, own_reading, peer_groups

ROWS = (
    ("ITL", "itl_ms", "token gap, after the first token"),
    ("ITL, zeros", "itl_zeros_ms", "the first token of a chunk takes the whole gap"),
    ("chunk gap", "chunk_gap_ms", "chunk to chunk, whatever it holds"),
    ("TPOT", "tpot_ms", "a stream's mean, first token left out"),
    ("TPOT, incl.", "tpot_incl_ms", "a stream's mean, first token included"),
    ("TTFT", "ttft_ms", "send to first token"),
    ("TTFT, intended", "ttft_intended_ms", "from when the request should have left"),
    ("TTFT, any", "ttft_any_ms", "send to the first chunk of any kind"),
    ("decode", "decode_ms", "first token to last"),
    ("E2E", "e2e_ms", "send to last token"),
)
COLUMNS = ("p50", "p90", "p95", "p99", "p999", "max", "mean", "std")
SETTINGS = (
    ("run", "settings"),
    ("host", "host"),
    ("versions", "versions"),
    ("calibration", "calibration"),
)
ECHOES = {
    "itl_zeros_ms": "itl_ms",
    "chunk_gap_ms": "itl_ms",
    "ttft_intended_ms": "ttft_ms",
    "ttft_any_ms": "ttft_ms",
}
HEADINGS = {"p999": "p99.9"}


def header(summary: Summary) -> Markup:
    verdict = words.verdict(summary)
    return element(
        "header",
        element("p", words.subject(summary), class_="subject"),
        element(
            "h1",
            element("span", verdict.upper(), class_=f"badge {verdict}"),
            " ",
            words.headline(summary),
        ),
        _bullets(words.reasons(summary)),
        _tiles(summary),
    )


def _tiles(summary: Summary) -> Markup | None:
    """The few figures that most people came for."""
    system = number(summary, "tps", "system")
    error_us = number(summary, "instrument", "error_us", "p99")
    calibrated = value(summary, "run", "calibration") is not None
    tiles = [
        _time_tile(summary, "ITL p50", "itl_ms", "p50"),
        _time_tile(summary, "ITL p99", "itl_ms", "p99"),
        _time_tile(summary, "longest gap", "chunk_gap_ms", "max"),
        _time_tile(summary, "TTFT p50", "ttft_ms", "p50"),
        None if system is None else ("tokens/s in all", significant(system), ""),
        None
        if error_us is None
        else (
            "own error, p99",
            f"≤ {at_most_ms(error_us / 1000)}",
            "" if calibrated else "not calibrated",
        ),
    ]
    shown = [tile for tile in tiles if tile]
    if not shown or not words.measured(summary):
        return None
    return element(
        "ul",
        *(
            element("li", element("span", name), element("strong", figure), element("small", below))
            for name, figure, below in shown
        ),
        class_="tiles",
    )


def _time_tile(summary: Summary, name: str, key: str, column: str) -> tuple[str, str, str] | None:
    figure_ms = number(summary, key, column)
    if figure_ms is None:
        return None
    ends_ms = interval(summary, key, column)
    around = "" if ends_ms is None else within(*ends_ms, figure_ms, words.error_ms(summary, column))
    return name, ms(figure_ms), f"95 %: {around}" if around else ""


def figures(summary: Summary) -> Markup:
    rows: list[list[Child]] = [
        [
            together([name, element("small", meaning)]),
            *(_cell(summary, key, column) for column in COLUMNS),
            whole(count(summary, key, "n")),
        ]
        for name, key, meaning in ROWS
        if number(summary, key, "mean") is not None and not _echoes(summary, key)
    ]
    return together(
        [
            table(
                ["", *(HEADINGS.get(column, column) for column in COLUMNS), "samples"],
                rows,
                class_="figures",
            ),
            element(
                "p",
                "Below a figure: its 95 % confidence interval, which respects that gaps of one"
                " stream, and of streams open together, are not independent. "
                f"{UNKNOWN} means too few samples: 10 of 5 streams must lie beyond a percentile.",
                class_="note",
            ),
        ]
    )


def _echoes(summary: Summary, key: str) -> bool:
    """Whether a row would print what the row it is a variant of prints."""
    other = ECHOES.get(key)
    return other is not None and all(
        _cell(summary, key, column) == _cell(summary, other, column) for column in COLUMNS
    )


def _cell(summary: Summary, key: str, column: str) -> Markup:
    figure_ms, ends_ms = number(summary, key, column), interval(summary, key, column)
    around = (
        ""
        if figure_ms is None or ends_ms is None
        else within(*ends_ms, figure_ms, words.error_ms(summary, column))
    )
    return together([ms(figure_ms), element("small", around) if around else None])


def smoothness(summary: Summary, longest: Sequence[Stall]) -> Markup:
    share = number(summary, "smoothness", "stall_ratio")
    burst = number(summary, "smoothness", "burst_share")
    cv, per_chunk = number(summary, "smoothness", "cv"), number(summary, "tokens_per_chunk", "mean")
    lines = [
        ("time in stalls", None if share is None else percent(share)),
        ("tokens that came together", None if burst is None else percent(burst)),
        ("variation within a stream", None if cv is None else f"{percent(cv)} of its mean gap"),
        ("tokens a chunk", None if per_chunk is None else significant(per_chunk)),
    ]
    said = [*words.pace_words(summary), *words.reader_words(summary)]
    return together(
        [
            _bullets([*map(_sentence, said), *advice(summary)]),
            pairs((label, figure) for label, figure in lines if figure),
            _longest(longest, count(summary, "smoothness", "stall_count")),
        ]
    )


def _longest(stalls: Sequence[Stall], total: int) -> Markup | None:
    if not stalls:
        return None
    return together(
        [
            element("h3", f"The longest of {total:,} stalls" if total > 1 else "The stall"),
            table(
                ["stream", "gap", "ended, into the run", "before token", "streams stalled then"],
                [
                    [
                        element(
                            "button",
                            str(stall.stream_id),
                            type="button",
                            class_="jump",
                            data_row=str(stall.row),
                            title="Show it in the piano roll",
                        ),
                        ms(stall.gap_ms),
                        f"{stall.at_s:,.3f} s",
                        whole(stall.position),
                        whole(stall.together),
                    ]
                    for stall in stalls
                ],
            ),
        ]
    )


def tools(summary: Summary) -> Markup:
    rows = [
        ["legato", *_times(own_reading(summary)), ""],
        *(
            [", ".join(group.names), *group.shown, "; ".join(group.notes)]
            for group in peer_groups(summary)
        ),
    ]
    return together(
        [
            table(["tool", "mean", "p50", "p99", "TTFT mean", "why it differs"], rows),
            element(
                "p",
                "Their formulas on our arrival times, so with a perfect clock: a tool's own delay"
                " comes on top. A tool that prints no ITL is shown by its TPOT. Tools of one"
                f" kind within {percent(AGREEMENT)} share a row; {APPROXIMATE} is approximate.",
                class_="note",
            ),
        ]
    )


def _times(reading: Reading) -> list[str]:
    return [ms(figure) for figure in reading.figures_ms]


def failures(summary: Summary) -> Markup | None:
    lines = failure_lines(summary)
    if lines:
        return pairs(lines)
    total = count(summary, "streams", "total")
    return element("p", f"None: {of(total, 'stream')}, all ended well.") if total else None


def instrument(summary: Summary) -> Markup | None:
    return pairs(instrument_lines(summary))


def settings(summary: Summary) -> Markup | None:
    """Everything the recording says of how it was made, unknown values left out."""
    groups = [(name, value(summary, "run", key)) for name, key in SETTINGS]
    shown = [
        together([element("h3", name), pairs(_flat(group))])
        for name, group in groups
        if isinstance(group, Mapping) and _flat(group)
    ]
    return together(shown) if shown else None


def _flat(group: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for name, held in group.items():
        if isinstance(held, Mapping):
            lines += _flat(held, f"{before}{name}.")
        elif held not in (None, [], ""):
            lines.append((f"{before}{name}".replace("_", " "), _shown(held)))
    return lines


def _shown(held: Any) -> str:
    if isinstance(held, bool):
        return "yes" if held else "no"
    return f"{held:.6g}" if isinstance(held, float) else str(held)


def _bullets(sentences: Sequence[str]) -> Markup | None:
    return element("ul", *(element("li", said) for said in sentences)) if sentences else None


def _sentence(said: str) -> str:
    return f"{said[:1].upper()}{said[1:]}."
