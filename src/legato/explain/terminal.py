"""The attribution in the terminal: a table of causes, then a sentence each. Computes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from legato.report.figures import UNKNOWN, ms, percent, whole
from legato.report.page import Page

if TYPE_CHECKING:
    from rich.console import Console

HEADS = ("goes with", "ms a token", "95 % interval", "of the mean", "slowest 1 %")


def render(explained: dict[str, Any], console: Console) -> None:
    page = Page(console)
    page.line(
        f"Mean gap {ms(explained['mean_ms'])} over {whole(explained['gaps'])} gaps of "
        f"{whole(explained['streams'])} streams"
    )
    page.gap()
    page.figures(list(HEADS), [_row(cause) for cause in explained["causes"]])
    page.line(_tail(explained["tail"]))
    page.gap()
    page.heading("In words")
    page.labelled([(cause["title"], cause["sentence"]) for cause in explained["causes"]])
    page.gap()
    if explained["advice"]:
        page.heading("To tell more")
        page.bullets(explained["advice"])
        page.gap()
    page.line(
        "This is what goes together in the recording, fitted; it is not proof of a cause. "
        "The parts add up to the mean gap."
    )


def _row(cause: dict[str, Any]) -> list[str]:
    figure, ends = cause["ms"], cause["ci95"]
    return [
        cause["title"],
        UNKNOWN if figure is None else _ms(figure),
        UNKNOWN if ends is None else f"{_ms(ends[0])} to {_ms(ends[1])}",
        UNKNOWN if cause["share"] is None else percent(_rounded(cause["share"])),
        UNKNOWN if cause["tail_share"] is None else percent(_rounded(cause["tail_share"])),
    ]


def _ms(value_ms: float) -> str:
    """To the microsecond: a fit is worth no more."""
    shown = round(value_ms, 3)
    return "0" if shown == 0 else f"{shown:,.3f}"


def _rounded(share: float) -> float:
    return round(share, 3) + 0.0


def _tail(tail: dict[str, Any] | None) -> str:
    if tail is None:
        return ""
    return (
        f"The slowest 1 % are {whole(tail['gaps'])} gaps from {ms(tail['from_ms'])} up, "
        f"{ms(tail['mean_ms'])} on average; shares are of what they are longer than the mean."
    )
