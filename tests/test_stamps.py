"""Kernel stamps: the time a segment reached this machine, whenever it is read."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from legato import stamps


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connected pair over loopback; the second is stamped."""
    keeper = stamps.keeper()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.create_connection(listener.getsockname())
        receiver, _ = listener.accept()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert stamps.enable(receiver)
    with keeper, sender, receiver:
        yield sender, receiver


def receive(sock: socket.socket) -> tuple[bytes, int]:
    data, ancillary, _, _ = sock.recvmsg(65536, stamps.ANCILLARY_BYTES)
    return data, stamps.stamp_of(ancillary)


def awaited(sock: socket.socket, count: int) -> None:
    """Until the kernel has `count` bytes for `sock`."""
    while len(sock.recv(65536, socket.MSG_PEEK)) < count:
        pass


def test_the_stamp_is_of_the_arrival_however_late_the_read(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = pair
    before = stamps.anchor()
    before_ns = time.monotonic_ns()
    sender.send(b"x")
    awaited(receiver, 1)
    seen_ns = time.monotonic_ns()
    time.sleep(0.02)
    _, stamp_ns = receive(receiver)
    arrived_ns = stamp_ns - before.offset_ns
    assert before_ns - before.width_ns <= arrived_ns <= seen_ns + before.width_ns


def test_a_read_of_several_segments_has_the_stamp_of_the_last(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = pair
    sender.send(b"a")
    awaited(receiver, 1)
    between = stamps.anchor()
    sender.send(b"b")
    awaited(receiver, 2)
    data, stamp_ns = receive(receiver)
    assert data == b"ab"
    assert stamp_ns - between.offset_ns >= between.at_ns - between.width_ns - 5_000


def test_segments_are_counted_as_they_were_written(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = pair
    assert stamps.received(receiver) == (0, 0)
    sender.send(b"one write of four")
    awaited(receiver, 17)
    assert stamps.received(receiver) == (17, 1)
    for _ in range(4):
        sender.send(b"x")
    awaited(receiver, 21)
    assert stamps.received(receiver) == (21, 5)


def test_the_round_trip_on_loopback_is_known_and_nothing_was_retransmitted(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = pair
    sender.send(b"x")
    awaited(receiver, 1)
    rtt_us, retransmits = stamps.network(sender)
    assert rtt_us > 0
    assert retransmits == 0


def test_no_ancillary_data_is_no_stamp() -> None:
    assert stamps.stamp_of([]) == 0
    assert stamps.stamp_of([(socket.IPPROTO_IP, stamps.SO_TIMESTAMPING, b"")]) == 0
    data = struct.pack("=qq", 3, 7) + bytes(32)
    other = (socket.SOL_SOCKET, socket.SCM_RIGHTS, b"\x00\x00\x00\x00")
    stamp = (socket.SOL_SOCKET, stamps.SO_TIMESTAMPING, data)
    assert stamps.stamp_of([other, stamp]) == 3_000_000_007


def test_the_keeper_asks_for_stamps_for_as_long_as_it_is_open() -> None:
    with stamps.keeper() as keeper:
        assert keeper.getsockopt(socket.SOL_SOCKET, stamps.SO_TIMESTAMPING) != 0
    with socket.socket() as other:
        assert other.getsockopt(socket.SOL_SOCKET, stamps.SO_TIMESTAMPING) == 0


def test_where_the_kernel_refuses_stamping_it_is_said() -> None:
    sock = socket.socket()
    sock.close()
    assert not stamps.enable(sock)


def test_anchors_taken_one_after_the_other_agree_within_their_widths() -> None:
    anchors = [stamps.anchor() for _ in range(200)]
    best = min(anchors, key=lambda anchor: anchor.width_ns)
    for anchor in anchors:
        assert abs(anchor.offset_ns - best.offset_ns) <= anchor.width_ns + best.width_ns + 5_000
        assert anchor.at_ns <= time.monotonic_ns()
