"""Each fault as a client sees it, and that it spares the requests it is not meant for."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from metronome_client import Reply, ask, body_of, connect, get, request_bytes, until_end

from legato.metronome import truth
from legato.metronome.launch import Running, running
from legato.metronome.pattern import FAULTS, Pattern

ReadLog = Callable[[], truth.Truth]

QUICK = Pattern(gap_ms=1, first_token_ms=1, tokens=8)


@pytest.fixture(scope="module")
def log_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults") / "truth"


@pytest.fixture(scope="module")
def metronome(log_path: Path) -> Iterator[Running]:
    with running(QUICK, truth=log_path) as handle:
        yield handle


def faulty(metronome: Running, fault: str, **changes: Any) -> Reply:
    return ask(metronome.port, metronome={"fault": fault, **changes})


@pytest.fixture
def read_log(metronome: Running, log_path: Path) -> Callable[[], truth.Truth]:
    """Reads the log when everything that the client has seen is in it."""

    def read() -> truth.Truth:
        # Served by the same thread, so after the record of what was sent before.
        assert get(metronome.port, "/v1/models").status == 200
        return truth.load(log_path)

    return read


def last_end(log: truth.Truth) -> str:
    return truth.ENDS[int(log.ends["reason"][-1])]


@pytest.mark.parametrize("status", [400, 401, 404, 500, 502])
def test_http_error_answers_with_the_status_and_json(
    metronome: Running, read_log: ReadLog, status: int
) -> None:
    reply = faulty(metronome, "http_error", fault_status=status)
    assert reply.status == status
    assert reply.document["error"]["message"]
    assert "Retry-After" not in reply.headers
    assert last_end(read_log()) == "http_error"


@pytest.mark.parametrize("status", [429, 503])
def test_too_many_requests_says_when_to_come_back(metronome: Running, status: int) -> None:
    reply = faulty(metronome, "http_error", fault_status=status, retry_after_s=7)
    assert (reply.status, reply.headers["Retry-After"]) == (status, "7")


def test_a_reset_cuts_the_stream_at_its_token(metronome: Running, read_log: ReadLog) -> None:
    assert faulty(metronome, "reset", fault_at=3).ended == "reset"
    log = read_log()
    assert truth.ENDS[int(log.ends["reason"][-1])] == "reset"
    sent = log.events[log.events["stream"] == log.ends["stream"][-1]]
    assert int(sent["tokens"].sum()) == 3


def test_a_close_cuts_the_stream_at_its_token(metronome: Running, read_log: ReadLog) -> None:
    reply = faulty(metronome, "close", fault_at=3)
    assert (reply.ended, len(reply.deltas())) == ("cut", 3)
    assert last_end(read_log()) == "closed"


def test_half_an_event_is_followed_by_silence(metronome: Running, read_log: ReadLog) -> None:
    with connect(metronome.port) as sock:
        sock.sendall(request_bytes(body_of(metronome={"fault": "half_event", "fault_at": 3})))
        sock.settimeout(0.5)
        data = b""
        with contextlib.suppress(TimeoutError):
            while part := sock.recv(65536):
                data += part
            pytest.fail("the connection was closed")
    tail = data.rpartition(b"data: ")[2]
    assert tail.startswith(b'{"id"')
    assert not tail.endswith(b"\n")
    assert last_end(read_log()) == "silent"


def test_a_hang_answers_nothing(metronome: Running, read_log: ReadLog) -> None:
    with connect(metronome.port) as sock:
        sock.sendall(request_bytes(body_of(metronome={"fault": "hang"})))
        sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            sock.recv(1)
    assert last_end(read_log()) == "silent"


def test_garbage_breaks_the_framing_of_the_body(metronome: Running) -> None:
    reply = faulty(metronome, "garbage")
    assert reply.status == 200
    assert reply.ended in ("cut", "broken")


def test_a_garbage_event_is_framed_well_and_is_no_json(
    metronome: Running, read_log: ReadLog
) -> None:
    reply = faulty(metronome, "garbage_event")
    assert reply.ended == "whole"
    bad = [data for data in reply.data if data != "[DONE]" and not is_json(data)]
    assert len(bad) == 1
    assert "other" in {truth.KINDS[kind] for kind in read_log().events["kind"]}


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_a_garbage_head_is_no_http(metronome: Running) -> None:
    assert faulty(metronome, "garbage_head").ended == "broken"


def test_a_long_line_is_ten_megabytes_and_whole(metronome: Running, read_log: ReadLog) -> None:
    reply = faulty(metronome, "long_line")
    assert max(len(line) for line in reply.body.split(b"\n")) > 10_000_000
    assert len(reply.deltas()) == 8
    log = read_log()
    sends = log.sends[log.sends["stream"] == log.ends["stream"][-1]]
    assert (sends["after_ns"] >= sends["before_ns"]).all()
    assert (sends["before_ns"][1:] >= sends["after_ns"][:-1]).all()


def test_a_wrong_type_does_not_stream_at_all(metronome: Running) -> None:
    reply = faulty(metronome, "wrong_type")
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.document["object"] == "chat.completion"


def test_no_done_ends_the_body_in_good_order(metronome: Running) -> None:
    reply = faulty(metronome, "no_done")
    assert (reply.ended, len(reply.deltas())) == ("whole", 8)
    assert reply.data[-1] != "[DONE]"


def test_no_end_closes_after_the_last_token(metronome: Running) -> None:
    reply = faulty(metronome, "no_end")
    assert (reply.ended, len(reply.deltas())) == ("cut", 8)
    assert reply.data[-1] != "[DONE]"


def test_a_trickle_sends_one_event_a_byte_at_a_time(metronome: Running, read_log: ReadLog) -> None:
    reply = faulty(metronome, "trickle", trickle_ms=0.2)
    assert (reply.ended, len(reply.deltas()), reply.data[-1]) == ("whole", 8, "[DONE]")
    log = read_log()
    pieces = log.pieces[log.pieces["stream"] == log.ends["stream"][-1]]
    assert len(pieces) > 100


@pytest.mark.parametrize(
    "style",
    [
        {"line_ending": "crlf", "comments": True},
        {"split": "writes"},
        {"split": "chunks"},
        {"chunk_extensions": True, "trailers": True},
        {"terminators": True},
        {"framing": "close"},
        {"terminators": True, "split": "writes", "line_ending": "crlf", "events_per_write": 3},
    ],
    ids=str,
)
def test_unusual_styles_reach_a_correct_client_unharmed(
    metronome: Running, style: dict[str, Any]
) -> None:
    reply = ask(metronome.port, metronome=style)
    assert (reply.ended, len(reply.deltas()), reply.data[-1]) == ("whole", 8, "[DONE]")


def test_refuse_stops_listening_and_serves_who_is_connected() -> None:
    with running(Pattern(gap_ms=1, tokens=3, fault="refuse", fault_every=2)) as metronome:
        assert ask(metronome.port).data[-1] == "[DONE]"
        with connect(metronome.port) as sock:
            sock.sendall(request_bytes(body_of()))
            until_end(sock)
            with pytest.raises(ConnectionRefusedError):
                connect(metronome.port)
            sock.sendall(request_bytes(body_of()))
            until_end(sock)


@pytest.mark.parametrize("fault", [name for name in FAULTS if name not in ("none", "refuse")])
def test_a_fault_of_every_second_request_spares_the_others(fault: str) -> None:
    pattern = Pattern(
        gap_ms=1, first_token_ms=1, tokens=4, fault=fault, fault_every=2, trickle_ms=0.1,
        long_line_bytes=100_000,
    )  # fmt: skip
    with running(pattern) as metronome:
        for _ in range(3):
            assert ask(metronome.port).data[-1] == "[DONE]"
            with socket.create_connection(("127.0.0.1", metronome.port)) as sock:
                sock.sendall(request_bytes(body_of()))  # the one that meets it, and leaves
        stats = metronome.stop()
    assert stats["requests"] >= 5
