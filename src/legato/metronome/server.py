"""The metronome's server: one thread and one epoll for all connections.

Nothing here blocks: what waits for a time is in the player's heap, what waits for a client is
in the epoll.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import socket
import ssl
import struct
import time
from typing import Any

from legato import stamps
from legato.metronome import envelope, payload, truth
from legato.metronome.ask import MODEL, Ask, ask_of
from legato.metronome.connection import Connection
from legato.metronome.note import CLOSE, RESET, SILENT
from legato.metronome.pace import NS_PER_MS
from legato.metronome.pattern import Pattern
from legato.metronome.player import Player
from legato.metronome.request import BadRequest, Request
from legato.metronome.tls import TlsSide
from legato.metronome.truthlog import TruthLog

READS_A_ROUND = 16
READ_BYTES = 256 * 1024
IDLE_NS = 2 * NS_PER_MS
_READ = select.EPOLLIN | select.EPOLLRDHUP
_PATHS = {"/v1/chat/completions": "chat", "/v1/completions": "text"}


class Server:
    """Serves until told to stop."""

    def __init__(
        self,
        pattern: Pattern,
        listener: socket.socket,
        log: TruthLog | None,
        run: str,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.pattern = pattern
        self.player = Player(
            log, run, on_full=self._wait_for_room, on_gone=self._drop, on_over=self._over
        )
        self._tls = tls
        self._created_s = int(time.time())
        self._connections: dict[int, Connection] = {}
        self._keeper = stamps.keeper()
        self._epoll = select.epoll()
        self._listener: socket.socket | None = listener
        self._listener_fd = listener.fileno()
        self._stop_fds: set[int] = set()
        self._stopping = False
        listener.setblocking(False)
        # What is accepted inherits both.
        stamps.enable(listener)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._epoll.register(listener, select.EPOLLIN)

    def stop_on(self, fd: int) -> None:
        """End when `fd` can be read or its other end is closed."""
        self._stop_fds.add(fd)
        self._epoll.register(fd, select.EPOLLIN)

    def run(self) -> None:
        """Serve until a stop is asked for."""
        player, epoll_fd = self.player, self._epoll.fileno()
        while not self._stopping:
            player.play_due()
            wait_ns = player.wait_ns()
            if wait_ns > IDLE_NS:
                player.rest()
            # epoll waits in milliseconds, select in microseconds.
            if select.select((epoll_fd,), (), (), max(wait_ns, 0) * 1e-9)[0]:
                for fd, mask in self._epoll.poll(0, READS_A_ROUND):
                    self._ready(fd, mask)

    def close(self) -> None:
        for connection in list(self._connections.values()):
            connection.sock.close()
        if self._listener is not None:
            self._listener.close()
        self._keeper.close()
        self._epoll.close()

    def stats(self) -> dict[str, Any]:
        player = self.player
        return {
            "requests": player.requests,
            "open_streams": player.room.open_streams,
            "events": player.events,
            "writes": player.writes,
            "lateness_us": player.lateness.summary(),
            "cpu_s": time.process_time(),
        }

    # --- sending ----------------------------------------------------------------------------

    def _wait_for_room(self, connection: Connection, rest: memoryview) -> None:
        connection.rest = rest
        self._epoll.modify(connection.fd, _READ | select.EPOLLOUT)

    def _writable(self, connection: Connection) -> None:
        """Send what there was no room for, then go on."""
        rest = connection.rest
        if rest is None:
            return
        try:
            sent = connection.sock.send(rest)
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection)
            return
        after_ns = time.monotonic_ns()
        if sent < len(rest):
            connection.rest = rest[sent:]
            return
        connection.rest = None
        self._epoll.modify(connection.fd, _READ)
        if connection.turn is not None:
            self.player.resume(connection.turn, after_ns)
        elif connection.closes:
            self._shut(connection)
        else:
            self._take(connection)

    def _over(self, connection: Connection, action: int) -> None:
        """An answer is over, as its last note says."""
        if action == RESET:
            linger = struct.pack("ii", 1, 0)
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._forget(connection)
        elif action == SILENT:
            connection.silent = True
        elif action == CLOSE:
            self._forget(connection)
        elif connection.closes:
            self._shut(connection)
        else:
            self._take(connection)

    # --- receiving --------------------------------------------------------------------------

    def _ready(self, fd: int, mask: int) -> None:
        if fd == self._listener_fd:
            self._accept()
            return
        if fd in self._stop_fds:
            self._stopping = True
            return
        connection = self._connections.get(fd)
        if connection is None:
            return
        if mask & select.EPOLLOUT:
            self._writable(connection)
        if mask & ~select.EPOLLOUT and self._connections.get(fd) is connection:
            self._read(connection)

    def _accept(self) -> None:
        for _ in range(READS_A_ROUND):
            if self._listener is None:
                return
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setblocking(False)
            tls = TlsSide(self._tls) if self._tls is not None else None
            connection = Connection(sock, tls)
            self._connections[connection.fd] = connection
            self._epoll.register(connection.fd, _READ)

    def _read(self, connection: Connection) -> None:
        try:
            data, ancillary, _, _ = connection.sock.recvmsg(READ_BYTES, stamps.ANCILLARY_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        if not data:
            self._drop(connection)
            return
        if connection.silent:
            return
        connection.stamp_ns = stamps.stamp_of(ancillary)
        if connection.tls is not None:
            try:
                data = connection.tls.open(data)
            except ssl.SSLError:
                self._drop(connection)
                return
            if out := connection.tls.pending():
                self._transmit(connection, out)
        connection.parser.feed(data)
        self._take(connection)

    def _take(self, connection: Connection) -> None:
        """Answer the requests that are here in full, one after the other."""
        while connection.turn is None and connection.rest is None and not connection.closes:
            try:
                request = connection.parser.take()
            except BadRequest as problem:
                connection.closes = True
                self._refuse(connection, problem)
                return
            if request is None:
                break
            connection.closes = not request.keep_alive
            try:
                self._answer(connection, request)
            except BadRequest as problem:
                self._refuse(connection, problem)
        if connection.parser.wants_continue:
            connection.parser.wants_continue = False
            self._reply(connection, b"HTTP/1.1 100 Continue\r\n\r\n")

    def _answer(self, connection: Connection, request: Request) -> None:
        api = _PATHS.get(request.path)
        if api is not None:
            if request.method != "POST":
                raise BadRequest(405, f"{request.path} takes POST")
            ask = ask_of(api, request.body, self.pattern)
            if request.minor_version == 0:
                # HTTP/1.0 has no chunks.
                plain = dataclasses.replace(ask.pattern, framing="close")
                ask = dataclasses.replace(ask, pattern=plain)
            self._start(connection, ask)
            return
        if request.path == "/v1/models":
            body = payload.models(self._created_s)
        elif request.path == f"/v1/models/{MODEL}":
            body = payload.model(self._created_s)
        elif request.path == "/health":
            body = b"{}"
        elif request.path == "/metronome/stats":
            body = json.dumps(self.stats()).encode()
        else:
            raise BadRequest(404, f"there is nothing at {request.path}")
        self._reply(connection, envelope.whole(200, body, keep_alive=not connection.closes))

    def _start(self, connection: Connection, ask: Ask) -> None:
        received_ns, by_kernel = _received_ns(connection.stamp_ns)
        if ask.stream and ask.pattern.framing == "close":
            connection.closes = True
        number = self.player.start(connection, ask, received_ns, by_kernel)
        if ask.pattern.fault == "refuse" and number + 1 >= ask.pattern.fault_every:
            self._stop_listening()

    def _refuse(self, connection: Connection, problem: BadRequest) -> None:
        body = payload.error(problem.status, problem.message, problem.code)
        keep_alive = not connection.closes
        self._reply(connection, envelope.whole(problem.status, body, keep_alive=keep_alive))

    def _reply(self, connection: Connection, data: bytes) -> None:
        """Send what is not part of a timed answer."""
        if connection.tls is not None:
            data = connection.tls.seal(data)
        self._transmit(connection, data)
        if connection.closes and connection.rest is None:
            self._shut(connection)

    def _transmit(self, connection: Connection, data: bytes) -> None:
        try:
            sent = connection.sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(connection)
            return
        if sent < len(data):
            if connection.turn is not None or connection.rest is not None:
                self._drop(connection)  # it would come between the bytes of an answer
            else:
                self._wait_for_room(connection, memoryview(data)[sent:])

    # --- closing ----------------------------------------------------------------------------

    def _drop(self, connection: Connection) -> None:
        """The client went away."""
        if connection.turn is not None:
            self.player.end(connection.turn, truth.CLIENT_GONE)
        self._forget(connection)

    def _shut(self, connection: Connection) -> None:
        """Close in good order."""
        if connection.tls is not None:
            with contextlib.suppress(OSError):
                connection.sock.send(connection.tls.farewell())
        self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        # The number of a closed socket may already be another connection's.
        if self._connections.get(connection.fd) is connection:
            del self._connections[connection.fd]
            connection.sock.close()

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._listener_fd = -1


def _received_ns(stamp_ns: int) -> tuple[int, bool]:
    """(monotonic time of a request's last byte, whether the kernel told it)."""
    anchor = stamps.anchor()
    received_ns = stamp_ns - anchor.offset_ns
    # A stamp from the future or from long ago was made before the wall clock was stepped.
    if stamp_ns and -anchor.width_ns <= anchor.at_ns - received_ns < 60_000_000_000:
        return received_ns, True
    return anchor.at_ns, False


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; raises OSError."""
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(4096)
    except OSError:
        sock.close()
        raise
    return sock


def new_run_name() -> str:
    return os.urandom(4).hex()
