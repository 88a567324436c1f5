"""The hot path: one epoll loop that receives, stamps, frames and appends, and nothing else.

Per read: the clock before, `recvmsg` into the spool's map, the clock after, the kernel's count of
segments, the framer, one record. No payload is looked at here and nothing is kept in memory.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from legato import stamps
from legato.wire import spool as spooling
from legato.wire.connection import Connection, Step
from legato.wire.deadlines import Alarms, Deadlines
from legato.wire.dial import Dialer, reason
from legato.wire.endpoint import Address, Endpoint
from legato.wire.framer import State
from legato.wire.sketch import Sketch, bin_of
from legato.wire.tls import HELD_BYTES

ANCHOR_INTERVAL_NS = 100_000_000
MAX_EVENTS = 4096

_now = time.monotonic_ns
_timespec = struct.Struct("=qq").unpack_from
_tcp_info = struct.Struct("=B127xQ16xI").unpack_from
_CLOSE_WAIT = 8  # tcpi_state once the peer's FIN has been counted as a byte


@dataclass(slots=True)
class Counters:
    """What the live view shows of a worker."""

    open: int = 0
    done: int = 0
    failed: int = 0
    retried: int = 0
    reads: int = 0


class Capture:
    """Streams in, spool records out. `on_end(reached)` is called when a stream has ended, with
    whether a byte of a response had come."""

    def __init__(
        self,
        endpoint: Endpoint,
        addresses: list[Address],
        spool: spooling.Spool,
        *,
        deadlines: Deadlines,
        on_end: Callable[[bool], None],
        tls_context: ssl.SSLContext | None = None,
        kernel_stamps: bool = True,
        keep_alive: bool = True,
        watch: Callable[[], None] | None = None,
        watch_fd: int | None = None,
    ) -> None:
        self.counters = Counters()
        self.gaps = Sketch()
        self.lags = Sketch()
        self._dialer = Dialer(endpoint, addresses, tls_context, kernel_stamps)
        self._spool = spool
        self._alarms = Alarms(deadlines)
        self._on_end = on_end
        self._keep_alive = keep_alive
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._idle: list[Connection] = []
        self._poll_count = 0
        self._complete_poll = -1  # the latest poll that returned everything that was ready …
        self._complete_entry_ns = 0  # … and when it was entered
        self._next_anchor_ns = 0
        self._keeper = stamps.keeper()
        self._watch = watch
        self._watch_fd = watch_fd
        if watch_fd is not None:
            self._epoll.register(watch_fd, select.EPOLLIN)
        self._anchor()

    # --- what the worker calls --------------------------------------------------------------

    def start(self, stream: int, request: bytes, scheduled_ns: int) -> None:
        """Send `request` (a whole HTTP request) as `stream`, on a kept connection if there is
        one."""
        self.counters.open += 1
        self._start(stream, request, scheduled_ns, retried=False)

    def poll(self, wait_ns: int) -> None:
        """Wait at most `wait_ns` for something to happen and handle what is ready."""
        entry_ns = _now()
        until_ns = min(entry_ns + wait_ns, self._next_anchor_ns)
        alarm_ns = self._alarms.next_ns
        if alarm_ns is not None and alarm_ns < until_ns:
            until_ns = alarm_ns
        wait_ns = until_ns - entry_ns
        if wait_ns <= 0:
            events = self._epoll.poll(0, MAX_EVENTS)
        elif wait_ns >= 3_000_000:
            # epoll waits in whole milliseconds, rounded up: leave the last ones to `select`.
            events = self._epoll.poll((wait_ns // 1_000_000 - 1) / 1000, MAX_EVENTS)
        else:
            select.select([self._epoll], [], [], wait_ns / 1e9)
            entry_ns = _now()
            events = self._epoll.poll(0, MAX_EVENTS)
        self._poll_count += 1
        self._handle(events)
        if len(events) < MAX_EVENTS:
            self._complete_poll = self._poll_count
            self._complete_entry_ns = entry_ns
        now = _now()
        if now >= self._next_anchor_ns:
            self._anchor()
        if alarm_ns is not None and alarm_ns <= now:
            for connection, what in self._alarms.late(now):
                if connection.step != Step.CONNECTING or not self._dial_next(connection):
                    self._end(connection, "timeout", what)

    def stop(self, reason: str) -> None:
        """End every open stream as aborted, for `reason`."""
        for connection in list(self._connections.values()):
            if connection.step < Step.IDLE:
                self._end(connection, "aborted", reason)

    def close(self) -> None:
        self._anchor()
        for connection in list(self._connections.values()):
            self._close(connection)
        self._epoll.close()
        self._keeper.close()
        self._spool.close()

    # --- reading ----------------------------------------------------------------------------

    def _handle(self, events: list[tuple[int, int]]) -> None:
        connections = self._connections
        for fd, _ in events:
            connection = connections.get(fd)
            if connection is None:
                if fd == self._watch_fd and self._watch is not None:
                    self._watch()
                continue
            step = connection.step
            try:
                if step == Step.RECEIVING:
                    self._receive(connection)
                elif step == Step.SENDING:
                    self._send(connection)
                elif step < Step.SENDING:
                    self._dial_on(connection)
                else:
                    self._forget_idle(connection)
            except OSError as error:
                self._fail(connection, error)

    def _receive(self, connection: Connection) -> None:
        spool = self._spool
        spool.room()
        start = spool.position + spooling.HEADER_BYTES
        # The earliest the oldest byte of this read can have come: the previous read would have
        # had it, and so would the latest poll that did not name this socket. A read that filled
        # its buffer left bytes behind that are as old as its own.
        if connection.left_behind:
            floor_ns = connection.floor_ns
        elif connection.listed >= self._complete_poll:
            floor_ns = connection.before_ns
        else:
            floor_ns = self._complete_entry_ns
        connection.floor_ns = floor_ns
        connection.listed = self._poll_count
        connection.before_ns = _now()
        tls = connection.tls
        try:
            if tls is None:
                count, ancillary, _, _ = connection.sock.recvmsg_into(
                    [spool.view[start : start + spooling.READ_BYTES]], stamps.ANCILLARY_BYTES
                )
                after_ns = _now()
                length = count
                flags = spooling.LEFT_BEHIND if count == spooling.READ_BYTES else 0
            else:
                data, ancillary, _, _ = connection.sock.recvmsg(
                    spooling.READ_BYTES - HELD_BYTES, stamps.ANCILLARY_BYTES
                )
                after_ns = _now()
                count = len(data)
                limit = start + spooling.READ_BYTES
                length = tls.decrypt(data, spool.view, start, limit) if count else 0
                filled = count == spooling.READ_BYTES - HELD_BYTES
                flags = spooling.LEFT_BEHIND if filled else 0
                if tls.inside_record:
                    flags |= spooling.INSIDE_RECORD
        except BlockingIOError:
            return
        if count == 0:
            self._eof(connection, after_ns)
            return
        stamp_ns = 0
        if ancillary:
            seconds, nanoseconds = _timespec(ancillary[0][2])
            stamp_ns = seconds * 1_000_000_000 + nanoseconds
        connection.read_bytes += count
        connection.left_behind = flags & spooling.LEFT_BEHIND != 0
        info = connection.sock.getsockopt(
            socket.IPPROTO_TCP, socket.TCP_INFO, stamps.TCP_INFO_BYTES
        )
        tcp_state, received_bytes, received_segments = _tcp_info(info)
        if tcp_state == _CLOSE_WAIT:
            # The FIN is queued like a segment and merges with the last one: the stamp may be its.
            stamp_ns = 0
            received_bytes -= 1
        if received_bytes <= connection.read_bytes:
            # Everything the kernel counted has been read: the count belongs to these reads.
            segments = received_segments - connection.segments
            connection.segments = received_segments
        else:
            segments = 0  # more has come meanwhile: the next settled read carries the sum
        spool.commit_read(connection.stream, length, segments, stamp_ns, after_ns, floor_ns, flags)
        connection.last_read_ns = after_ns
        if stamp_ns:
            self.lags.counts[bin_of(after_ns + self._offset_ns - stamp_ns)] += 1
            if connection.last_stamp_ns:
                self.gaps.counts[bin_of(stamp_ns - connection.last_stamp_ns)] += 1
            connection.last_stamp_ns = stamp_ns
        self.counters.reads += 1
        framer = connection.framer
        connection.heard = connection.heard or length > 0
        end = framer.feed(spool.map, start, start + length)
        if framer.state >= State.DONE:
            self._framed(connection, extra=end < start + length)

    def _framed(self, connection: Connection, extra: bool) -> None:
        framer = connection.framer
        if framer.state == State.BROKEN:
            self._end(connection, "protocol_error", framer.error)
        elif extra:
            self._end(connection, "protocol_error", "bytes after the end of the response")
        else:
            self._end(connection, "ok", None, keep=self._keep_alive and framer.keeps_alive())

    def _eof(self, connection: Connection, after_ns: int) -> None:
        connection.last_read_ns = after_ns
        if connection.reused and not connection.heard and not connection.retried:
            self._retry(connection)
            return
        clean = connection.tls is None or connection.tls.closed_cleanly()
        if clean:
            connection.framer.eof()
        if connection.framer.state == State.DONE:
            self._end(connection, "ok", None)
        elif not clean:
            self._end(connection, "aborted", "the TLS connection was cut without close_notify")
        elif connection.heard:
            self._end(connection, "aborted", "the server closed before the response was complete")
        else:
            self._end(connection, "aborted", "the server closed without a response")

    # --- connecting and sending -------------------------------------------------------------

    def _start(self, stream: int, request: bytes, scheduled_ns: int, retried: bool) -> None:
        if self._idle and not retried:
            connection = self._idle.pop()
            connection.reused = True
            connection.assign(stream, request, scheduled_ns, retried)
            self._begin_send(connection)
        else:
            self._connect(stream, request, scheduled_ns, retried, 0)

    def _connect(
        self, stream: int, request: bytes, scheduled_ns: int, retried: bool, address_index: int
    ) -> None:
        try:
            connection = self._dialer.dial(address_index)
        except OSError as error:
            self._record_failure(stream, scheduled_ns, f"no socket: {error.strerror}")
            return
        connection.assign(stream, request, scheduled_ns, retried)
        self._connections[connection.fd] = connection
        self._epoll.register(connection.fd, select.EPOLLOUT)
        self._alarms.opened(connection)

    def _dial_on(self, connection: Connection) -> None:
        if self._dialer.advance(connection):
            self._begin_send(connection)
        else:
            self._epoll.modify(connection.fd, select.EPOLLIN)

    def _dial_next(self, connection: Connection) -> bool:
        """Try the endpoint's next address instead; false where there is none."""
        following = connection.address_index + 1
        if not self._dialer.has_address(following):
            return False
        stream, request, scheduled = connection.stream, connection.request, connection.scheduled_ns
        self._close(connection)
        self._connect(stream, request, scheduled, connection.retried, following)
        return True

    def _begin_send(self, connection: Connection) -> None:
        request = connection.request
        if connection.tls is not None:
            request = connection.tls.encrypt(request)
        connection.outgoing = memoryview(request)
        connection.step = Step.SENDING
        try:
            self._send(connection)
        except OSError as error:
            self._fail(connection, error)

    def _send(self, connection: Connection) -> None:
        if not connection.sent_ns:
            connection.before_ns = connection.sent_ns = _now()
            self._alarms.sent(connection)
        if connection.flush():
            connection.step = Step.RECEIVING
            self._epoll.modify(connection.fd, select.EPOLLIN)
            self._open_record(connection)
        else:
            self._epoll.modify(connection.fd, select.EPOLLOUT)

    # --- ending -----------------------------------------------------------------------------

    def _retry(self, connection: Connection) -> None:
        """A kept connection that the server had closed: once more on a fresh one, counted."""
        self.counters.retried += 1
        stream, request, scheduled = connection.stream, connection.request, connection.scheduled_ns
        self._close(connection)
        self._start(stream, request, scheduled, retried=True)

    def _fail(self, connection: Connection, error: OSError) -> None:
        if connection.step == Step.CONNECTING and self._dial_next(connection):
            return
        if connection.step == Step.IDLE:
            self._forget_idle(connection)
        elif connection.reused and not connection.heard and not connection.retried:
            self._retry(connection)
        else:
            self._end(connection, "aborted", reason(error))

    def _end(
        self, connection: Connection, status: str, error: str | None, keep: bool = False
    ) -> None:
        ended_ns = connection.last_read_ns or _now()
        if status in ("timeout", "aborted"):
            ended_ns = _now()
        if connection.step != Step.RECEIVING:
            self._open_record(connection)
        document: dict[str, Any] = {"status": status, "ended_ns": ended_ns}
        if error:
            document["error"] = error
        if connection.sent_ns:
            rtt_us, retransmits = stamps.network(connection.sock)
            document |= {"rtt_us": rtt_us, "retransmits": retransmits}
        stream, reached = connection.stream, connection.heard
        if keep:
            connection.step = Step.IDLE
            connection.idle_since_ns = _now()
            self._idle.append(connection)
        else:
            self._close(connection)
        self._record_end(stream, document, status == "ok", reached)

    def _record_failure(self, stream: int, scheduled_ns: int, reason: str) -> None:
        """A stream that never got a connection."""
        self._spool.append(spooling.OPEN, stream, {"scheduled_ns": scheduled_ns})
        document = {"status": "aborted", "error": reason, "ended_ns": _now()}
        self._record_end(stream, document, ok=False, reached=False)

    def _record_end(self, stream: int, document: dict[str, Any], ok: bool, reached: bool) -> None:
        self._spool.append(spooling.END, stream, document)
        self.counters.open -= 1
        self.counters.done += 1
        self.counters.failed += not ok
        self._on_end(reached)

    def _open_record(self, connection: Connection) -> None:
        document: dict[str, Any] = {"scheduled_ns": connection.scheduled_ns}
        if connection.sent_ns:
            document["sent_ns"] = connection.sent_ns
        if connection.reused:
            document["reused"] = True
            document["idle_before_ns"] = connection.sent_ns - connection.idle_since_ns
        else:
            document["connect_ns"] = connection.connect_ns
            document["tls_ns"] = connection.tls_ns
        if connection.retried:
            document["retried"] = True
        document["remote_addr"] = connection.remote
        self._spool.append(spooling.OPEN, connection.stream, document)

    def _forget_idle(self, connection: Connection) -> None:
        self._idle.remove(connection)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        if connection.step != Step.CLOSED:
            connection.step = Step.CLOSED
            del self._connections[connection.fd]
            self._epoll.unregister(connection.fd)
            connection.sock.close()
            connection.release()

    def _anchor(self) -> None:
        anchor = stamps.anchor()
        self._offset_ns = anchor.offset_ns
        self._spool.append_anchor(anchor)
        self._next_anchor_ns = _now() + ANCHOR_INTERVAL_NS
