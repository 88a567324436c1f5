"""Streams that fail: an error inside, a cut before the end, an answer that came whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from replay import sample

from legato import apis
from legato.recording import Stream
from legato.stamps import Anchor
from legato.wire import spool
from legato.wire.decode import Decoding, WorkerFacts, decode_worker
from legato.wire.spool import HEADER_BYTES, Spool

ERRORS = {
    "responses": b'event: error\ndata: {"type":"error","sequence_number":2,"code":"server_error",'
    b'"message":"it broke","param":null}\n\n',
    "anthropic": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", '
    b'"message": "it broke"}}\n\n',
    "ollama": b'{"error":"it broke"}\n',
    "ollama-generate": b'{"error":"it broke"}\n',
    "tgi": b'data:{"error":"it broke","error_type":"generation"}\n\n',
    "triton": b'data: {"error":"it broke"}\n\n',
    "llamacpp": b'data: {"error":{"code":500,"message":"it broke","type":"server_error"}}\n\n',
}
ENDLESS = ("triton",)  # has no end marker: only the response's own end tells


def decoded(folder: Path, name: str, body: bytes, content_type: str | None = None) -> Stream:
    """The stream of a response that was captured in one read."""
    api = apis.named(name)
    kind = content_type or ("application/x-ndjson" if api.ndjson else "text/event-stream")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    payload = head.encode() + body
    tape = Spool(folder, 0, 8 * spool.READ_BYTES)
    tape.append_anchor(Anchor(0, 10**18, 40))
    tape.append(spool.OPEN, 0, {"scheduled_ns": 0, "sent_ns": 0})
    start = tape.position + HEADER_BYTES
    tape.map[start : start + len(payload)] = payload
    tape.commit_read(0, len(payload), 1, 10**18 + 1000, 2000, 0)
    tape.append(spool.END, 0, {"status": "ok"})
    tape.append_anchor(Anchor(10**9, 10**18, 40))
    tape.close()
    (stream,) = decode_worker(folder, 0, Decoding(api, "", "", 0), WorkerFacts())
    return stream


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_inside_the_stream_is_told_in_the_servers_words(name: str, tmp_path: Path) -> None:
    stream = decoded(tmp_path, name, sample(name)[0] + ERRORS[name])
    assert stream.status == "aborted"
    assert stream.error == "the server reported inside the stream: it broke"


@pytest.mark.parametrize("name", [name for name in apis.APIS if name not in ENDLESS])
def test_a_stream_cut_before_its_end_is_not_a_good_one(name: str, tmp_path: Path) -> None:
    whole = sample(name)
    kept = next(n for n in range(len(whole)) if _ends(name, whole[n]))
    stream = decoded(tmp_path, name, b"".join(whole[:kept]))
    assert stream.status == "aborted"
    assert stream.error == f"the stream ended without {apis.named(name).end}"


def _ends(name: str, event: bytes) -> bool:
    api = apis.named(name)
    if api.ndjson:
        chunk = api.decode(event)
    else:
        lines = [line for line in event.splitlines() if line.startswith(b"data:")]
        if not lines:
            return False
        chunk = api.decode(lines[0].removeprefix(b"data:").strip())
    return chunk.terminal or chunk.finish_reason is not None


@pytest.mark.parametrize("name", apis.APIS)
def test_an_answer_that_came_whole_does_not_stream(name: str, tmp_path: Path) -> None:
    stream = decoded(tmp_path, name, b'{"text": "all of it"}', "application/json")
    assert stream.status == "not_streaming"
    assert not stream.kind


@pytest.mark.parametrize("name", apis.APIS)
def test_an_event_of_another_shape_is_a_protocol_error(name: str, tmp_path: Path) -> None:
    end = b"\n" if apis.named(name).ndjson else b"\n\n"
    frame = b"" if apis.named(name).ndjson else b"data: "
    stream = decoded(tmp_path, name, frame + b"[1, 2]" + end)
    assert stream.status == "protocol_error"
    assert stream.error == "event 1 is not a chunk of this API"


def test_a_triton_stream_ends_with_its_response(tmp_path: Path) -> None:
    assert decoded(tmp_path, "triton", sample("triton")[0]).status == "ok"
