"""A server that replays a recorded stream byte for byte, and `legato bench` run against it."""

from __future__ import annotations

import contextlib
import json
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import legato
from legato.recording import KINDS, Stream

SAMPLES = Path(__file__).parent / "samples"
HANG_S = 40  # no test waits for a time; this only ends one that would never end
SETTINGS = ("LEGATO_API_KEY", "OPENAI_API_KEY", "HTTPS_PROXY", "https_proxy", "LEGATO_PROFILE")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.body)
        return document


@dataclass
class Replay:
    """Answers each GET from `listings` and each POST with the stream; remembers what was asked."""

    events: list[bytes]
    content_type: str
    listings: Mapping[str, Any] = field(default_factory=dict)
    requests: list[Asked] = field(default_factory=list)
    url: str = ""

    @property
    def posted(self) -> Asked:
        (request,) = [r for r in self.requests if r.method == "POST"]
        return request


@contextlib.contextmanager
def replaying(replay: Replay) -> Iterator[Replay]:
    class Handler(socketserver.StreamRequestHandler):
        disable_nagle_algorithm = True

        def handle(self) -> None:
            while (asked := _request(self)) is not None:
                replay.requests.append(asked)
                if asked.method == "GET":
                    self.wfile.write(_whole(replay.listings.get(asked.path)))
                    continue
                self.wfile.write(_head(replay.content_type))
                for event in replay.events:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
                self.wfile.write(b"0\r\n\r\n")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        replay.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield replay
        server.shutdown()


def _request(handler: socketserver.StreamRequestHandler) -> Asked | None:
    line = handler.rfile.readline()
    if not line:
        return None
    method, path, _ = line.decode().split()
    headers = {}
    while (line := handler.rfile.readline().strip()) != b"":
        name, _, value = line.decode().partition(":")
        assert name.lower() not in headers, f"{name} came twice"
        headers[name.lower()] = value.strip()
    body = handler.rfile.read(int(headers.get("content-length", 0)))
    return Asked(method, path, headers, body)


def _whole(document: Any) -> bytes:
    status = b"404 Not Found" if document is None else b"200 OK"
    body = json.dumps(document).encode()
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def _head(content_type: str) -> bytes:
    lines = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    return lines.encode()


def sample(name: str) -> list[bytes]:
    """The events of a sample, each with the bytes that end it."""
    data = (SAMPLES / f"{name}.txt").read_bytes()
    for end in (b"\r\n\r\n", b"\n\n"):
        if data.startswith((b"data:", b"event:")) and end in data:
            return [event + end for event in data.removesuffix(end).split(end)]
    return data.splitlines(keepends=True)


def run(*arguments: object, extra: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command, as a user runs it."""
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    done = subprocess.run(
        [sys.executable, "-m", "legato.cli", *map(str, arguments)],
        env={**kept, **(extra or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def bench_one(
    url: str, out: Path, *arguments: object, extra: Mapping[str, str] | None = None
) -> Stream:
    """The only stream of a bench that asks once."""
    load = ("--concurrency", 1, "--requests", 1, "--prompt-tokens", 4, "--output-tokens", 7)
    options = ("--json", "--keep-text", "--cache-friendly", "--out", out, *load)
    code, _, err = run("bench", url, *options, *arguments, extra=extra)
    assert out.exists(), err
    assert code in (0, 3), err  # a noisy machine may make any run invalid
    (stream,) = legato.load(str(out))
    return stream


def pieces(stream: Stream) -> list[tuple[str, int, str]]:
    """(kind, tokens, text) of the chunks that hold tokens."""
    assert stream.text is not None
    rows = zip(stream.kind, stream.tokens, stream.text, strict=True)
    return [
        (KINDS[kind], int(tokens), text)
        for kind, tokens, text in rows
        if KINDS[kind] in ("content", "reasoning", "tool")
    ]
