"""The hot path: one epoll loop that receives, stamps, frames and appends, and nothing else.

Per read: the clock before, `recvmsg` into the spool's map, the clock after, the kernel's count of
segments, the framer, one record. No payload is looked at here and nothing is kept in memory.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from legato import stamps
from legato.wire import spool as spooling
from legato.wire.connection import Connection, Step, Tls
from legato.wire.endpoint import Address, Endpoint
from legato.wire.framer import State
from legato.wire.sketch import Sketch, bin_of

ANCHOR_INTERVAL_NS = 100_000_000
MAX_EVENTS = 4096

_now = time.monotonic_ns
_timespec = struct.Struct("=qq").unpack_from
_tcp_info = struct.Struct("=B127xQ16xI").unpack_from
# With the part of a record (16 KiB and its overhead) that earlier reads may have left, all the
# plaintext fits: none stays behind in TLS, where no poll would tell of it.
_TLS_READ_BYTES = spooling.READ_BYTES - 17 * 1024
_CLOSE_WAIT = 8  # tcpi_state once the peer's FIN has been counted as a byte


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a stream may take, in seconds: to connect, to the first byte, between reads,
    in all."""

    connect_s: float = 10.0
    first_byte_s: float = 120.0
    idle_s: float = 60.0
    total_s: float = 600.0


@dataclass(slots=True)
class Counters:
    """What the live view shows of a worker."""

    open: int = 0
    done: int = 0
    failed: int = 0
    retried: int = 0
    reads: int = 0


class Capture:
    """Streams in, spool records out. `on_end(stream, ok)` is called when a stream has ended."""

    def __init__(
        self,
        endpoint: Endpoint,
        addresses: list[Address],
        spool: spooling.Spool,
        *,
        deadlines: Deadlines,
        on_end: Callable[[int, bool], None],
        tls_context: ssl.SSLContext | None = None,
        kernel_stamps: bool = True,
        keep_alive: bool = True,
        watch: Callable[[], None] | None = None,
        watch_fd: int | None = None,
    ) -> None:
        self.counters = Counters()
        self.gaps = Sketch()
        self.lags = Sketch()
        self._endpoint = endpoint
        self._addresses = addresses
        self._spool = spool
        self._deadlines = deadlines
        self._on_end = on_end
        self._tls_context = tls_context
        self._kernel_stamps = kernel_stamps
        self._keep_alive = keep_alive
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._idle: list[Connection] = []
        self._alarms: list[tuple[int, int, Connection]] = []
        self._alarm_count = 0
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
        alarm_ns = self._alarms[0][0] if self._alarms else entry_ns + wait_ns
        until_ns = min(entry_ns + wait_ns, alarm_ns, self._next_anchor_ns)
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
        if self._alarms and self._alarms[0][0] <= now:
            self._ring(now)

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
                elif step == Step.CONNECTING:
                    self._connected(connection)
                elif step == Step.HANDSHAKING:
                    self._handshake(connection)
                elif step == Step.TUNNELLING:
                    self._tunnel(connection)
                else:
                    self._forget_idle(connection)
            except OSError as error:
                self._fail(connection, error)

    def _receive(self, connection: Connection) -> None:
        spool = self._spool
        spool.room()
        start = spool.position + spooling.HEADER_BYTES
        # The earliest the oldest byte of this read can have come: the previous read would have
        # had it, and so would the latest poll that did not name this socket.
        if connection.listed >= self._complete_poll:
            floor_ns = connection.before_ns
        else:
            floor_ns = self._complete_entry_ns
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
            else:
                data, ancillary, _, _ = connection.sock.recvmsg(
                    _TLS_READ_BYTES, stamps.ANCILLARY_BYTES
                )
                after_ns = _now()
                count = len(data)
                length = _decrypt(tls, data, spool.view, start) if count else 0
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
        spool.commit_read(connection.stream, length, segments, stamp_ns, after_ns, floor_ns)
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
        clean = connection.tls is None or _closed_cleanly(connection.tls)
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
        family, address = self._addresses[address_index]
        try:
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            self._record_failure(stream, scheduled_ns, f"no socket: {error.strerror}")
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._kernel_stamps:
            stamps.enable(sock)
        connection = Connection(sock, _now(), address_index, str(address[0]))
        connection.assign(stream, request, scheduled_ns, retried)
        self._connections[connection.fd] = connection
        self._epoll.register(connection.fd, select.EPOLLOUT)
        self._set_alarm(connection, connection.opened_ns + _ns(self._deadlines.connect_s))
        code = sock.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            self._fail(connection, OSError(code, os.strerror(code)))

    def _connected(self, connection: Connection) -> None:
        code = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        connection.connect_ns = _now() - connection.opened_ns
        if self._endpoint.proxy:
            connection.step = Step.TUNNELLING
            connection.outgoing = memoryview(self._endpoint.proxy.request(self._endpoint))
            connection.flush()
            self._epoll.modify(connection.fd, select.EPOLLIN)
        else:
            self._secure(connection)

    def _tunnel(self, connection: Connection) -> None:
        # Byte by byte past the head would cost nothing here either, but the proxy sends nothing
        # more before we do: what follows the head is an error of the proxy.
        data = connection.sock.recv(65536)
        connection.tunnel_head += data
        head, blank, _ = connection.tunnel_head.partition(b"\r\n\r\n")
        if blank and head.split(b" ")[1:2] == [b"200"]:
            connection.read_bytes = len(connection.tunnel_head)
            connection.segments = stamps.received(connection.sock)[1]
            connection.connect_ns = _now() - connection.opened_ns
            self._secure(connection)
        elif blank or not data:
            line = head.split(b"\r\n")[0].decode("latin-1")[:100]
            self._end(connection, "aborted", f"the proxy refused the tunnel: {line or 'closed'}")

    def _secure(self, connection: Connection) -> None:
        if self._tls_context is None:
            self._begin_send(connection)
            return
        connection.tls = Tls(self._tls_context, self._endpoint.host)
        connection.step = Step.HANDSHAKING
        self._epoll.modify(connection.fd, select.EPOLLIN)
        self._handshake(connection, first=True)

    def _handshake(self, connection: Connection, first: bool = False) -> None:
        tls = connection.tls
        assert tls is not None
        if not first:
            data = connection.sock.recv(65536)
            if not data:
                raise ssl.SSLError("the server closed during the TLS handshake")
            connection.read_bytes += len(data)
            tls.incoming.write(data)
        try:
            tls.object.do_handshake()
        except ssl.SSLWantReadError:
            done = False
        else:
            done = True
        if data := tls.outgoing.read():
            connection.sock.send(data)
        if done:
            opened = connection.opened_ns + (connection.connect_ns or 0)
            connection.tls_ns = _now() - opened
            connection.segments = stamps.received(connection.sock)[1]
            self._begin_send(connection)

    def _begin_send(self, connection: Connection) -> None:
        request = connection.request
        if connection.tls is not None:
            connection.tls.object.write(request)
            request = connection.tls.outgoing.read()
        connection.outgoing = memoryview(request)
        connection.step = Step.SENDING
        try:
            self._send(connection)
        except OSError as error:
            self._fail(connection, error)

    def _send(self, connection: Connection) -> None:
        if not connection.sent_ns:
            now = connection.sent_ns = _now()
            connection.before_ns = now
            limit = self._deadlines
            soonest_s = min(limit.first_byte_s, limit.idle_s, limit.total_s)
            self._set_alarm(connection, now + _ns(soonest_s))
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
        if connection.step == Step.CONNECTING:
            following = connection.address_index + 1
            if following < len(self._addresses):
                arguments = (connection.stream, connection.request, connection.scheduled_ns)
                self._close(connection)
                self._connect(*arguments, connection.retried, following)
                return
        if connection.step == Step.IDLE:
            self._forget_idle(connection)
        elif connection.reused and not connection.heard and not connection.retried:
            self._retry(connection)
        else:
            self._end(connection, "aborted", _reason(error))

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
        stream = connection.stream
        if keep:
            connection.step = Step.IDLE
            connection.idle_since_ns = _now()
            self._idle.append(connection)
        else:
            self._close(connection)
        self._record_end(stream, document, status == "ok")

    def _record_failure(self, stream: int, scheduled_ns: int, reason: str) -> None:
        """A stream that never got a connection."""
        self._spool.append(spooling.OPEN, stream, {"scheduled_ns": scheduled_ns})
        document = {"status": "aborted", "error": reason, "ended_ns": _now()}
        self._record_end(stream, document, ok=False)

    def _record_end(self, stream: int, document: dict[str, Any], ok: bool) -> None:
        self._spool.append(spooling.END, stream, document)
        self.counters.open -= 1
        self.counters.done += 1
        self.counters.failed += not ok
        self._on_end(stream, ok)

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

    # --- clocks -----------------------------------------------------------------------------

    def _anchor(self) -> None:
        anchor = stamps.anchor()
        self._offset_ns = anchor.offset_ns
        self._spool.append_anchor(anchor)
        self._next_anchor_ns = _now() + ANCHOR_INTERVAL_NS

    def _set_alarm(self, connection: Connection, at_ns: int) -> None:
        """At most one alarm a connection counts: the earliest, which sets the next."""
        if connection.alarm_ns and connection.alarm_ns <= at_ns:
            return
        connection.alarm_ns = at_ns
        self._alarm_count += 1
        heappush(self._alarms, (at_ns, self._alarm_count, connection))

    def _ring(self, now: int) -> None:
        """Look at the streams whose alarm is due; one that moved meanwhile gets a later alarm."""
        while self._alarms and self._alarms[0][0] <= now:
            at_ns, _, connection = heappop(self._alarms)
            if at_ns != connection.alarm_ns:
                continue  # an earlier one was set after it
            connection.alarm_ns = 0
            if connection.step >= Step.IDLE:
                continue
            due_ns, what = self._due(connection)
            if due_ns <= now:
                self._end(connection, "timeout", what)
            else:
                self._set_alarm(connection, due_ns)

    def _due(self, connection: Connection) -> tuple[int, str]:
        limit = self._deadlines
        if not connection.sent_ns:
            due = connection.opened_ns + _ns(limit.connect_s)
            return due, f"no connection within {limit.connect_s:g} s"
        total = connection.sent_ns + _ns(limit.total_s)
        if not connection.heard:
            due = connection.sent_ns + _ns(limit.first_byte_s)
            what = f"no byte of a response within {limit.first_byte_s:g} s"
        else:
            due = connection.last_read_ns + _ns(limit.idle_s)
            what = f"nothing came for {limit.idle_s:g} s"
        if total < due:
            return total, f"not complete within {limit.total_s:g} s"
        return due, what


def _decrypt(tls: Tls, data: bytes, view: memoryview, start: int) -> int:
    """Feed ciphertext, write what it yields at `view[start:]`; returns the plaintext's length."""
    tls.incoming.write(data)
    position = start
    limit = start + spooling.READ_BYTES
    try:
        while position < limit:
            count = tls.object.read(limit - position, view[position:limit])
            if not count:
                break
            position += int(count)
    except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
        pass
    return position - start


def _closed_cleanly(tls: Tls) -> bool:
    """After EOF of the transport: did the peer say so inside TLS?"""
    tls.incoming.write_eof()
    try:
        tls.object.read(1)
    except ssl.SSLZeroReturnError:
        return True
    except ssl.SSLError:
        return False
    return True


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate was refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error.args[-1]}"
    return (error.strerror or str(error)).lower()


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
