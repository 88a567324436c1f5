"""A note: one write of an answer, when it is due and what it completes."""

from __future__ import annotations

from typing import NamedTuple

# What the server does after the write.
GO = 0  # waits for the next note
END = 1  # the answer is whole
CLOSE = 2  # closes the connection in the middle of the answer
RESET = 3  # resets it
SILENT = 4  # sends nothing more and leaves the connection open

Event = tuple[int, int]  # (kind, tokens)


class Note(NamedTuple):
    """One write; without data it is only a wait. `wait_ns` counts from the previous deadline."""

    wait_ns: int
    data: bytes
    events: tuple[Event, ...]
    action: int = GO


class Piece(NamedTuple):
    """Bytes of one event, which is complete after `event_bytes` of them."""

    data: bytes
    event: Event
    event_bytes: int


def joined(wait_ns: int, lead: bytes, pieces: list[Piece], action: int = GO) -> Note:
    """All pieces in one write."""
    data = lead + b"".join([piece.data for piece in pieces])
    return Note(wait_ns, data, tuple(piece.event for piece in pieces), action)


def cut(wait_ns: int, piece: Piece, at: int) -> tuple[Note, Note]:
    """One piece in two writes; the event belongs to the write that completes it."""
    early = (piece.event,) if at >= piece.event_bytes else ()
    late = () if early else (piece.event,)
    return Note(wait_ns, piece.data[:at], early), Note(0, piece.data[at:], late)
