"""The display of a run while it goes on: two lines on stderr, redrawn at most four times a second.

It draws in the caller's thread and starts none of its own, so that it costs the measurement
nothing between updates; where stderr is not a terminal it prints nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from legato.report.figures import ms, of, whole

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

REDRAW_S = 0.25
_BAR_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A running bench at one moment; gaps are those between reads, before anything is decoded."""

    elapsed_s: float
    open_streams: int
    asked_streams: int | None
    done: int
    total: int | None
    events_per_s: float
    gap_p50_ms: float | None
    gap_p99_ms: float | None
    errors: int
    lag_p99_ms: float | None
    phase: str  # "warm-up", "measuring", "draining" or "decoding"


class LiveView:
    """A context manager that shows the latest `Snapshot`; it leaves nothing behind."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._live: Live | None = None
        self._drawn_s = float("-inf")
        self._phase = ""

    def __enter__(self) -> LiveView:
        from rich.console import Console
        from rich.live import Live

        console = self._console or Console(stderr=True)
        if console.is_terminal and not console.is_dumb_terminal:
            # stdout stays what it is: it may be carrying JSON.
            self._live = Live(
                console=console, auto_refresh=False, transient=True, redirect_stdout=False
            )
            self._live.start()
        return self

    def __exit__(self, *failure: Any) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    @property
    def shown(self) -> bool:
        """Is there a terminal to draw on? Without one a snapshot need not be taken."""
        return self._live is not None

    def update(self, snapshot: Snapshot) -> None:
        """Show `snapshot`, unless the last was drawn a moment ago; a new phase shows at once."""
        if self._live is None:
            return
        now_s = time.monotonic()
        if now_s - self._drawn_s < REDRAW_S and snapshot.phase == self._phase:
            return
        self._drawn_s, self._phase = now_s, snapshot.phase
        self._live.update(drawing(snapshot, self._live.console), refresh=True)


def drawing(snapshot: Snapshot, console: Console) -> Text:
    """Two lines, cut at the console's edge; one while decoding, when nothing is measured."""
    from rich.text import Text

    from legato.legible import legible

    if snapshot.phase == "decoding":
        lines = [f"decoding {of(snapshot.done, 'stream')}…"]
    else:
        lines = [_progress_line(snapshot), _figures_line(snapshot)]
    shown = Text("\n", no_wrap=True, overflow="crop").join(
        Text(legible(line, console.encoding)) for line in lines
    )
    shown.highlight_words([snapshot.phase], style="bold")
    if snapshot.errors:
        shown.highlight_words([_errors(snapshot)], style="bold red")
    return shown


def _progress_line(snapshot: Snapshot) -> str:
    minutes, seconds = divmod(int(snapshot.elapsed_s), 60)
    asked = "" if snapshot.asked_streams is None else f" of {whole(snapshot.asked_streams)}"
    return (
        f"{snapshot.phase:<9}  {_bar(snapshot)}{minutes:d}:{seconds:02d}"
        f" · {whole(snapshot.open_streams)}{asked} streams open · {_errors(snapshot)}"
    )


def _errors(snapshot: Snapshot) -> str:
    return of(snapshot.errors, "error") if snapshot.errors else "no errors"


def _bar(snapshot: Snapshot) -> str:
    if not snapshot.total:
        return f"{whole(snapshot.done)} done · "
    filled = min(_BAR_COLUMNS, _BAR_COLUMNS * snapshot.done // snapshot.total)
    bar = "█" * filled + "░" * (_BAR_COLUMNS - filled)
    return f"{bar} {whole(snapshot.done)}/{whole(snapshot.total)} · "


def _figures_line(snapshot: Snapshot) -> str:
    parts = [
        f"{whole(snapshot.events_per_s):>7} events/s",
        f"gap p50 {ms(snapshot.gap_p50_ms)}, p99 {ms(snapshot.gap_p99_ms)}",
        f"client lag p99 {ms(snapshot.lag_p99_ms)}",
    ]
    return " · ".join(parts)
