"""The piano roll's data: a row a stream, a tick a token chunk, packed small enough for a page.

Times are rounded to a stated unit. Where there is too much, ticks and rows are thinned by a stated
rule; a stall is never left out, nor a stream that failed.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from legato.metrics.gaps import Mask
from legato.metrics.smoothness import stalled
from legato.metrics.summary import Measured
from legato.recording import STATUSES, Ints, Recording

FINE_NS, COARSE_NS = 10_000, 100_000
FINE_CHUNKS = 400_000  # up to this many chunks times are kept in the fine unit
MOST_BYTES = 4_200_000  # of packed ticks; a third more as text in the page
MOST_ROWS = 50_000

NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Roll:
    """Streams in the order they were sent; ticks of row i are `[offsets[i]:offsets[i + 1]]`."""

    unit_ns: int
    rows: Ints  # row of the recording
    stream_id: Ints
    status: Ints  # index into STATUSES
    start: Ints  # when it was sent, in units from the first send
    length: Ints  # from the send to the end, in units
    offsets: Ints
    tick: Ints  # from the stream's send, in units
    stall: Ints  # ascending indices of ticks that end a stall
    every_tick: int  # one chunk in this many is shown
    every_row: int  # one uneventful stream in this many is shown
    left_out_rows: int


def roll(recording: Recording, measured: Measured) -> Roll:
    """All of the recording that fits."""
    rows, every_row, left_out = _rows(recording, measured)
    every_tick = 1
    while True:
        made = _made(recording, measured, rows, every_tick, every_row, left_out)
        size = len(_varint(_steps(made)))
        if size <= MOST_BYTES or every_tick > 1000:
            return made
        every_tick = max(every_tick + 1, every_tick * size // MOST_BYTES)


def packed(made: Roll) -> dict[str, Any]:
    """The roll as JSON: columns of variable-length integers in base64, times as differences."""
    return {
        "unit_ms": made.unit_ns / NS_PER_MS,
        "statuses": list(STATUSES),
        "every_tick": made.every_tick,
        "every_row": made.every_row,
        "left_out_rows": made.left_out_rows,
        "rows": len(made.rows),
        "stream_id": _text(made.stream_id),
        "status": _text(made.status),
        "start": _text(np.diff(made.start, prepend=0)),
        "length": _text(made.length),
        "count": _text(np.diff(made.offsets)),
        "tick": _text(_steps(made)),
        "stall": _text(np.diff(made.stall, prepend=0)),
    }


def _rows(recording: Recording, measured: Measured) -> tuple[Ints, int, int]:
    """(rows in order of sending, one uneventful stream in how many, how many left out)."""
    sent_ns = recording.ints("sent_ns")
    shown = np.flatnonzero(measured.streams & (sent_ns >= 0))
    shown = shown[np.argsort(sent_ns[shown], kind="stable")]
    every = -(-len(shown) // MOST_ROWS)
    if every <= 1:
        return shown, 1, 0
    eventful = ~measured.ok
    eventful[measured.gaps.stream[stalled(measured.gaps)]] = True
    kept = eventful[shown] | (np.arange(len(shown)) % every == 0)
    return shown[kept], every, int(np.count_nonzero(~kept))


def _made(
    recording: Recording,
    measured: Measured,
    rows: Ints,
    every_tick: int,
    every_row: int,
    left_out: int,
) -> Roll:
    unit_ns = FINE_NS if len(measured.chunks) <= FINE_CHUNKS else COARSE_NS
    ends_stall = np.zeros(len(measured.chunks), dtype=bool)
    ends_stall[measured.gaps.chunk[stalled(measured.gaps)]] = True
    chosen = _in_row_order(measured, rows, _kept(measured, ends_stall, every_tick))
    place = np.full(len(recording), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    counts = np.bincount(place[measured.chunks.stream[chosen]], minlength=len(rows))
    sent_ns, ended_ns = recording.ints("sent_ns")[rows], recording.ints("ended_ns")[rows]
    status = recording.strings("status")[rows]
    return Roll(
        unit_ns=unit_ns,
        rows=rows,
        stream_id=recording.ints("stream_id", 0)[rows],
        status=np.asarray([STATUSES.index(name) for name in status], np.int64),
        start=(sent_ns - (sent_ns[0] if len(sent_ns) else 0)) // unit_ns,
        length=np.maximum(ended_ns - sent_ns, 0) // unit_ns,
        offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        tick=measured.chunks.arrival_ns[chosen] // unit_ns,
        stall=np.flatnonzero(ends_stall[chosen]),
        every_tick=every_tick,
        every_row=every_row,
        left_out_rows=left_out,
    )


def _kept(measured: Measured, ends_stall: Mask, every_tick: int) -> Mask:
    """One chunk in `every_tick` of each stream, its first and last, and both ends of a stall."""
    opens = measured.chunks.opens
    if every_tick == 1:
        return np.ones(len(opens), dtype=bool)
    first = np.flatnonzero(opens)
    nth = np.arange(len(opens)) - np.repeat(first, np.diff(np.append(first, len(opens))))
    closes = np.append(opens[1:], True)
    starts_stall = np.append(ends_stall[1:], False)
    return np.asarray((nth % every_tick == 0) | closes | ends_stall | starts_stall, dtype=bool)


def _in_row_order(measured: Measured, rows: Ints, kept: Mask) -> Ints:
    """Indices of the kept token chunks, stream after stream in the order of `rows`."""
    stream = measured.chunks.stream
    low = np.searchsorted(stream, rows, side="left")
    lengths = np.searchsorted(stream, rows, side="right") - low
    before = np.cumsum(lengths) - lengths
    index = np.arange(int(lengths.sum())) + np.repeat(low - before, lengths)
    return np.asarray(index[kept[index]], dtype=np.int64)


def _steps(made: Roll) -> Ints:
    """Per tick the time since the tick before it in its row, or since the send."""
    steps = np.diff(made.tick, prepend=0)
    first = made.offsets[:-1][np.diff(made.offsets) > 0]
    steps[first] = made.tick[first]
    return np.maximum(steps, 0)


def _text(values: Ints) -> str:
    return base64.b64encode(_varint(values)).decode("ascii")


def _varint(values: Ints) -> bytes:
    """Unsigned LEB128: seven bits a byte, the lowest first, the top bit where more follow."""
    rest = values.astype(np.uint64)
    if not len(rest):
        return b""
    width = 1
    while int(rest.max()) >> (7 * width):
        width += 1
    columns = np.empty((len(rest), width), dtype=np.uint8)
    used: npt.NDArray[np.bool_] = np.empty((len(rest), width), dtype=bool)
    for place in range(width):
        used[:, place] = (rest > 0) | (place == 0)
        columns[:, place] = rest & np.uint64(0x7F)
        rest >>= np.uint64(7)
        columns[:, place] |= np.where(rest > 0, 0x80, 0).astype(np.uint8)
    return columns[used].tobytes()
