"""Finds where one HTTP/1.1 response ends, and where its body bytes are, without parsing a payload.

The same framer runs on the hot path (only the end matters) and in decode (the spans matter). It
looks at heads, chunk-size lines and trailers; it must never look for a terminator inside a body.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from mmap import mmap

Buffer = bytes | mmap

MAX_HEAD_BYTES = 256 * 1024
MAX_LINE_BYTES = 16 * 1024

_SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")
_LENGTH = re.compile(r"[0-9]{1,18}")
_BLANK_LINE = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [^\r\n]*)?\r?\n")


class State(IntEnum):
    HEAD = 0
    SIZE = 1  # at the start of, or inside, a chunk-size line
    DATA = 2  # inside a chunk's data
    CRLF = 3  # after a chunk's data
    TRAILER = 4
    LENGTH = 5  # inside a body of known length
    CLOSE = 6  # inside a body that ends with the connection
    DONE = 7
    BROKEN = 8


@dataclass(slots=True)
class Head:
    """A response's status line and header fields, names in lower case."""

    status: int
    minor_version: int  # of HTTP/1
    fields: dict[str, str] = field(default_factory=dict)


class Framer:
    """One response. `feed` consumes bytes; `state` says where it stands."""

    __slots__ = ("_left", "_line", "error", "head", "spans", "state")

    def __init__(self, spans: list[tuple[int, int]] | None = None) -> None:
        self.state = State.HEAD
        self.head: Head | None = None
        self.error = ""
        self.spans = spans  # where body bytes lie in what was fed last; kept only if asked for
        self._left = 0
        self._line = b""

    def feed(self, buffer: Buffer, start: int, end: int) -> int:
        """Consume `buffer[start:end]`; returns where the response ended, or `end`."""
        position = start
        while position < end:
            state = self.state
            if state == State.SIZE:
                position = self._size(buffer, position, end)
            elif state == State.DATA:
                position = self._data(position, end)
                # The usual case, inlined: the chunk ends here, with its line end in this read.
                if self._left == 0:
                    if buffer[position : position + 2] == b"\r\n" and position + 2 <= end:
                        position += 2
                        self.state = State.SIZE
                    else:
                        self.state = State.CRLF
            elif state == State.CRLF:
                position = self._crlf(buffer, position, end)
            elif state == State.LENGTH:
                position = self._data(position, end)
                if self._left == 0:
                    self.state = State.DONE
            elif state == State.CLOSE:
                self._left = end - position
                position = self._data(position, end)
            elif state == State.HEAD:
                position = self._head(buffer, position, end)
            elif state == State.TRAILER:
                position = self._trailer(buffer, position, end)
            else:
                break
        return position

    def eof(self) -> None:
        """The connection ended: fine where that is what ends the body."""
        if self.state == State.CLOSE:
            self.state = State.DONE

    def keeps_alive(self) -> bool:
        """May the connection carry another request after this response?"""
        if self.state != State.DONE or self.head is None:
            return False
        fields = self.head.fields
        delimited = "content-length" in fields or _is_chunked(fields) or self.head.status == 204
        wishes = [wish.strip() for wish in fields.get("connection", "").lower().split(",")]
        if self.head.minor_version == 0:
            return delimited and "keep-alive" in wishes
        return delimited and "close" not in wishes

    # --- the parts of a response ------------------------------------------------------------

    def _break(self, reason: str, position: int) -> int:
        self.state = State.BROKEN
        self.error = reason
        return position

    def _data(self, position: int, end: int) -> int:
        stop = min(position + self._left, end)
        self._left -= stop - position
        if self.spans is not None:
            self.spans.append((position, stop))
        return stop

    def _size(self, buffer: Buffer, position: int, end: int) -> int:
        if not self._line:
            match = _SIZE_LINE.match(buffer, position, end)
            if match and match.end() - position <= MAX_LINE_BYTES:
                self._begin_chunk(int(match[1], 16))
                return match.end()
        line, position = self._read_line(buffer, position, end)
        if line is not None:
            match = _SIZE_LINE.fullmatch(line)
            if match is None:
                return self._break(f"bad chunk size {line[:20]!r}", position)
            self._begin_chunk(int(match[1], 16))
        return position

    def _begin_chunk(self, size: int) -> None:
        self._left = size
        self.state = State.DATA if size else State.TRAILER

    def _crlf(self, buffer: Buffer, position: int, end: int) -> int:
        line, position = self._read_line(buffer, position, min(end, position + 2))
        if line is None:
            if len(self._line) >= 2:
                return self._break("a chunk is longer than its size says", position)
        elif line in (b"\r\n", b"\n"):
            self.state = State.SIZE
        else:
            return self._break("a chunk is longer than its size says", position)
        return position

    def _trailer(self, buffer: Buffer, position: int, end: int) -> int:
        line, position = self._read_line(buffer, position, end)
        if line in (b"\r\n", b"\n"):
            self.state = State.DONE
        return position

    def _read_line(self, buffer: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
        """A whole line, or None with what there is of it kept for the next read."""
        newline = buffer.find(b"\n", position, end)
        stop = end if newline < 0 else newline + 1
        line = self._line + buffer[position:stop]
        if len(line) > MAX_LINE_BYTES:
            return None, self._break("a chunk-size or trailer line never ends", stop)
        if newline < 0:
            self._line = line
            return None, stop
        self._line = b""
        return line, stop

    def _head(self, buffer: Buffer, position: int, end: int) -> int:
        known = len(self._line)
        text = self._line + buffer[position:end]
        if text[:7] != b"HTTP/1."[: len(text)]:
            return self._break(f"this is not HTTP: {text[:20]!r}", position)
        end_of_head = _BLANK_LINE.search(text, max(0, known - 2))
        if end_of_head is None:
            self._line = text
            if len(text) > MAX_HEAD_BYTES:
                return self._break("the response head never ends", position)
            return end
        self._line = b""
        blank = end_of_head.end()
        position += blank - known
        status = _STATUS_LINE.match(text)
        if status is None:
            line = text.partition(b"\n")[0]
            return self._break(f"bad status line {line[:40]!r}", position)
        self._begin_body(Head(int(status[2]), int(status[1]), _fields(text[status.end() : blank])))
        return position

    def _begin_body(self, head: Head) -> None:
        if 100 <= head.status < 200:
            return  # an interim response: the real head follows
        self.head = head
        length = head.fields.get("content-length")
        if head.status in (204, 304):
            self.state = State.DONE
        elif _is_chunked(head.fields):
            self.state = State.SIZE
        elif length is None:
            self.state = State.CLOSE
        elif not _LENGTH.fullmatch(length):
            self._break(f"bad Content-Length {length[:40]!r}", 0)
        else:
            self._left = int(length)
            self.state = State.LENGTH if self._left else State.DONE


def _is_chunked(fields: dict[str, str]) -> bool:
    return fields.get("transfer-encoding", "").lower().split(",")[-1].strip() == "chunked"


def _fields(block: bytes) -> dict[str, str]:
    fields = {}
    for line in block.split(b"\n"):
        name, colon, value = line.partition(b":")
        if colon:
            fields[name.strip().decode("latin-1").lower()] = value.strip().decode("latin-1")
    return fields
