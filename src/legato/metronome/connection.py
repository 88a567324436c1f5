"""One connection of the metronome and the answer that it is in the middle of.

State only; the server is the one that acts on it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

from legato.metronome.note import Note
from legato.metronome.request import RequestParser
from legato.metronome.tls import TlsSide


class Connection:
    """A client's connection."""

    __slots__ = (
        "closes", "fd", "parser", "rest", "silent", "sock", "stamp_ns", "tls", "turn",
    )  # fmt: skip

    def __init__(self, sock: socket.socket, tls: TlsSide | None) -> None:
        # of the connection
        self.sock = sock
        self.fd = sock.fileno()
        self.tls = tls
        self.parser = RequestParser()
        self.silent = False  # a fault: whatever comes is ignored
        # of the last read: the kernel's wall-clock stamp, 0 where it gave none
        self.stamp_ns = 0
        # of the answer
        self.turn: Turn | None = None
        self.closes = False  # when everything was sent
        self.rest: memoryview | None = None  # what the socket had no room for


class Turn:
    """One answer: the notes that are left and where it is in them."""

    __slots__ = (
        "before_ns", "connection", "deadline_ns", "events", "held_ns", "note", "notes", "number",
        "over", "seal", "send", "writes",
    )  # fmt: skip

    def __init__(
        self, connection: Connection, number: int, notes: Iterator[Note], held_ns: int
    ) -> None:
        self.connection = connection
        self.number = number
        self.notes = notes
        self.send: Callable[[bytes], int] = connection.sock.send
        self.seal = connection.tls.seal if connection.tls else None
        self.note: Note = next(notes)
        self.held_ns = held_ns  # what the room had been held up by when this was last looked at
        self.deadline_ns = 0
        self.before_ns = 0  # the clock before the write that is not finished
        self.events = 0
        self.writes = 0
        self.over = False
