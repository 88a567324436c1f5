"""Servers that do exactly what a test says, on real sockets: for what no metronome does."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"
WAIT_S = 30


def content(text: str) -> bytes:
    """An SSE event with this text."""
    delta = {"id": "scripted", "choices": [{"index": 0, "delta": {"content": text}}]}
    return b"data: " + json.dumps(delta).encode() + b"\n\n"


def chunked(*payloads: bytes) -> bytes:
    """Each payload as one HTTP chunk."""
    return b"".join(b"%x\r\n%b\r\n" % (len(payload), payload) for payload in payloads)


@dataclass
class Conversation:
    """The server's end of one connection."""

    sock: socket.socket
    sends: list[tuple[int, int]] = field(default_factory=list)  # the clock before and after each

    def request(self) -> bytes:
        """Read one request; empty when the client is gone."""
        data = b""
        while b"\r\n\r\n" not in data:
            if not (piece := self.sock.recv(65536)):
                return b""
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        while len(body) < length:
            body += self.sock.recv(65536)
        return head + b"\r\n\r\n" + body

    def send(self, data: bytes) -> None:
        before_ns = time.monotonic_ns()
        self.sock.sendall(data)
        self.sends.append((before_ns, time.monotonic_ns()))

    def gone(self) -> None:
        """Wait until the client has closed."""
        with contextlib.suppress(OSError):
            while self.sock.recv(65536):
                pass

    def reset(self) -> None:
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


Script = Callable[[Conversation], None]


@contextlib.contextmanager
def serving(*scripts: Script, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server whose n-th connection follows the n-th script and is then closed."""
    failures: list[BaseException] = []
    open_sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def play(script: Script, sock: socket.socket) -> None:
        try:
            if tls is not None:
                sock = tls.wrap_socket(sock, server_side=True)
                open_sockets.append(sock)
            script(Conversation(sock))
        except ssl.SSLError:
            pass  # the client refused the handshake, which is what its test is about
        except Exception as error:
            failures.append(error)
        finally:
            sock.close()

    def accept() -> None:
        for script in scripts:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.settimeout(WAIT_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            open_sockets.append(sock)
            threads.append(threading.Thread(target=play, args=(script, sock), daemon=True))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_S)
        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        yield listener.getsockname()[1]
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        acceptor.join()
        for thread in threads:
            thread.join()
    assert not failures, failures


def http_url(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1"


def answering(*parts: bytes) -> Script:
    """Read a request, write the parts, stay until the client has closed."""

    def script(conversation: Conversation) -> None:
        conversation.request()
        for part in parts:
            conversation.send(part)
        conversation.gone()

    return script


def closing(conversation: Conversation) -> None:
    """Read a request and close."""
    conversation.request()
