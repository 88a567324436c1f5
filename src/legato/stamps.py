"""Kernel receive stamps and the clock they are on.

The kernel stamps a segment with the wall clock when it enters the network stack; everything else
here runs on the monotonic clock. An anchor ties the two. NTP slews both alike, so between two
anchors that agree the conversion is exact to the anchors' width; where they disagree the wall
clock was stepped and its stamps are worthless there.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

SO_TIMESTAMPING = 37  # also the type of the control message that carries the stamp
_RX_SOFTWARE = 1 << 3
_SOFTWARE = 1 << 4
ANCILLARY_BYTES = 128  # one control message: three timespecs and its header

# Offsets into `struct tcp_info` of Linux ≥ 4.6 (its layout only ever grows at the end).
TCP_INFO_BYTES = 160
_NETWORK_BYTES = 228  # as far as `tcpi_rcv_ooopack`, which Linux has since 5.4
_TCP_INFO_NUMBER = struct.Struct("=I").unpack_from
_TCP_INFO_RECEIVED = struct.Struct("=Q16xI").unpack_from

_TIMESPEC = struct.Struct("=qq").unpack_from


def enable(sock: socket.socket) -> bool:
    """Ask for receive stamps on `sock`; false where the kernel has none."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, _RX_SOFTWARE | _SOFTWARE)
    except OSError:
        return False
    return True


def keeper() -> socket.socket:
    """A stamped socket to hold open: the kernel starts stamping lazily, at the first of them,
    and the segments that arrive before it has started carry no stamp."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    enable(sock)
    return sock


def stamp_of(ancillary: list[Any]) -> int:
    """The wall-clock stamp in `recvmsg`'s ancillary data, in ns; 0 where there is none."""
    for level, kind, data in ancillary:
        if kind == SO_TIMESTAMPING and level == socket.SOL_SOCKET:
            seconds, nanoseconds = _TIMESPEC(data)
            return int(seconds * 1_000_000_000 + nanoseconds)
    return 0


def received(sock: socket.socket) -> tuple[int, int]:
    """(bytes, data segments) the connection has received so far, read or not."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    counted: tuple[int, int] = _TCP_INFO_RECEIVED(info, 128)
    return counted


def network(sock: socket.socket) -> tuple[int, int]:
    """(round-trip time in µs, segments that were lost on the way): those this end sent again and
    those that came in out of order, which is what the other end's losses look like here."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _NETWORK_BYTES)
    lost = int(_TCP_INFO_NUMBER(info, 100)[0])
    if len(info) >= _NETWORK_BYTES:
        lost += int(_TCP_INFO_NUMBER(info, 224)[0])
    return int(_TCP_INFO_NUMBER(info, 68)[0]), lost


@dataclass(frozen=True, slots=True)
class Anchor:
    """Wall clock − monotonic clock, known to ± `width_ns`, at `at_ns` of the monotonic clock."""

    at_ns: int
    offset_ns: int
    width_ns: int


def anchor() -> Anchor:
    """Read both clocks together: the tightest of three tries."""
    best: Anchor | None = None
    for _ in range(3):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        width = (after - before + 1) // 2
        if best is None or width < best.width_ns:
            best = Anchor(before + width, wall - before - width, width)
    assert best is not None
    return best
