"""One connection to the endpoint and the response it carries at the moment: state, no behaviour
but sending and closing. The loop in `capture` drives it."""

from __future__ import annotations

import socket
from enum import IntEnum

from legato.wire.framer import Framer
from legato.wire.tls import Tls


class Step(IntEnum):
    CONNECTING = 0
    TUNNELLING = 1  # waiting for the proxy's answer to CONNECT
    HANDSHAKING = 2
    SENDING = 3
    RECEIVING = 4
    IDLE = 5
    CLOSED = 6


class Connection:
    __slots__ = (
        "address_index",
        "alarm_ns",
        "before_ns",
        "connect_ns",
        "fd",
        "floor_ns",
        "framer",
        "heard",
        "idle_since_ns",
        "last_read_ns",
        "last_stamp_ns",
        "left_behind",
        "listed",
        "opened_ns",
        "outgoing",
        "read_bytes",
        "refused",
        "remote",
        "request",
        "retried",
        "reused",
        "scheduled_ns",
        "segments",
        "sent_ns",
        "sock",
        "step",
        "stream",
        "tls",
        "tls_ns",
        "tunnel_head",
    )

    def __init__(self, sock: socket.socket, opened_ns: int, address_index: int, remote: str):
        # --- for the life of the connection
        self.sock = sock
        self.fd = sock.fileno()
        self.step = Step.CONNECTING
        self.opened_ns = opened_ns
        self.address_index = address_index
        self.remote = remote
        self.refused = 0  # the error that connecting gave at once
        self.tls: Tls | None = None
        self.tunnel_head = b""
        self.connect_ns: int | None = None  # what connecting cost
        self.tls_ns: int | None = None  # what the handshake cost
        self.read_bytes = 0  # received and read
        self.segments = 0  # the kernel's count of data segments when all of them had been read
        self.before_ns = 0  # the clock before the last receive call
        self.listed = -1  # the last poll that named this socket
        self.left_behind = False  # the last read filled its buffer …
        self.floor_ns = 0  # … and this is how old what it left may be
        self.idle_since_ns = 0
        self.alarm_ns = 0  # when its deadlines are looked at next; 0 for never
        self.reused = False
        # --- for the response it carries now
        self.stream = -1
        self.request = b""
        self.outgoing = memoryview(b"")  # what is still to be written
        self.scheduled_ns = 0
        self.sent_ns = 0  # 0 until the first byte is written
        self.framer = Framer()
        self.heard = False  # a byte of the response has come
        self.retried = False
        self.last_read_ns = 0
        self.last_stamp_ns = 0

    def assign(self, stream: int, request: bytes, scheduled_ns: int, retried: bool) -> None:
        """Give it the next request."""
        self.stream = stream
        self.request = request
        self.scheduled_ns = scheduled_ns
        self.retried = retried
        self.sent_ns = 0
        self.framer = Framer()
        self.heard = False
        self.last_read_ns = 0
        self.last_stamp_ns = 0

    def flush(self) -> bool:
        """Write what is left; true when nothing is."""
        while self.outgoing:
            try:
                written = self.sock.send(self.outgoing)
            except BlockingIOError:
                return False
            self.outgoing = self.outgoing[written:]
        return True

    def release(self) -> None:
        """Let go of everything large: an alarm may hold the closed connection for a while."""
        self.request = b""
        self.outgoing = memoryview(b"")
        self.framer = Framer()
        self.tls = None
