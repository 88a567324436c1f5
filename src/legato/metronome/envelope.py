"""Around the JSON: the SSE event, the HTTP chunk, the response's head and end.

Pure. Each style is legal HTTP/1.1 and legal SSE; what breaks the rules is in `fault`.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from legato.metronome.pattern import Pattern

DONE_DATA = b"[DONE]"
LAST_CHUNK = b"0\r\n\r\n"


def head(status: int, fields: tuple[bytes, ...], *, keep_alive: bool) -> bytes:
    """The head of a response."""
    reason = HTTPStatus(status).phrase.encode() if status in _STATUSES else b"Unknown"
    connection = b"Connection: keep-alive" if keep_alive else b"Connection: close"
    lines = (b"HTTP/1.1 %d %b" % (status, reason), b"Server: legato-metronome", *fields, connection)
    return b"\r\n".join(lines) + b"\r\n\r\n"


_STATUSES = frozenset(int(status) for status in HTTPStatus)


def whole(status: int, body: bytes, *, keep_alive: bool, fields: tuple[bytes, ...] = ()) -> bytes:
    """A response in one piece, with JSON in it."""
    length = b"Content-Length: %d" % len(body)
    all_fields = (b"Content-Type: application/json", length, *fields)
    return head(status, all_fields, keep_alive=keep_alive) + body


def stream_head(pattern: Pattern, *, keep_alive: bool) -> bytes:
    """The head of a streamed response."""
    fields: tuple[bytes, ...] = (
        b"Content-Type: text/event-stream; charset=utf-8",
        b"Cache-Control: no-cache",
    )
    if pattern.framing == "chunked":
        fields += (b"Transfer-Encoding: chunked",)
        if pattern.trailers:
            fields += (b"Trailer: X-Metronome-Pulse",)
    return head(200, fields, keep_alive=keep_alive and pattern.framing == "chunked")


def event(pattern: Pattern) -> Callable[[bytes], bytes]:
    """A function from an event's data to its bytes on the wire, HTTP chunk included."""
    plain = not (pattern.comments or pattern.chunk_extensions or pattern.terminators)
    if plain and pattern.line_ending == "lf" and pattern.framing == "chunked":
        return _plain_event
    return lambda data: chunk(pattern, sse(pattern, data))


def sse(pattern: Pattern, data: bytes) -> bytes:
    """An SSE event with this data."""
    ending = b"\r\n" if pattern.line_ending == "crlf" else b"\n"
    before = b": a comment" + ending if pattern.comments else b""
    # A line `0` is a field that SSE ignores; with the blank line after it, it looks like the
    # last chunk of a body.
    after = LAST_CHUNK if pattern.terminators else ending
    return before + b"data: " + data + ending + after


def _plain_event(data: bytes) -> bytes:
    return b"%x\r\ndata: %b\n\n\r\n" % (len(data) + 8, data)


def chunk(pattern: Pattern, payload: bytes) -> bytes:
    """Bytes of the body as an HTTP chunk, or as they are where the end is the connection's."""
    if pattern.framing == "close":
        return payload
    extension = b';pulse="0;1"' if pattern.chunk_extensions else b""
    return b"%x%b\r\n%b\r\n" % (len(payload), extension, payload)


def body_end(pattern: Pattern) -> bytes:
    """What ends the body."""
    if pattern.framing == "close":
        return b""
    if pattern.trailers:
        return b"0\r\nX-Metronome-Pulse: 1\r\n\r\n"
    return LAST_CHUNK
