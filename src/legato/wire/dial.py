"""From an address to a connection that may carry requests: connect, the proxy's tunnel, the TLS
handshake. It never waits; the loop calls `advance` when the socket is ready."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import time

from legato import stamps
from legato.wire.connection import Connection, Step
from legato.wire.endpoint import Address, Endpoint
from legato.wire.tls import Tls

_now = time.monotonic_ns


class Dialer:
    def __init__(
        self,
        endpoint: Endpoint,
        addresses: list[Address],
        tls_context: ssl.SSLContext | None,
        kernel_stamps: bool,
    ) -> None:
        self._endpoint = endpoint
        self._addresses = addresses
        self._tls_context = tls_context
        self._kernel_stamps = kernel_stamps

    def dial(self, address_index: int) -> Connection:
        """A connection on its way to the address; OSError where there is no socket to be had."""
        family, address = self._addresses[address_index]
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._kernel_stamps:
            stamps.enable(sock)
        connection = Connection(sock, _now(), address_index, str(address[0]))
        code = sock.connect_ex(address)
        connection.refused = code if code not in (0, errno.EINPROGRESS) else 0
        return connection

    def has_address(self, address_index: int) -> bool:
        return address_index < len(self._addresses)

    def advance(self, connection: Connection) -> bool:
        """Take the next step; true when the connection may carry a request. OSError where it
        will never."""
        if connection.step == Step.CONNECTING:
            return self._connected(connection)
        if connection.step == Step.TUNNELLING:
            return self._tunnelled(connection)
        data = connection.sock.recv(65536)
        if not data:
            raise ssl.SSLError("the server closed during the TLS handshake")
        connection.read_bytes += len(data)
        return self._handshake(connection, data)

    def _connected(self, connection: Connection) -> bool:
        code = connection.refused or connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        connection.connect_ns = _now() - connection.opened_ns
        if self._endpoint.proxy is None:
            return self._secured(connection)
        connection.step = Step.TUNNELLING
        connection.outgoing = memoryview(self._endpoint.proxy.request(self._endpoint))
        connection.flush()
        return False

    def _tunnelled(self, connection: Connection) -> bool:
        # The proxy sends nothing more before we do, so the head is all there is to read.
        data = connection.sock.recv(65536)
        connection.tunnel_head += data
        head, blank, _ = connection.tunnel_head.partition(b"\r\n\r\n")
        if blank and head.split(b" ")[1:2] == [b"200"]:
            connection.read_bytes = len(connection.tunnel_head)
            connection.segments = stamps.received(connection.sock)[1]
            connection.connect_ns = _now() - connection.opened_ns
            return self._secured(connection)
        if blank or not data:
            line = head.split(b"\r\n")[0].decode("latin-1")[:100]
            raise OSError(f"the proxy refused the tunnel: {line or 'closed'}")
        return False

    def _secured(self, connection: Connection) -> bool:
        if self._tls_context is None:
            return True
        connection.tls = Tls(self._tls_context, self._endpoint.host)
        connection.step = Step.HANDSHAKING
        return self._handshake(connection, b"")

    def _handshake(self, connection: Connection, data: bytes) -> bool:
        assert connection.tls is not None
        done, answer = connection.tls.handshake(data)
        if answer:
            connection.sock.send(answer)
        if done:
            connected_ns = connection.opened_ns + (connection.connect_ns or 0)
            connection.tls_ns = _now() - connected_ns
            connection.segments = stamps.received(connection.sock)[1]
        return done


def reason(error: OSError) -> str:
    """What went wrong, for the recording."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate was refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error.args[-1]}"
    return error.strerror.lower() if error.strerror else str(error)
