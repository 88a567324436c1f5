"""What `legato calibrate` shows: a row a level as it is measured, then the conclusion."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TextIO

from legato.calibrate.level import Figures
from legato.legible import legible

_HEAD = (
    "                   kernel stamps, µs        read times, µs              client",
    "streams × tok/s   p50   p99    max     p50    p99     max  exact merged  µs/ev",
)


class Table:
    """Prints to one stream, 80 columns at most."""

    def __init__(self, stream: TextIO, tls: bool) -> None:
        self._stream = stream
        self._tls = tls

    def begin(self) -> None:
        mode = "TLS" if self._tls else "plain HTTP"
        self._say(f"|recorded gap − true gap|, {mode} over loopback, against the metronome's log")
        for line in _HEAD:
            self._say(line)

    def row(self, found: Figures) -> None:
        level = f"{found.level.streams} × {found.level.tokens_per_s:g}"
        kernel = "".join(
            _cell(found.kernel_us[n], w) for n, w in (("p50", 6), ("p99", 6), ("max", 7))
        )
        user = "".join(_cell(found.user_us[n], w) for n, w in (("p50", 8), ("p99", 7), ("max", 8)))
        self._say(
            f"{level:>15}{kernel}{user}"
            f"{found.exact_share:>7.1%}{found.merged_share:>7.1%}{found.cpu_us_per_event:>7.1f}"
        )
        for complaint in found.complaints:
            self._say(f"                not trustworthy: {complaint}")

    def end(self, result: dict[str, Any]) -> None:
        limit, floor = result["limit"], result["floor_us"]
        self._say("")
        if limit is None:
            self._say("This machine is not trustworthy at any level measured: is it busy?")
            return
        self._say(
            f"Trustworthy up to {limit['events_per_s']:,.0f} events/s; up to there a gap errs by"
        )
        self._say(f"{floor['p50']:.1f} µs (p50), {floor['p99']:.0f} µs (p99); {result['label']}.")

    def saved(self, path: Path) -> None:
        self._say("Kept as the floor that legato bench adds to the error it states:")
        self._say(f"  {path}")

    def _say(self, line: str) -> None:
        print(legible(line, self._stream.encoding or "ascii"), file=self._stream, flush=True)


def _cell(value_us: float | None, width: int) -> str:
    if value_us is None:
        return f"{'–':>{width}}"
    return f"{value_us:>{width}.1f}" if value_us < 100 else f"{value_us:>{width},.0f}"
