"""From a capture written by hand to arrival intervals: every rule with the numbers beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import DONE, LAST_CHUNK, STREAM_HEAD, chunked, content

from legato import apis
from legato.recording import USER_CLOCK, Stream
from legato.stamps import Anchor
from legato.wire import spool
from legato.wire.decode import Decoding, WorkerFacts, decode_worker
from legato.wire.spool import HEADER_BYTES, Spool

OFFSET = 1_700_000_000_000_000_000  # wall clock − monotonic clock
MS = 1_000_000
NO_STAMP = 0


class Tape:
    """A capture of one stream that was sent at 0 and whose head came at 1 ms."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spool = Spool(folder, 0, 8 * spool.READ_BYTES)
        self.facts = WorkerFacts()
        self.anchor(0)
        self._spool.append(spool.OPEN, 0, {"scheduled_ns": 0, "sent_ns": 0})
        self.read(STREAM_HEAD, stamp=1 * MS)

    def anchor(self, at: int, step: int = 0) -> None:
        self._spool.append_anchor(Anchor(at, OFFSET + step, 40))

    def read(
        self,
        payload: bytes,
        *,
        stamp: int,
        lag: int = 1000,
        floor: int = 0,
        segments: int = 1,
        step: int = 0,
    ) -> None:
        """A read of what came at `stamp`, made `lag` later; without a stamp, made at `lag`."""
        start = self._spool.position + HEADER_BYTES
        self._spool.map[start : start + len(payload)] = payload
        wall = OFFSET + stamp + step if stamp else 0
        self._spool.commit_read(0, len(payload), segments, wall, stamp + lag, floor)

    def stream(self, status: str = "ok", **document: object) -> Stream:
        self._spool.append(spool.END, 0, {"status": status, **document})
        self.anchor(10**10)
        self._spool.close()
        decoding = Decoding(apis.named("chat"), "", "", 0)
        (stream,) = decode_worker(self._folder, 0, decoding, self.facts)
        return stream


@pytest.fixture
def tape(tmp_path: Path) -> Tape:
    return Tape(tmp_path)


A, B, C, D = (chunked(content(text)) for text in "abcd")
END = chunked(DONE) + LAST_CHUNK


def test_a_lone_chunk_arrives_at_its_stamp_exactly(tape: Tape) -> None:
    tape.read(A, stamp=10 * MS, lag=3 * MS, floor=9 * MS)
    tape.read(END, stamp=20 * MS, floor=19 * MS)
    stream = tape.stream()
    assert stream.status == "ok"
    assert list(stream.arrival_ns) == [10 * MS, 20 * MS]
    assert list(stream.lag_ns) == [3 * MS, 1000]
    assert list(stream.early_ns) == [0, 0]
    assert list(stream.read_index) == [1, 2]
    assert (stream.first_byte_ns, stream.ended_ns) == (1 * MS, 20 * MS)


def test_several_chunks_in_one_segment_are_a_burst_and_exact(tape: Tape) -> None:
    tape.read(A + B + C, stamp=10 * MS, floor=2 * MS)
    tape.read(END, stamp=20 * MS)
    stream = tape.stream()
    assert list(stream.arrival_ns)[:3] == [10 * MS] * 3
    assert list(stream.early_ns)[:3] == [0, 0, 0]
    assert list(stream.read_index)[:3] == [1, 1, 1]
    assert list(stream.segments)[:3] == [1, 1, 1]


def test_of_chunks_in_several_segments_only_the_last_is_exact(tape: Tape) -> None:
    tape.read(A + B + C, stamp=10 * MS, floor=4 * MS, segments=3)
    tape.read(END, stamp=20 * MS)
    stream = tape.stream()
    assert list(stream.arrival_ns)[:3] == [10 * MS] * 3
    assert list(stream.early_ns)[:3] == [6 * MS, 6 * MS, 0]
    assert list(stream.segments)[:3] == [3, 3, 3]


def test_a_chunk_followed_by_the_start_of_another_in_a_later_segment_has_an_interval(
    tape: Tape,
) -> None:
    tape.read(A + B[:20], stamp=10 * MS, floor=4 * MS, segments=2)
    tape.read(B[20:] + END, stamp=20 * MS)
    stream = tape.stream()
    assert list(stream.early_ns)[:2] == [6 * MS, 0]
    assert list(stream.arrival_ns)[:2] == [10 * MS, 20 * MS]


def test_no_chunk_came_before_the_stamp_of_the_read_before_it(tape: Tape) -> None:
    tape.read(A, stamp=10 * MS, floor=0)
    tape.read(B + C, stamp=12 * MS, floor=3 * MS, segments=2)
    tape.read(END, stamp=20 * MS)
    assert list(tape.stream().early_ns)[1] == 2 * MS


def test_no_chunk_came_before_the_request_was_sent(tape: Tape) -> None:
    tape.read(A + B, stamp=10 * MS, floor=-50 * MS, segments=2)
    tape.read(END, stamp=20 * MS)
    assert tape.stream().early_ns[0] == 9 * MS  # the head came at 1 ms


def test_reads_during_which_more_came_share_their_segments(tape: Tape) -> None:
    tape.read(A, stamp=10 * MS, floor=9 * MS, segments=0)
    tape.read(B, stamp=11 * MS, floor=10 * MS, segments=2)
    tape.read(END, stamp=20 * MS)
    stream = tape.stream()
    assert list(stream.segments)[:2] == [1, 1]
    assert list(stream.early_ns)[:2] == [0, 0]


def test_a_surplus_of_segments_may_lie_in_any_read_it_was_counted_over(tape: Tape) -> None:
    tape.read(A + B, stamp=10 * MS, floor=9 * MS, segments=0)
    tape.read(C + D, stamp=12 * MS, floor=10 * MS, segments=3)
    tape.read(END, stamp=20 * MS)
    stream = tape.stream()
    assert list(stream.segments)[:4] == [2, 2, 2, 2]
    assert list(stream.early_ns)[:4] == [1 * MS, 0, 2 * MS, 0]


def test_segments_that_were_never_settled_are_taken_for_several(tape: Tape) -> None:
    tape.read(A + B, stamp=10 * MS, floor=9 * MS, segments=0)
    stream = tape.stream("aborted", error="cut", ended_ns=30 * MS)
    assert list(stream.early_ns) == [1 * MS, 0]
    assert list(stream.segments) == [2, 2]


def test_without_a_stamp_the_arrival_is_the_read_and_the_whole_doubt_is_stated(
    tape: Tape,
) -> None:
    tape.read(A, stamp=NO_STAMP, lag=10 * MS, floor=7 * MS)
    tape.read(B, stamp=NO_STAMP, lag=15 * MS, floor=9 * MS)
    tape.read(END, stamp=20 * MS)
    stream = tape.stream()
    assert list(stream.arrival_ns)[:2] == [10 * MS, 15 * MS]
    # B may have come while A was read: only the clock before that read bounds it.
    assert list(stream.early_ns)[:2] == [3 * MS, 6 * MS]
    assert list(stream.lag_ns)[:2] == [0, 0]
    assert [bool(flags & USER_CLOCK) for flags in stream.flags] == [True, True, False]


def test_stamps_next_to_a_step_of_the_wall_clock_fall_back_to_the_time_of_the_read(
    tape: Tape,
) -> None:
    tape.read(A, stamp=10 * MS, floor=9 * MS)
    tape.anchor(15 * MS)
    tape.read(B, stamp=20 * MS, lag=2 * MS, floor=19 * MS, step=500 * MS)
    tape.anchor(25 * MS, step=500 * MS)
    tape.read(C, stamp=30 * MS, floor=29 * MS, step=500 * MS)
    tape.anchor(35 * MS, step=500 * MS)
    tape.read(END, stamp=40 * MS, step=500 * MS)
    tape.anchor(45 * MS, step=500 * MS)
    stream = tape.stream()
    assert tape.facts.clock.steps >= 1
    assert list(stream.arrival_ns)[:3] == [10 * MS, 22 * MS, 30 * MS]
    assert [bool(flags & USER_CLOCK) for flags in stream.flags][:3] == [False, True, False]
    early = list(stream.early_ns)
    assert early[0] == 0
    assert early[1] == 3 * MS  # and so the interval holds the true 20 ms
    assert early[2] == 0


def test_a_chunk_cut_over_reads_arrives_with_the_read_that_completes_it(tape: Tape) -> None:
    for at, i in enumerate(range(0, len(A), 30), start=10):
        tape.read(A[i : i + 30], stamp=at * MS, floor=(at - 1) * MS)
    tape.read(END, stamp=2000 * MS)
    stream = tape.stream()
    last_byte = len(A) - 3  # of the event; the line end of the HTTP chunk follows
    assert stream.arrival_ns[0] == (10 + last_byte // 30) * MS
    assert stream.early_ns[0] == 0


def test_a_read_without_plaintext_is_no_first_byte(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    folder.mkdir()
    writer = Spool(folder, 0, 8 * spool.READ_BYTES)
    writer.append_anchor(Anchor(0, OFFSET, 40))
    writer.append(spool.OPEN, 0, {"scheduled_ns": 0, "sent_ns": 0})
    writer.commit_read(0, 0, 1, OFFSET + 1 * MS, 2 * MS, 0)
    data = STREAM_HEAD + END
    start = writer.position + HEADER_BYTES
    writer.map[start : start + len(data)] = data
    writer.commit_read(0, len(data), 1, OFFSET + 5 * MS, 6 * MS, 2 * MS)
    writer.append(spool.END, 0, {"status": "ok"})
    writer.close()
    decoding = Decoding(apis.named("chat"), "", "", 0)
    (stream,) = decode_worker(folder, 0, decoding, WorkerFacts())
    assert stream.first_byte_ns == 5 * MS


def test_a_capture_that_stops_in_the_middle_gives_what_was_read_as_aborted(tmp_path: Path) -> None:
    tape = Tape(tmp_path)
    tape.read(A, stamp=10 * MS)
    decoding = Decoding(apis.named("chat"), "", "", 0)
    (stream,) = decode_worker(tmp_path, 0, decoding, tape.facts)
    assert (stream.status, stream.error) == ("aborted", "the worker that read this stream died")
    assert list(stream.arrival_ns) == [10 * MS]
    assert tape.facts.lost_streams == 1
    assert tape.facts.document is None


def test_events_that_are_no_chunks_of_the_api_are_kept_and_make_a_protocol_error(
    tape: Tape,
) -> None:
    tape.read(A + chunked(b"data: {\n\n") + B, stamp=10 * MS)
    tape.read(END, stamp=20 * MS)
    stream = tape.stream()
    assert stream.status == "protocol_error"
    assert stream.error == "event 2 is not a chunk of this API"
    assert len(stream.kind) == 4
    assert list(stream.tokens) == [1, 0, 1, 0]


def test_the_floor_of_lone_chunks_is_counted_where_it_does_not_hold(tape: Tape) -> None:
    tape.read(A, stamp=10 * MS, floor=9 * MS)
    tape.read(B, stamp=12 * MS, floor=13 * MS)
    tape.read(C + D, stamp=14 * MS, floor=15 * MS)
    tape.read(END, stamp=20 * MS, floor=19 * MS)
    tape.stream()
    assert (tape.facts.lone_chunks, tape.facts.before_floor) == (3, 1)
