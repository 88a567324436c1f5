"""A client for the metronome's tests that shares no code with legato's own wire."""

from __future__ import annotations

import http.client
import json
import re
import select
import socket
import ssl
import time
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from legato import stamps

WAIT_S = 20
CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"


@dataclass
class Reply:
    """What came back over one connection, and how it ended."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: str = "whole"  # whole, cut (closed too early), reset, broken (no HTTP)

    @property
    def data(self) -> list[str]:
        """The data of each event."""
        return sse_data(self.body)

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(data) for data in self.data if data != "[DONE]"]

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    def deltas(self, key: str = "content") -> list[str]:
        """The texts of one kind of delta, empty ones left out."""
        choices = [chunk["choices"][0] for chunk in self.chunks if chunk["choices"]]
        texts = [choice["delta"].get(key) for choice in choices if "delta" in choice]
        return [text for text in texts if text]


def sse_data(body: bytes) -> list[str]:
    """The data of each complete event of an SSE body, by the rules of the standard."""
    # Atomic, or else \r\n would pass for two line endings.
    blocks = re.split(r"(?>\r\n|\n|\r)(?>\r\n|\n|\r)", body.decode())
    found = []
    for block in blocks[:-1]:
        lines = re.split(r"\r\n|\n|\r", block)
        data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
        if data:
            found.append("\n".join(data))
    return found


def body_of(**fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "one two three"}]
    return {"model": "metronome", "messages": messages, "stream": True, **fields}


def request_bytes(body: dict[str, Any], path: str = CHAT) -> bytes:
    content = json.dumps(body).encode()
    return b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (
        path.encode(),
        len(content),
        content,
    )


def connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), WAIT_S)
    sock.settimeout(WAIT_S)
    return sock


def ask(port: int, path: str = CHAT, context: ssl.SSLContext | None = None, **fields: Any) -> Reply:
    """Send one request on a connection of its own and read until its answer is over."""
    connection: http.client.HTTPConnection
    if context is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    else:
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=WAIT_S)
    try:
        connection.request("POST", path, json.dumps(body_of(**fields)))
        return read_reply(connection)
    finally:
        connection.close()


def get(port: int, path: str) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    try:
        connection.request("GET", path)
        return read_reply(connection)
    finally:
        connection.close()


def read_reply(connection: http.client.HTTPConnection) -> Reply:
    reply = Reply()
    try:
        response = connection.getresponse()
        reply.status, reply.headers = response.status, dict(response.getheaders())
        while part := response.read1(65536):
            reply.body += part
        if response.chunked and response.fp is not None and not response.isclosed():
            reply.ended = "cut"
    except ConnectionResetError:
        reply.ended = "reset"
    except http.client.IncompleteRead as error:
        reply.body += error.partial
        reply.ended = "cut"
    except (http.client.HTTPException, ValueError):
        reply.ended = "broken"
    return reply


def until_end(sock: socket.socket) -> bytes:
    """All bytes up to the end of a chunked answer."""
    data = b""
    while not data.endswith(b"\r\n0\r\n\r\n"):
        part = sock.recv(1 << 20)
        assert part, "the answer was cut"
        data += part
    return data


class FakeSocket:
    """Bytes for http.client to parse."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: Any) -> BytesIO:
        return BytesIO(self._data)


def parsed(data: bytes) -> Reply:
    """A response that was collected as bytes."""
    response = http.client.HTTPResponse(FakeSocket(data))  # type: ignore[arg-type]
    response.begin()
    return Reply(response.status, dict(response.getheaders()), response.read())


@dataclass
class Read:
    """One read: what it held and the kernel's stamp on the monotonic clock."""

    data: bytes
    arrived_ns: int


def reads_of(port: int, body: dict[str, Any]) -> list[Read]:
    """Ask, and keep each read of the answer with its kernel stamp."""
    keeper = stamps.keeper()
    sock = connect(port)
    stamps.enable(sock)
    reads: list[Read] = []
    answer = b""  # a read may hold less than the bytes that end the answer
    try:
        sock.sendall(request_bytes(body))
        while not answer.endswith(b"\r\n0\r\n\r\n"):
            assert select.select([sock], [], [], WAIT_S)[0], "the answer stopped"
            data, ancillary, _, _ = sock.recvmsg(1 << 20, stamps.ANCILLARY_BYTES)
            assert data, "the answer was cut"
            stamp = stamps.stamp_of(ancillary)
            now = time.monotonic_ns()
            answer += data
            reads.append(Read(data, stamp - stamps.anchor().offset_ns if stamp else now))
    finally:
        sock.close()
        keeper.close()
    return reads
