"""Faults: the notes that take the place of an answer, or of one of its writes.

Pure. A fault is met by the requests that the pattern's `fault_every` picks and by no other.
"""

from __future__ import annotations

from collections.abc import Iterator

from legato.metronome import envelope, payload
from legato.metronome.note import CLOSE, END, RESET, SILENT, Note, Piece, joined
from legato.metronome.pace import NS_PER_MS
from legato.metronome.pattern import Pattern
from legato.metronome.truth import OTHER

# Faults that answer instead of the stream, and faults that strike a stream at a token. The
# others are decided elsewhere: wrong_type, no_done and no_end by the score, refuse by the server.
INSTEAD = frozenset({"http_error", "hang", "garbage_head"})
DURING = frozenset(
    {"reset", "close", "half_event", "garbage", "garbage_event", "long_line", "trickle"}
)

GARBAGE = bytes(range(256)) * 2
GARBAGE_DATA = b'{"id":"garbage","choices":[{"delta":'


def position(pattern: Pattern, tokens: int) -> int:
    """The token at which a fault strikes."""
    at = tokens // 2 if pattern.fault_at is None else pattern.fault_at
    return min(at, tokens - 1)


def instead(name: str, pattern: Pattern, delay_ns: int, *, keep_alive: bool) -> Iterator[Note]:
    """The whole answer of a request that meets the fault."""
    if name == "hang":
        yield Note(delay_ns, b"", (), SILENT)
    elif name == "garbage_head":
        yield Note(delay_ns, GARBAGE, (), CLOSE)
    else:
        yield Note(delay_ns, http_error(pattern, keep_alive=keep_alive), (), END)


def http_error(pattern: Pattern, *, keep_alive: bool) -> bytes:
    status = pattern.fault_status
    message = f"The metronome was told to answer with status {status}."
    fields: tuple[bytes, ...] = ()
    if status in (429, 503):
        fields = (b"Retry-After: %d" % pattern.retry_after_s,)
    body = payload.error(status, message)
    return envelope.whole(status, body, keep_alive=keep_alive, fields=fields)


def during(
    name: str, pattern: Pattern, wait_ns: int, lead: bytes, pieces: list[Piece]
) -> Iterator[Note]:
    """What is sent instead of the write of `pieces`; an action other than GO ends the answer."""
    *earlier, struck = pieces
    if name == "reset":
        yield Note(wait_ns, lead, (), RESET)
    elif name == "close":
        yield Note(wait_ns, lead, (), CLOSE)
    elif name == "half_event":
        before = joined(wait_ns, lead, earlier)
        half = struck.data[: struck.event_bytes // 2]
        yield Note(wait_ns, before.data + half, before.events, SILENT)
    elif name == "garbage":
        yield Note(wait_ns, lead + GARBAGE, ())
        yield joined(0, b"", pieces)
    elif name == "garbage_event":
        bad = envelope.event(pattern)(GARBAGE_DATA)
        before = joined(wait_ns, lead, pieces)
        yield Note(wait_ns, before.data + bad, (*before.events, (OTHER, 0)))
    elif name == "trickle":
        yield from _trickle(pattern, wait_ns, joined(wait_ns, lead, earlier), struck)
    else:
        yield joined(wait_ns, lead, pieces)


def _trickle(pattern: Pattern, wait_ns: int, before: Note, struck: Piece) -> Iterator[Note]:
    """One event a byte at a time."""
    if before.data:
        yield before
        wait_ns = 0
    step_ns = round(pattern.trickle_ms * NS_PER_MS)
    for at in range(len(struck.data)):
        completes = at + 1 == struck.event_bytes
        yield Note(wait_ns, struck.data[at : at + 1], (struck.event,) if completes else ())
        wait_ns = step_ns
