"""TLS without a socket: ciphertext goes in and out through memory, so that `recvmsg` and its
stamps stay ours."""

from __future__ import annotations

import ssl

# Reads are this much smaller than the room for their plaintext. With the part of a record (16 KiB
# and its overhead) that earlier reads may have left, all of it fits: none stays behind in TLS,
# where no poll would tell of it.
HELD_BYTES = 17 * 1024
_HEADER_BYTES = 5  # of a record: type, version, length


class Tls:
    """The TLS side of one connection."""

    __slots__ = ("_header", "_incoming", "_left", "_object", "_outgoing")

    def __init__(self, context: ssl.SSLContext, hostname: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=hostname)
        self._header = b""  # of a record, as far as it has come
        self._left = 0  # bytes of a record that are still to come

    def handshake(self, data: bytes) -> tuple[bool, bytes]:
        """One step with what came from the peer: (is it done, what to send)."""
        self._take(data)
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False, self._outgoing.read()
        return True, self._outgoing.read()

    @property
    def inside_record(self) -> bool:
        """Did what came last end in the middle of a record? The library does not tell: it takes
        half a record out of the buffer too."""
        return bool(self._left or self._header)

    def _take(self, data: bytes) -> None:
        self._incoming.write(data)
        position = 0
        while position < len(data):
            if self._left:
                taken = min(self._left, len(data) - position)
                self._left -= taken
            else:
                taken = min(_HEADER_BYTES - len(self._header), len(data) - position)
                self._header += data[position : position + taken]
                if len(self._header) == _HEADER_BYTES:
                    self._left = int.from_bytes(self._header[3:5])
                    self._header = b""
            position += taken

    def encrypt(self, data: bytes) -> bytes:
        self._object.write(data)
        return self._outgoing.read()

    def decrypt(self, data: bytes, view: memoryview, start: int, limit: int) -> int:
        """Write the plaintext that `data` yields at `view[start:limit]`; returns its length."""
        self._take(data)
        position = start
        try:
            while position < limit:
                count = self._object.read(limit - position, view[position:limit])
                if not count:
                    break
                position += int(count)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        return position - start

    def closed_cleanly(self) -> bool:
        """After the end of the transport: did the peer say so inside TLS?"""
        self._incoming.write_eof()
        try:
            self._object.read(1)
        except ssl.SSLZeroReturnError:
            return True
        except ssl.SSLError:
            return False
        return True
