"""Whatever a server does wrong, its stream ends by itself with a status and a sentence, and the
streams beside it are unaffected."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from captures import Client, one
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

from legato.metronome.launch import running
from legato.metronome.pattern import FAULTS, Pattern
from legato.recording import CONTENT, Stream
from legato.wire.deadlines import Deadlines

SHORT = Deadlines(connect_s=5, first_byte_s=1, idle_s=1, total_s=20)
KEY = "sk-never-to-be-written-0123456789"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(Pattern(gap_ms=1, first_token_ms=2, tokens=20)) as metronome:
        yield metronome.url


EXPECTED = {
    "none": ("ok", None),
    "http_error": ("http_error", "HTTP 500: The metronome was told to answer with status 500."),
    "hang": ("timeout", "no byte of a response within 1 s"),
    "reset": ("aborted", "connection reset by peer"),
    "close": ("aborted", "the server closed before the response was complete"),
    "half_event": ("timeout", "nothing came for 1 s"),
    "garbage": ("protocol_error", "bad chunk size"),
    "garbage_event": ("protocol_error", "is not a chunk of this API"),
    "garbage_head": ("protocol_error", "this is not HTTP"),
    "long_line": ("ok", None),
    "wrong_type": ("not_streaming", "the answer came whole, as application/json"),
    "no_done": ("ok", None),
    "no_end": ("aborted", "the server closed before the response was complete"),
    "trickle": ("ok", None),
}
DURING = {"reset", "close", "half_event", "garbage", "garbage_event"}


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "refuse"])
def test_every_fault_of_the_metronome_has_its_status_and_leaves_the_others_alone(
    fault: str, url: str, tmp_path: Path
) -> None:
    client = Client(tmp_path, url, deadlines=SHORT)
    for number in range(5):
        client.start(None, fault=fault if number == 2 else "none", trickle_ms=0.2)
    client.run()
    streams = client.streams()
    struck = streams.pop(2)
    status, sentence = EXPECTED[fault]
    assert struck.status == status
    if sentence is None:
        assert struck.error is None
        assert sum(struck.tokens) == 20
    else:
        assert sentence in (struck.error or "")
    if fault in DURING:
        # What came before the fault is kept, with its times.
        assert 5 <= list(struck.kind).count(CONTENT) <= 20
    assert [(stream.status, sum(stream.tokens)) for stream in streams] == [("ok", 20)] * 4


def test_a_server_that_no_longer_listens_refuses_the_connection(tmp_path: Path) -> None:
    with running(Pattern(fault="refuse", tokens=5, gap_ms=1)) as metronome:
        client = Client(tmp_path, metronome.url, keep_alive=False)
        client.start()
        client.run()
        client.start()
        client.run()
        first, second = client.streams()
    assert first.status == "ok"
    assert (second.status, second.error) == ("aborted", "connection refused")
    assert second.sent_ns is None
    assert list(second.arrival_ns) == []


def test_too_many_requests_keeps_when_to_come_back(url: str, tmp_path: Path) -> None:
    stream = one(tmp_path, url, fault="http_error", fault_status=429, retry_after_s=7)
    assert (stream.status, stream.http_status, stream.retry_after) == ("http_error", 429, "7")


def test_a_line_of_ten_megabytes_is_one_event(url: str, tmp_path: Path) -> None:
    stream = one(tmp_path, url, fault="long_line", long_line_bytes=10_000_000)
    assert stream.status == "ok"
    assert list(stream.kind).count(CONTENT) == 20


# --- what the metronome does not do -----------------------------------------------------------


def answered(folder: Path, *parts: bytes, **options: Any) -> Stream:
    """The stream that a server which sends exactly these parts gives."""
    with serving(answering(*parts)) as port:
        client = Client(folder, http_url(port), **options)
        client.start()
        client.run()
        (stream,) = client.streams()
    return stream


def test_bytes_after_the_end_of_a_response_are_a_protocol_error(tmp_path: Path) -> None:
    stream = answered(tmp_path, STREAM_HEAD + chunked(content("a"), DONE) + LAST_CHUNK + b"x")
    assert stream.status == "protocol_error"
    assert stream.error == "bytes after the end of the response"
    assert list(stream.kind).count(CONTENT) == 1


def test_a_compressed_body_is_told_and_not_guessed_at(tmp_path: Path) -> None:
    body = gzip.compress(content("a") + DONE)
    head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    stream = answered(tmp_path, head + chunked(body) + LAST_CHUNK)
    assert stream.status == "protocol_error"
    assert stream.error == "the body is compressed (gzip) though none was asked"


def test_a_body_that_ends_without_done_or_a_reason_was_cut(tmp_path: Path) -> None:
    stream = answered(tmp_path, STREAM_HEAD + chunked(content("a")) + LAST_CHUNK)
    assert stream.status == "aborted"
    assert stream.error == "the stream ended without [DONE] or a finish reason"


def test_an_error_inside_the_stream_aborts_it_with_the_servers_words(tmp_path: Path) -> None:
    error = b'data: {"error":{"message":"out of memory","code":500}}\n\n'
    stream = answered(tmp_path, STREAM_HEAD + chunked(content("a"), error, DONE) + LAST_CHUNK)
    assert stream.status == "aborted"
    assert stream.error == "the server reported inside the stream: out of memory"


def test_an_answer_without_a_content_type_does_not_stream(tmp_path: Path) -> None:
    stream = answered(tmp_path, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    assert stream.status == "not_streaming"
    assert stream.error == "the answer came whole, as no content type"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"error":{"message":"no such model"}}', "HTTP 404: no such model"),
        (b'{"error":"no such model"}', "HTTP 404: no such model"),
        (b'{"detail":"Not Found"}', "HTTP 404: Not Found"),
        (b"<html>not found</html>", "HTTP 404: <html>not found</html>"),
        (b"", "HTTP 404: no body"),
        (b"[1]", "HTTP 404: [1]"),
        (b"\xff", "HTTP 404: \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_an_error_answer_is_told_by_its_sentence(
    body: bytes, sentence: str, tmp_path: Path
) -> None:
    head = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(body)
    stream = answered(tmp_path, head + body)
    assert (stream.status, stream.http_status, stream.error) == ("http_error", 404, sentence)


def test_an_error_answer_of_any_length_is_cut_to_a_sentence(tmp_path: Path) -> None:
    head = b"HTTP/1.1 500 Oh\r\nContent-Length: 1000000\r\n\r\n"
    stream = answered(tmp_path, head + b"x" * 1_000_000)
    assert stream.status == "http_error"
    assert len(stream.error or "") == 300


def test_an_interim_response_is_not_the_answer(tmp_path: Path) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    answer = STREAM_HEAD + chunked(content("a"), DONE) + LAST_CHUNK
    stream = answered(tmp_path, interim, answer)
    assert (stream.status, stream.http_status) == ("ok", 200)


def test_a_server_that_closes_without_a_word_is_told_so(tmp_path: Path) -> None:
    with serving(closing) as port:
        stream = one(tmp_path, http_url(port))
    assert (stream.status, stream.error) == ("aborted", "the server closed without a response")
    assert stream.first_byte_ns is None


def test_events_of_strange_types_make_one_protocol_error_and_can_be_recorded(
    tmp_path: Path,
) -> None:
    events = [
        {"id": 7, "choices": []},
        {"id": "x", "choices": [{"delta": {"content": 5}}]},
        {"id": "x", "choices": [{"delta": {"content": "a"}}], "usage": {"completion_tokens": "2"}},
        {"id": "x", "choices": [], "usage": {"completion_tokens": 2**40}},
    ]
    data = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    stream = answered(tmp_path, STREAM_HEAD + chunked(*data, DONE) + LAST_CHUNK)
    assert stream.status == "protocol_error"
    assert stream.error == "event 1 is not a chunk of this API"
    assert len(stream.kind) == 5


@pytest.mark.parametrize("padding", [0, 180, 250, 290, 5000])
def test_a_key_that_the_server_sends_back_is_not_recorded_wherever_it_lies(
    padding: int, tmp_path: Path
) -> None:
    body = b"x" * padding + b"wrong key " + KEY.encode()
    head = b"HTTP/1.1 401 No\r\nRetry-After: %b\r\nContent-Length: %d\r\n\r\n"
    stream = answered(tmp_path, head % (KEY.encode(), len(body)) + body, secrets=(KEY,))
    assert stream.status == "http_error"
    assert stream.retry_after == "[key]"
    assert KEY[:10] not in repr(stream)


def test_a_key_inside_the_stream_is_not_recorded_either(tmp_path: Path) -> None:
    event = content(f"your key is {KEY}").replace(b'"scripted"', json.dumps(KEY).encode())
    answer = STREAM_HEAD + chunked(event, DONE) + LAST_CHUNK
    stream = answered(tmp_path, answer, secrets=(KEY,), keep_text=True)
    assert stream.status == "ok"
    assert (stream.response_id, stream.text) == ("[key]", ["your key is [key]", ""])


# --- deadlines --------------------------------------------------------------------------------


def silent(conversation: Conversation) -> None:
    conversation.gone()


def test_a_connection_that_is_not_made_in_time_times_out(tmp_path: Path) -> None:
    # A server that never answers the TLS handshake: connecting includes it.
    with serving(silent) as port:
        client = Client(
            tmp_path, f"https://127.0.0.1:{port}/v1", deadlines=Deadlines(connect_s=0.2)
        )
        client.start()
        client.run()
        (stream,) = client.streams()
    assert (stream.status, stream.error) == ("timeout", "no connection within 0.2 s")
    assert stream.sent_ns is None
    assert stream.ended_ns - stream.scheduled_ns >= 200_000_000


def test_a_first_byte_that_does_not_come_in_time_times_out(tmp_path: Path) -> None:
    limits = Deadlines(first_byte_s=0.3, idle_s=0.1)
    stream = answered(tmp_path, deadlines=limits)
    assert (stream.status, stream.error) == ("timeout", "no byte of a response within 0.3 s")
    assert stream.ended_ns - (stream.sent_ns or 0) >= 300_000_000


def test_silence_between_reads_times_out_though_the_first_byte_has_longer(tmp_path: Path) -> None:
    limits = Deadlines(connect_s=600, first_byte_s=600, idle_s=0.2)
    stream = answered(tmp_path, STREAM_HEAD, deadlines=limits)
    assert (stream.status, stream.error) == ("timeout", "nothing came for 0.2 s")
    assert stream.first_byte_ns is not None
    assert stream.ended_ns - stream.first_byte_ns >= 200_000_000


def test_a_stream_that_goes_on_and_on_times_out_as_a_whole(tmp_path: Path) -> None:
    def trickling(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(STREAM_HEAD)
        conversation.sock.settimeout(0.01)
        while True:
            try:
                if not conversation.sock.recv(1):
                    return
            except TimeoutError:
                conversation.send(chunked(b": still here\n\n"))
            except ConnectionError:
                return

    with serving(trickling) as port:
        limits = Deadlines(connect_s=600, first_byte_s=600, idle_s=600, total_s=0.3)
        client = Client(tmp_path, http_url(port), deadlines=limits)
        client.start()
        client.run()
        (stream,) = client.streams()
    assert (stream.status, stream.error) == ("timeout", "not complete within 0.3 s")


def test_deadlines_hold_for_each_stream_of_a_kept_connection(tmp_path: Path) -> None:
    def twice(conversation: Conversation) -> None:
        conversation.request()
        conversation.send(STREAM_HEAD + chunked(content("a"), DONE) + LAST_CHUNK)
        conversation.request()
        conversation.send(STREAM_HEAD)
        conversation.gone()

    with serving(twice) as port:
        limits = Deadlines(connect_s=600, first_byte_s=600, idle_s=0.2, total_s=600)
        client = Client(tmp_path, http_url(port), deadlines=limits)
        client.start()
        client.run()
        client.start()
        client.run()
        first, second = client.streams()
    assert first.status == "ok"
    assert second.reused
    assert (second.status, second.error) == ("timeout", "nothing came for 0.2 s")


def test_a_capture_that_is_stopped_ends_its_streams_with_the_reason(
    url: str, tmp_path: Path
) -> None:
    client = Client(tmp_path, url)
    for _ in range(3):
        client.start(tokens=1000, gap_ms=50)
    client.run(reads=3)
    client.capture.stop("stopped before the end")
    assert client.capture.counters.open == 0
    streams = client.streams()
    assert [stream.status for stream in streams] == ["aborted"] * 3
    assert {stream.error for stream in streams} == {"stopped before the end"}
