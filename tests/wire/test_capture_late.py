"""Reads that come late: what the client cannot know it states as an interval that holds the truth.

The test holds the reader back until the kernel has everything, so lateness is certain.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
from captures import Client
from scripted import (
    DONE,
    LAST_CHUNK,
    STREAM_HEAD,
    Conversation,
    chunked,
    content,
    http_url,
    serving,
)

from legato.recording import USER_CLOCK, Stream
from legato.wire.spool import READ_BYTES

EVENTS = [chunked(content(text)) for text in "abcd"]


def test_four_events_in_one_write_are_a_burst_however_late_they_are_read(tmp_path: Path) -> None:
    sent = threading.Event()

    def script(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(STREAM_HEAD)
        sent.wait()
        conversation.send(b"".join(EVENTS))
        conversation.gone()

    with serving(script) as port:
        client = Client(tmp_path, http_url(port))
        client.start()
        client.run(reads=1)
        sent.set()
        client.leave_unread(len(STREAM_HEAD) + sum(map(len, EVENTS)))
        client.run(reads=2)
        client.capture.stop("enough")
        (stream,) = client.streams()
    assert list(stream.segments) == [1, 1, 1, 1]
    assert list(stream.early_ns) == [0, 0, 0, 0]
    assert len(set(stream.read_index)) == 1
    assert len(set(stream.arrival_ns)) == 1


def test_four_writes_read_at_once_are_client_merged_and_their_intervals_hold_the_sends(
    tmp_path: Path,
) -> None:
    stream, sends = _read_late(tmp_path, EVENTS)
    assert list(stream.segments) == [4, 4, 4, 4]
    assert len(set(stream.read_index)) == 1
    early_ns = np.asarray(stream.early_ns)
    assert (early_ns[:3] > 0).all()
    assert early_ns[3] == 0
    assert not any(flags & USER_CLOCK for flags in stream.flags)
    _assert_intervals_hold(stream, sends)


def test_the_close_of_a_connection_does_not_pass_for_the_arrival_of_its_last_chunk(
    tmp_path: Path,
) -> None:
    go = threading.Event()
    sends: list[tuple[int, int]] = []

    def script(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(STREAM_HEAD)
        go.wait()
        conversation.send(chunked(content("a"), DONE) + LAST_CHUNK)
        sends.extend(conversation.sends[1:])
        time.sleep(0.02)  # and then the FIN, which the kernel queues behind the data

    with serving(script) as port:
        client = Client(tmp_path, http_url(port))
        client.start()
        client.run(reads=1)
        go.set()
        answer_bytes = len(chunked(content("a"), DONE) + LAST_CHUNK)
        client.leave_unread(len(STREAM_HEAD) + answer_bytes + 1)  # a FIN counts as a byte
        client.run()
        (stream,) = client.streams()
    assert stream.status == "ok"
    ((before_ns, after_ns),) = sends
    arrived_ns = stream.arrival_ns[0] + (stream.sent_ns or 0)
    assert arrived_ns >= before_ns - 5_000
    assert arrived_ns - stream.early_ns[0] <= after_ns + 5_000


def _read_late(folder: Path, writes: list[bytes]) -> tuple[Stream, list[tuple[int, int]]]:
    """A stream of `writes`, 3 ms apart, of which nothing is read before all have come."""
    start = threading.Event()
    sends: list[tuple[int, int]] = []

    def script(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(STREAM_HEAD)
        start.wait()
        for data in writes:
            conversation.send(data)
            time.sleep(0.003)
        sends.extend(conversation.sends[1:])
        conversation.gone()

    total = sum(map(len, writes))
    with serving(script) as port:
        client = Client(folder, http_url(port))
        client.start()
        client.run(reads=1)
        start.set()
        client.leave_unread(len(STREAM_HEAD) + total)
        client.run(reads=1 + -(-total // READ_BYTES))
        client.capture.stop("enough")
        (stream,) = client.streams()
    return stream, sends


def _assert_intervals_hold(stream: Stream, sends: list[tuple[int, int]]) -> None:
    arrived = np.asarray(stream.arrival_ns) + (stream.sent_ns or 0)
    earliest = arrived - np.asarray(stream.early_ns)
    for (before_ns, after_ns), latest, first in zip(sends, arrived, earliest, strict=True):
        assert latest >= before_ns - 5_000
        assert first <= after_ns + 5_000


def test_a_backlog_larger_than_a_read_leaves_no_false_exact_arrival(tmp_path: Path) -> None:
    writes = [chunked(content(f"{number} " + "x" * 6000)) for number in range(14)]
    assert READ_BYTES < sum(map(len, writes)) < 2 * READ_BYTES
    stream, sends = _read_late(tmp_path, writes)
    assert len(set(stream.read_index)) == 2
    _assert_intervals_hold(stream, sends)
    assert (np.asarray(stream.early_ns)[:-1] > 0).all()


def test_a_comment_after_an_event_does_not_lend_it_its_arrival(tmp_path: Path) -> None:
    writes = [chunked(content("a")), chunked(b": still here\n\n")]
    stream, sends = _read_late(tmp_path, writes)
    assert stream.early_ns[0] > 0
    _assert_intervals_hold(stream, sends[:1])
