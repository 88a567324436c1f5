"""Splits a response body into events as they complete: server-sent events or lines of JSON.

Lines of server-sent events may end in LF, CRLF or CR; comments and fields other than `data` are
dropped; the `data` lines of one event are joined by LF. An event is complete at its blank line.
"""

from __future__ import annotations

MAX_EVENT_BYTES = 64 * 1024 * 1024


class EventTooLongError(Exception):
    """An event that never ends."""


class ServerSentEvents:
    """Incremental splitter: `feed` returns the data of the events that these bytes completed."""

    __slots__ = ("_held_cr", "_pieces", "_size", "ended")

    def __init__(self) -> None:
        self.ended = False  # what was fed last ended with an event, not with a comment or a part
        self._pieces: list[bytes] = []  # of the event that is not complete yet
        self._size = 0
        self._held_cr = False  # the last byte was CR: an LF that follows belongs to it

    def feed(self, data: bytes) -> list[bytes]:
        if (
            not self._size
            and not self._held_cr
            and data.startswith(b"data: ")
            and data.find(b"\n") == len(data) - 2
            and data.endswith(b"\n\n")
            and b"\r" not in data
        ):
            self.ended = True
            return [data[6:-2]]  # the usual case: one whole event of one line
        self.ended = False
        if b"\r" in data or self._held_cr:
            data = self._unify(data)
        if self._size:
            # Only the seam can complete what is held: look at its last byte and at what is new.
            seam = self._pieces[-1][-1:] + data
            if b"\n\n" not in seam:
                self._hold(data)
                return []
            data = b"".join(self._pieces) + data
            self._pieces.clear()
            self._size = 0
        blocks = data.split(b"\n\n")
        if blocks[-1]:
            self._hold(blocks.pop())
        else:
            blocks.pop()
            self.ended = bool(blocks) and _data_of(blocks[-1]) is not None
        return [event for block in blocks if (event := _data_of(block)) is not None]

    def finish(self) -> list[bytes]:
        """At the end of the body: an event whose blank line never came, if it has data."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        event = _data_of(data.rstrip(b"\n"))
        return [] if event is None else [event]

    def _hold(self, data: bytes) -> None:
        if data:
            self._pieces.append(data)
            self._size += len(data)
            if self._size > MAX_EVENT_BYTES:
                self._pieces.clear()
                self._size = 0
                raise EventTooLongError

    def _unify(self, data: bytes) -> bytes:
        """All line ends to LF."""
        if not data:
            return data
        if self._held_cr and data[:1] == b"\n":
            data = data[1:]
            if not data:
                self._held_cr = False
                return data
        self._held_cr = data[-1:] == b"\r"
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class JsonLines:
    """Incremental splitter of a JSON value a line, with the face of `ServerSentEvents`; empty
    lines are keep-alives."""

    __slots__ = ("_pieces", "_size", "ended")

    def __init__(self) -> None:
        self.ended = False
        self._pieces: list[bytes] = []  # of the line that is not complete yet
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        head, line_end, rest = data.rpartition(b"\n")
        self.ended = False
        if not line_end:
            self._hold(data)
            return []
        if self._size:
            head = b"".join(self._pieces) + head
            self._pieces.clear()
            self._size = 0
        self.ended = not rest and bool(head[head.rfind(b"\n") + 1 :].strip())
        self._hold(rest)
        return _lines(head)

    def finish(self) -> list[bytes]:
        """At the end of the body: a line whose end never came."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return _lines(data)

    def _hold(self, data: bytes) -> None:
        if data:
            self._pieces.append(data)
            self._size += len(data)
            if self._size > MAX_EVENT_BYTES:
                self._pieces.clear()
                self._size = 0
                raise EventTooLongError


def _lines(data: bytes) -> list[bytes]:
    return [stripped for line in data.split(b"\n") if (stripped := line.strip())]


def _data_of(block: bytes) -> bytes | None:
    """The data of one event, or None for a block without any."""
    if block.startswith(b"data: ") and b"\n" not in block:
        return block[6:] or None
    lines = []
    for line in block.split(b"\n"):
        if line.startswith(b"data:"):
            lines.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            lines.append(b"")
    return b"\n".join(lines) or None
