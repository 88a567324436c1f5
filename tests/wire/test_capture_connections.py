"""Connections, new and kept: what each cost, and what happens to one the server has closed."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from captures import Client, one, recording_of
from scripted import (
    DONE,
    LAST_CHUNK,
    STREAM_HEAD,
    Conversation,
    answering,
    chunked,
    closing,
    content,
    http_url,
    serving,
)

from legato.calibrate.truth import compare
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.metronome.truth import load as load_truth
from legato.recording import USER_CLOCK

ANSWER = STREAM_HEAD + chunked(content("a"), DONE) + LAST_CHUNK
SHORT = Pattern(gap_ms=1, first_token_ms=2, tokens=10)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(SHORT) as metronome:
        yield metronome.url


def test_a_kept_connection_is_used_again_and_a_new_one_tells_its_cost(
    url: str, tmp_path: Path
) -> None:
    client = Client(tmp_path, url)
    for _ in range(3):
        client.start()
        client.run()
    first, *others = client.streams()
    assert not first.reused
    assert (first.connect_ns or 0) > 0
    assert first.idle_before_ns is None
    previous = first
    for stream in others:
        assert stream.reused
        assert stream.connect_ns is None
        assert stream.idle_before_ns is not None
        assert stream.sent_ns is not None
        assert 0 < stream.idle_before_ns <= stream.sent_ns - previous.ended_ns
        previous = stream
    assert {stream.remote_addr for stream in (first, *others)} == {"127.0.0.1"}


def test_streams_that_are_open_together_have_a_connection_each(url: str, tmp_path: Path) -> None:
    client = Client(tmp_path, url)
    for _ in range(4):
        client.start()
    client.run()
    for _ in range(4):
        client.start()
    client.run()
    assert [stream.reused for stream in client.streams()] == [False] * 4 + [True] * 4


def test_fresh_connections_are_never_used_again(url: str, tmp_path: Path) -> None:
    client = Client(tmp_path, url, keep_alive=False)
    for _ in range(3):
        client.start()
        client.run()
    streams = client.streams()
    assert not any(stream.reused for stream in streams)
    assert all(stream.connect_ns for stream in streams)


def test_a_response_that_says_close_ends_its_connection(url: str, tmp_path: Path) -> None:
    client = Client(tmp_path, url)
    client.start(framing="close")
    client.run()
    client.start()
    client.run()
    assert [stream.reused for stream in client.streams()] == [False, False]


def test_a_kept_connection_that_the_server_closes_on_the_next_request_is_retried_once(
    tmp_path: Path,
) -> None:
    def leaving(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(ANSWER)
        conversation.request()

    with serving(leaving, answering(ANSWER)) as port:
        client = Client(tmp_path, http_url(port))
        for _ in range(2):
            client.start()
            client.run()
        first, second = client.streams()
    assert client.capture.counters.retried == 1
    assert [first.status, second.status] == ["ok", "ok"]
    assert not second.reused
    assert second.connect_ns is not None
    assert client.reached == [True, True]


def test_a_kept_connection_that_is_reset_on_the_next_request_is_retried_once(
    tmp_path: Path,
) -> None:
    def resetting(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(ANSWER)
        conversation.request()
        conversation.reset()

    with serving(resetting, answering(ANSWER)) as port:
        client = Client(tmp_path, http_url(port))
        for _ in range(2):
            client.start()
            client.run()
        assert [stream.status for stream in client.streams()] == ["ok", "ok"]
    assert client.capture.counters.retried == 1


def test_the_retry_is_not_retried(tmp_path: Path) -> None:
    def leaving(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(ANSWER)
        conversation.request()

    with serving(leaving, closing) as port:
        client = Client(tmp_path, http_url(port))
        for _ in range(2):
            client.start()
            client.run()
        _, second = client.streams()
    assert client.capture.counters.retried == 1
    assert (second.status, second.error) == ("aborted", "the server closed without a response")


def test_a_stream_cut_after_its_first_byte_is_never_retried(tmp_path: Path) -> None:
    def cutting(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(ANSWER)
        conversation.request()
        conversation.send(STREAM_HEAD)

    with serving(cutting) as port:
        client = Client(tmp_path, http_url(port))
        for _ in range(2):
            client.start()
            client.run()
        _, second = client.streams()
    assert client.capture.counters.retried == 0
    assert (second.status, second.reused) == ("aborted", True)


def test_a_kept_connection_closed_while_it_slept_is_dropped_without_a_retry(
    tmp_path: Path,
) -> None:
    def once(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(ANSWER)

    with serving(once, once) as port:
        client = Client(tmp_path, http_url(port))
        client.start()
        client.run()
        time.sleep(0.05)
        client.capture.poll(0)
        client.start()
        client.run()
        assert [stream.status for stream in client.streams()] == ["ok", "ok"]
    assert client.capture.counters.retried <= 1


def test_an_address_that_refuses_is_followed_by_the_next(url: str, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: it refuses
        refusing = (int(socket.AF_INET), unused.getsockname())
        client = Client(tmp_path, url, addresses_before=[refusing])
        client.start()
        client.run()
    (stream,) = client.streams()
    assert stream.status == "ok"


def ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not ipv6(), reason="this machine has no IPv6 loopback")
def test_ipv6_is_recorded_as_exactly_as_ipv4(tmp_path: Path) -> None:
    with running(SHORT, host="::1", truth=tmp_path / "truth") as metronome:
        stream = one(tmp_path / "capture", metronome.url, events_per_write=2)
    assert (stream.status, stream.remote_addr) == ("ok", "::1")
    assert sum(stream.tokens) == 10
    assert not any(flags & USER_CLOCK for flags in stream.flags)
    assert compare(recording_of([stream]), load_truth(tmp_path / "truth")).lost_events == 0


def test_the_deadlines_of_a_kept_connection_do_not_pile_up(url: str, tmp_path: Path) -> None:
    client = Client(tmp_path, url)
    for _ in range(20):
        client.start(tokens=1, first_token_ms=0)
        client.run()
    assert len(client.capture._alarms) == 1
    assert [stream.status for stream in client.streams()] == ["ok"] * 20
