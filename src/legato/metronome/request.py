"""One HTTP/1.1 request at a time out of the bytes of a connection.

Pure: it knows no sockets and no clock. It refuses what it does not understand with a status.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024


class BadRequest(Exception):  # noqa: N818
    """What cannot be served, with the HTTP status that says why."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request."""

    method: str
    path: str
    body: bytes
    keep_alive: bool
    minor_version: int


@dataclass(frozen=True, slots=True)
class _Head:
    method: str
    path: str
    minor_version: int
    keep_alive: bool
    length: int  # -1: the body is chunked
    expects_continue: bool
    size: int


class RequestParser:
    """Collects bytes until a request is whole; bytes of the next one are kept for later."""

    __slots__ = ("_buffer", "_head", "wants_continue")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: _Head | None = None
        self.wants_continue = False

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def take(self) -> Request | None:
        """The next whole request, if there is one; raises BadRequest."""
        if self._head is None:
            self._head = _head_of(self._buffer)
            if self._head is None:
                return None
            self.wants_continue = self._head.expects_continue
        head = self._head
        if head.length >= 0:
            end = head.size + head.length
            if len(self._buffer) < end:
                return None
            body = bytes(self._buffer[head.size : end])
        else:
            found = _chunked_body(self._buffer, head.size)
            if found is None:
                return None
            body, end = found
        del self._buffer[:end]
        self._head = None
        self.wants_continue = False
        return Request(head.method, head.path, body, head.keep_alive, head.minor_version)


def _head_of(buffer: bytearray) -> _Head | None:
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > MAX_HEAD_BYTES:
            raise BadRequest(431, f"the request's head is longer than {MAX_HEAD_BYTES} bytes")
        return None
    first, *lines = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(400, "the request line is not METHOD PATH HTTP/1.1")
    minor_version = int(parts[2][-1])
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip():
            raise BadRequest(400, "a header line is not NAME: VALUE")
        headers[name.lower()] = value.strip()
    connection = headers.get("connection", "").lower()
    return _Head(
        method=parts[0],
        path=parts[1].partition("?")[0],
        minor_version=minor_version,
        keep_alive="close" not in connection if minor_version else "keep-alive" in connection,
        length=_length(headers),
        expects_continue=headers.get("expect", "").lower() == "100-continue",
        size=end + 4,
    )


def _length(headers: dict[str, str]) -> int:
    coding = headers.get("transfer-encoding", "").lower()
    if coding:
        if coding != "chunked":
            raise BadRequest(501, f"the transfer coding {coding!r} is not known; send chunked")
        return -1
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise BadRequest(400, f"Content-Length is {text!r}; it must be a whole number")
    if int(text) > MAX_BODY_BYTES:
        raise BadRequest(413, f"the body is longer than {MAX_BODY_BYTES} bytes")
    return int(text)


def _chunked_body(buffer: bytearray, at: int) -> tuple[bytes, int] | None:
    """(the body, where the request ends) once all its chunks are here."""
    body = bytearray()
    while True:
        end = buffer.find(b"\r\n", at)
        if end < 0:
            return None
        text = bytes(buffer[at:end]).partition(b";")[0].strip()
        if not text or len(text) > 8 or text.strip(b"0123456789abcdefABCDEF"):
            raise BadRequest(400, "a chunk's size is not a hexadecimal number")
        size = int(text, 16)
        at = end + 2
        if size == 0:
            return _after_trailers(buffer, at, bytes(body))
        if len(body) + size > MAX_BODY_BYTES:
            raise BadRequest(413, f"the body is longer than {MAX_BODY_BYTES} bytes")
        if len(buffer) < at + size + 2:
            return None
        if buffer[at + size : at + size + 2] != b"\r\n":
            raise BadRequest(400, "a chunk does not end where its size says")
        body += buffer[at : at + size]
        at += size + 2


def _after_trailers(buffer: bytearray, at: int, body: bytes) -> tuple[bytes, int] | None:
    while True:
        end = buffer.find(b"\r\n", at)
        if end < 0:
            return None
        if end == at:
            return body, end + 2
        at = end + 2
