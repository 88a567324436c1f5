"""TLS on the server's side without its own socket, so that `recvmsg` and the stamps still work."""

from __future__ import annotations

import contextlib
import ssl
from dataclasses import dataclass
from pathlib import Path

from legato.errors import UsageError


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """A certificate chain and its key, as PEM files."""

    cert: Path
    key: Path


def context_of(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(files.cert, files.key)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"cannot use the certificate {files.cert} with the key {files.key}: {reason}"
        ) from error
    return context


class TlsSide:
    """One connection's encryption: ciphertext in and out, plain text at the other end."""

    __slots__ = ("_incoming", "_object", "_outgoing", "_ready")

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._ready = False

    def open(self, data: bytes) -> bytes:
        """Plain text of what came; raises ssl.SSLError. `pending` may have to be sent."""
        self._incoming.write(data)
        plain = bytearray()
        try:
            if not self._ready:
                self._object.do_handshake()
                self._ready = True
            while part := self._object.read(65536):
                plain += part
        except ssl.SSLWantReadError:
            pass
        return bytes(plain)

    def seal(self, data: bytes) -> bytes:
        """Ciphertext of what is to be sent."""
        self._object.write(data)
        return self._outgoing.read()

    def pending(self) -> bytes:
        """What the protocol itself wants to send."""
        return self._outgoing.read()

    def farewell(self) -> bytes:
        """The notice that nothing more will come."""
        with contextlib.suppress(ssl.SSLError):
            self._object.unwrap()
        return self._outgoing.read()
