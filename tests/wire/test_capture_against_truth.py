"""What is recorded of a stream agrees with the log of what was really sent.

One metronome serves every test: each request asks for its own pattern. Nothing is compared with
nominal times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from captures import Client, one, recording_of, truth_of

from legato.calibrate.truth import Comparison, compare
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.metronome.truth import Truth
from legato.metronome.truth import load as load_truth
from legato.recording import (
    CONTENT,
    DONE,
    FINISH,
    REASONING,
    ROLE,
    TOOL,
    USAGE,
    USER_CLOCK,
    Stream,
)

GAP_NS = 1_000_000  # the shortest gap asked for here
CONTINUOUS = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}


class Target:
    """A metronome and its log, which can be read while it runs."""

    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self._log = log

    def answered(self) -> None:
        """Wait until the latest answer is out as a whole."""
        while not (truth := load_truth(self._log)).end_of(truth.response_ids[-1]):
            time.sleep(0.001)

    def truth(self, *streams: Stream) -> Truth:
        return truth_of(self._log, *streams)

    def compare(self, *streams: Stream) -> Comparison:
        return compare(recording_of(list(streams)), self.truth(*streams))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    log = tmp_path_factory.mktemp("metronome") / "truth"
    with running(Pattern(gap_ms=2, first_token_ms=5, tokens=30), truth=log) as metronome:
        yield Target(metronome.url, log)


def kinds(stream: Stream) -> list[int]:
    return [int(kind) for kind in stream.kind]


def assert_true_to(target: Target, *streams: Stream) -> None:
    """Every event is there, with its tokens, and every arrival lies in its stated interval."""
    truth = target.truth(*streams)
    on_time = []
    for stream in streams:
        assert stream.response_id is not None
        rows = truth.events_of(stream.response_id)
        rows = rows[rows["tokens"] > 0]
        assert [n for n in stream.tokens if n] == rows["tokens"].tolist()
        on_time.append(rows["before_ns"] - rows["deadline_ns"] < GAP_NS)
    found = compare(recording_of(list(streams)), truth)
    assert found.lost_events == 0
    assert_in_intervals(found, np.concatenate(on_time))


def assert_in_intervals(found: Comparison, on_time: npt.NDArray[np.bool_]) -> None:
    """Nothing arrives before it is sent. It arrives inside the send call, but for the few
    segments that a busy kernel puts off, and unless the metronome was late: what it then sends
    at once may have to wait for TCP's window."""
    half = found.width_ns // 2 + 20_000
    assert (found.kernel_ns >= -half).all()
    after_send = on_time & (found.kernel_ns - found.early_ns > half)
    assert after_send.sum() <= max(2, 0.02 * len(on_time))


def test_a_plain_stream_is_recorded_as_it_was_sent(target: Target, tmp_path: Path) -> None:
    stream = one(tmp_path, target.url)
    assert (stream.status, stream.error, stream.http_status) == ("ok", None, 200)
    assert kinds(stream) == [ROLE, *[CONTENT] * 30, FINISH, USAGE, DONE]
    assert (stream.prompt_tokens, stream.output_tokens) == (3, 30)
    assert stream.token_source == "usage_spread"
    assert_true_to(target, stream)


def test_times_of_a_stream_are_in_their_order(target: Target, tmp_path: Path) -> None:
    stream = one(tmp_path, target.url)
    assert stream.sent_ns is not None
    assert stream.first_byte_ns is not None
    assert stream.scheduled_ns <= stream.sent_ns <= stream.first_byte_ns <= stream.ended_ns
    assert stream.first_byte_ns <= stream.sent_ns + stream.arrival_ns[0]
    assert stream.ended_ns == stream.sent_ns + stream.arrival_ns[-1]
    assert all(np.diff(stream.arrival_ns) >= 0)
    assert all(np.asarray(stream.early_ns) >= 0)


def test_many_streams_at_once_lose_nothing_and_hold_the_floor_rule(
    target: Target, tmp_path: Path
) -> None:
    client = Client(tmp_path, target.url)
    for _ in range(40):
        client.start(tokens=60, first_token_spread_ms=10)
    client.run()
    streams = client.streams()
    assert [stream.status for stream in streams] == ["ok"] * 40
    assert_true_to(target, *streams)
    # A lone chunk's stamp is never earlier than the bound that chunks without one would get.
    facts = client.facts
    assert facts.lone_chunks > 0
    assert facts.before_floor <= 0.01 * facts.lone_chunks


def test_a_burst_in_one_write_is_one_segment_and_exact(target: Target, tmp_path: Path) -> None:
    stream = one(tmp_path, target.url, events_per_write=4, tokens=48, gap_ms=5)
    assert_true_to(target, stream)
    tokens = np.flatnonzero(np.asarray(stream.tokens))
    reads = np.asarray(stream.read_index)[tokens].reshape(-1, 4)
    segments = np.asarray(stream.segments)[tokens].reshape(-1, 4)
    early_ns = np.asarray(stream.early_ns)[tokens].reshape(-1, 4)
    arrivals = np.asarray(stream.arrival_ns)[tokens].reshape(-1, 4)
    assert (reads == reads[:, :1]).all()
    assert (arrivals == arrivals[:, :1]).all()
    # Where the client came in time each write is one segment by itself, and most times it does.
    alone = segments[:, 0] == 1
    assert alone.any()
    assert (early_ns[alone] == 0).all()


def test_several_tokens_in_one_event_are_counted_as_the_tokens_they_are(
    target: Target, tmp_path: Path
) -> None:
    stream = one(tmp_path, target.url, CONTINUOUS, tokens_per_event=3, tokens=10)
    assert [n for n in stream.tokens if n] == [3, 3, 3, 1]
    assert stream.token_source == "chunk_usage"
    assert_true_to(target, stream)


@pytest.mark.parametrize(
    ("body", "source"),
    [
        (CONTINUOUS, "chunk_usage"),
        ({"return_token_ids": True}, "token_ids"),
        ({"logprobs": True}, "logprobs"),
        ({}, "usage_spread"),
        ({"stream_options": None}, "chunks"),
    ],
)
def test_the_source_of_the_token_counts_is_the_best_the_server_gives(
    body: dict[str, Any], source: str, target: Target, tmp_path: Path
) -> None:
    stream = one(tmp_path, target.url, body, tokens=5, gap_ms=0)
    assert stream.token_source == source
    assert sum(stream.tokens) == 5


@pytest.mark.parametrize(
    "pattern",
    [
        {"split": "writes"},
        {"split": "chunks"},
        {"split": "writes", "line_ending": "crlf", "comments": True},
        {"line_ending": "crlf"},
        {"comments": True},
        {"chunk_extensions": True, "trailers": True},
        {"terminators": True},
        {"terminators": True, "split": "writes", "line_ending": "crlf"},
        {"framing": "close"},
        {"framing": "close", "terminators": True},
        {"finish_with_last": True},
        {"role_early": True},
        {"usage": False},
    ],
    ids=lambda pattern: "-".join(pattern),
)
def test_every_legal_way_to_write_a_stream_is_read_as_the_same_stream(
    pattern: dict[str, Any], target: Target, tmp_path: Path
) -> None:
    stream = one(tmp_path, target.url, tokens=12, gap_ms=1, **pattern)
    assert (stream.status, stream.error) == ("ok", None)
    assert kinds(stream).count(CONTENT) == 12
    assert kinds(stream)[-1] == DONE
    assert_true_to(target, stream)


def test_events_cut_at_every_byte_arrive_with_their_last(target: Target, tmp_path: Path) -> None:
    # Each event is cut one byte further than the one before: 250 events see every place.
    stream = one(tmp_path, target.url, split="writes", tokens=250, gap_ms=1)
    assert stream.status == "ok"
    assert_true_to(target, stream)


def test_reasoning_and_tool_calls_are_tokens_of_their_kind(target: Target, tmp_path: Path) -> None:
    stream = one(tmp_path, target.url, tokens=9, reasoning_tokens=3, tool_tokens=2, gap_ms=1)
    assert kinds(stream).count(REASONING) == 3
    assert kinds(stream).count(CONTENT) == 4
    assert kinds(stream).count(TOOL) == 2
    assert sum(stream.tokens) == 9
    assert_true_to(target, stream)


def test_text_completions_are_recorded_too(target: Target, tmp_path: Path) -> None:
    client = Client(tmp_path, target.url, api="completions", keep_text=True)
    client.start(tokens=4)
    client.run()
    (stream,) = client.streams()
    assert (stream.status, stream.api) == ("ok", "completions")
    assert sum(stream.tokens) == 4
    assert stream.text is not None
    assert len("".join(stream.text).split()) == 4
    assert_true_to(target, stream)


def test_text_is_kept_only_where_it_was_asked_for(target: Target, tmp_path: Path) -> None:
    assert one(tmp_path, target.url, tokens=2).text is None


def test_a_reader_that_was_away_states_intervals_that_hold_the_truth(
    target: Target, tmp_path: Path
) -> None:
    client = Client(tmp_path, target.url)
    client.start(tokens=20, gap_ms=1)
    client.run(reads=1)
    target.answered()  # and waits in the kernel
    client.run()
    (stream,) = client.streams()
    assert stream.status == "ok"
    found = target.compare(stream)
    assert found.lost_events == 0
    assert found.merged.sum() >= 18
    assert found.contained_share == 1
    bearing = np.flatnonzero(np.asarray(stream.tokens))
    assert max(np.asarray(stream.segments)[bearing]) > 10


def test_without_kernel_stamps_every_chunk_says_so_and_its_interval_holds_the_truth(
    target: Target, tmp_path: Path
) -> None:
    client = Client(tmp_path, target.url, kernel_stamps=False)
    for _ in range(5):
        client.start()
    client.run()
    streams = client.streams()
    for stream in streams:
        assert stream.status == "ok"
        assert all(flags & USER_CLOCK for flags in stream.flags)
        assert not any(stream.lag_ns)
        assert all(early > 0 for early in stream.early_ns)
    found = target.compare(*streams)
    assert not found.exact.any()
    assert not found.merged.any()
    assert found.lost_events == 0
    assert found.contained_share is not None
    assert found.contained_share >= 0.99


def test_a_capture_that_rolls_over_its_segments_loses_nothing(
    target: Target, tmp_path: Path
) -> None:
    client = Client(tmp_path, target.url, segment_bytes=80_000)
    for _ in range(10):
        client.start(tokens=100, gap_ms=0.5)
    client.run()
    streams = client.streams()
    assert len(list(tmp_path.iterdir())) > 5
    assert [sum(stream.tokens) for stream in streams] == [100] * 10
    assert target.compare(*streams).lost_events == 0
