"""The server in its own process, asked by http.client, raw sockets and the openai client."""

from __future__ import annotations

import json
import select
import socket
import ssl
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import openai
import pytest
import trustme
from metronome_client import (
    CHAT,
    TEXT,
    ask,
    body_of,
    connect,
    get,
    parsed,
    request_bytes,
    until_end,
)

from legato.errors import UsageError
from legato.metronome import truth
from legato.metronome.launch import Running, running
from legato.metronome.pattern import Pattern
from legato.metronome.tls import TlsFiles

QUICK = Pattern(gap_ms=1, first_token_ms=1, tokens=6)


@pytest.fixture(scope="module")
def metronome() -> Iterator[Running]:
    with running(QUICK) as handle:
        yield handle


@pytest.fixture(scope="module")
def client(metronome: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=metronome.url, api_key="x", max_retries=0) as client:
        yield client


# --- the openai client


def test_the_openai_client_streams_a_chat(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="metronome",
        messages=[{"role": "user", "content": "count with me"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    texts = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert len(texts) == len(set(texts)) == 6
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    usage = chunks[-1].usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (3, 6, 9)


def test_the_openai_client_gets_the_same_chat_without_a_stream(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="metronome", messages=[{"role": "user", "content": "a b"}], max_tokens=3
    )
    assert answer.object == "chat.completion"
    assert len((answer.choices[0].message.content or "").split()) == 3
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3


def test_the_openai_client_completes_text_both_ways(client: openai.OpenAI) -> None:
    stream = client.completions.create(model="metronome", prompt="one two", stream=True)
    assert len([c for c in stream if c.choices[0].text]) == 6
    whole = client.completions.create(model="metronome", prompt="one two", max_tokens=2)
    assert len(whole.choices[0].text.split()) == 2
    assert whole.id.startswith("cmpl-")


def test_the_openai_client_assembles_reasoning_and_a_tool_call(client: openai.OpenAI) -> None:
    fields = {"metronome": {"tokens": 9, "reasoning_tokens": 3, "tool_tokens": 3}}
    answer = client.chat.completions.create(
        model="metronome", messages=[{"role": "user", "content": "a"}], extra_body=fields
    )
    message = answer.choices[0].message
    calls = message.tool_calls
    assert calls is not None
    assert calls[0].type == "function"
    assert json.loads(calls[0].function.arguments)["text"]
    assert len(str(getattr(message, "reasoning_content")).split()) == 3  # noqa: B009
    assert answer.choices[0].finish_reason == "tool_calls"


def test_models_are_listed_and_an_unknown_one_is_not_found(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["metronome"]
    assert client.models.retrieve("metronome").id == "metronome"
    with pytest.raises(openai.NotFoundError) as problem:
        client.completions.create(model="gpt", prompt="a")
    assert problem.value.code == "model_not_found"


# --- what a request can ask for


def test_continuous_usage_counts_up_chunk_by_chunk(metronome: Running) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    changes = {"tokens_per_event": 2}
    reply = ask(metronome.port, stream_options=options, metronome=changes)
    counts = [chunk["usage"]["completion_tokens"] for chunk in reply.chunks]
    assert counts == [0, 2, 4, 6, 6, 6]


def test_no_usage_where_the_pattern_has_none(metronome: Running) -> None:
    options = {"include_usage": True}
    reply = ask(metronome.port, stream_options=options, metronome={"usage": False})
    assert not [chunk for chunk in reply.chunks if "usage" in chunk]


@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_token_ids_and_logprobs_tell_the_tokens_of_each_event(
    metronome: Running, path: str
) -> None:
    changes = {"tokens_per_event": 4}
    fields: dict[str, Any] = {"prompt": "a"} if path == TEXT else {}
    reply = ask(
        metronome.port, path, return_token_ids=True, logprobs=1, metronome=changes, **fields
    )
    choices = [chunk["choices"][0] for chunk in reply.chunks if chunk["choices"]]
    ids = [len(choice["token_ids"]) for choice in choices if "token_ids" in choice]
    key = "content" if path == CHAT else "tokens"
    logprobs = [len(choice["logprobs"][key]) for choice in choices if choice["logprobs"]]
    assert ids == logprobs == [4, 2]


def test_a_bad_override_is_refused_and_the_connection_lives_on(metronome: Running) -> None:
    sock = connect(metronome.port)
    with sock:
        sock.sendall(request_bytes(body_of(metronome={"gap_ms": "slow"})))
        refused = parsed(sock.recv(65536))
        assert refused.status == 400
        assert "gap_ms is 'slow'" in refused.document["error"]["message"]
        sock.sendall(request_bytes(body_of(stream=False)))
        assert parsed(sock.recv(65536)).status == 200


def test_requests_on_one_connection_are_answered_in_turn(metronome: Running) -> None:
    with connect(metronome.port) as sock:
        sock.sendall(request_bytes(body_of()) * 3)
        data = b""
        while data.count(b"\r\n0\r\n\r\n") < 3:
            data += sock.recv(65536)
    ids = [json.loads(line[6:])["id"] for line in data.split(b"\n") if line.startswith(b"data: {")]
    numbers = [int(name.rpartition("-")[2]) for name in ids]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == 3


@pytest.mark.parametrize(
    ("request_line", "status"),
    [("GET /nothing", 404), ("GET /v1/chat/completions", 405), ("NONSENSE", 400)],
)
def test_a_wrong_place_or_method_gets_a_json_error(
    metronome: Running, request_line: str, status: int
) -> None:
    with connect(metronome.port) as sock:
        sock.sendall(request_line.encode() + b" HTTP/1.1\r\nConnection: close\r\n\r\n")
        reply = parsed(sock.recv(65536))
    assert reply.status == status
    assert reply.document["error"]["message"]


def test_a_client_that_waits_to_continue_is_told_to(metronome: Running) -> None:
    request = request_bytes(body_of(stream=False))
    head, _, body = request.partition(b"\r\n\r\n")
    with connect(metronome.port) as sock:
        sock.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert parsed(sock.recv(65536)).status == 200


def test_http_1_0_gets_a_body_that_ends_with_the_connection(metronome: Running) -> None:
    with connect(metronome.port) as sock:
        sock.sendall(request_bytes(body_of()).replace(b"HTTP/1.1", b"HTTP/1.0"))
        data = b""
        while part := sock.recv(65536):
            data += part
    reply = parsed(data)
    assert "Transfer-Encoding" not in reply.headers
    assert reply.data[-1] == "[DONE]"


def test_statistics_can_be_asked_for_while_it_runs(metronome: Running) -> None:
    ask(metronome.port)
    stats = get(metronome.port, "/metronome/stats").document
    assert stats["open_streams"] == 0
    assert stats["events"] >= 9
    assert 0 <= stats["lateness_us"]["p50"] <= stats["lateness_us"]["max"]


# --- many clients


def test_five_hundred_streams_at_once_are_all_served(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    with running(Pattern(gap_ms=20, first_token_ms=50, tokens=5), truth=path) as metronome:
        socks = []
        for _ in range(500):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", metronome.port))
            socks.append(sock)
        for sock in socks:
            assert select.select([], [sock], [], 20)[1]
            sock.settimeout(20)
            sock.sendall(request_bytes(body_of()))
        for sock in socks:
            assert until_end(sock).count(b'"content":" ') == 5
            sock.close()
        stats = metronome.stop()
    assert stats["requests"] == 500
    log = truth.load(path)
    assert len(log) == len(log.ends) == 500
    assert int(log.events["tokens"].sum()) == 2500


def test_a_stream_that_starts_holds_up_the_others(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    pattern = Pattern(gap_ms=20, first_token_ms=1, tokens=50, interference_ms=200)
    with running(pattern, truth=path) as metronome, connect(metronome.port) as sock:
        sock.sendall(request_bytes(body_of()))
        assert sock.recv(65536)
        ask(metronome.port, max_tokens=1)
        until_end(sock)
    log = truth.load(path)
    deadlines = log.events_of(log.response_ids[0])["deadline_ns"]
    gaps = sorted(int(b - a) for a, b in pairwise(deadlines))
    assert gaps[-1] == 220_000_000
    assert gaps[-2] == 20_000_000


def test_a_stall_of_all_delays_every_open_stream_at_once(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    pattern = Pattern(gap_ms=20, first_token_ms=300, tokens=12)
    stalls = {"stall_ms": 300, "stall_at": 6, "stall_scope": "all"}
    with running(pattern, truth=path) as metronome:
        socks = [connect(metronome.port) for _ in range(3)]
        for sock, changes in zip(socks, ({}, {}, stalls), strict=True):
            sock.sendall(request_bytes(body_of(metronome=changes)))
        for sock in socks:
            until_end(sock)
            sock.close()
    log = truth.load(path)
    for response in log.response_ids:
        deadlines = log.events_of(response)["deadline_ns"]
        gaps = [int(b - a) for a, b in pairwise(deadlines)]
        assert sorted(gap for gap in gaps if gap)[-2:] == [20_000_000, 320_000_000]


# --- TLS, addresses, start


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls_files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    folder = tmp_path_factory.mktemp("tls")
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(folder / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    return TlsFiles(folder / "cert.pem", folder / "key.pem")


def test_over_tls_the_stream_and_the_log_are_the_same(
    authority: trustme.CA, tls_files: TlsFiles, tmp_path: Path
) -> None:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    path = tmp_path / "truth"
    with running(QUICK, truth=path, tls=tls_files) as metronome:
        assert metronome.url.startswith("https://")
        reply = ask(metronome.port, context=context)
        assert len(reply.deltas()) == 6
        big = ask(
            metronome.port,
            context=context,
            metronome={"fault": "long_line", "long_line_bytes": 3_000_000},
        )
        assert len(big.body) > 3_000_000
        assert big.data[-1] == "[DONE]"
    log = truth.load(path)
    assert log.requests["kernel"].tolist() == [1, 1]
    assert log.arrivals(reply.chunks[0]["id"])[2].tolist() == [1] * 6


def test_a_plain_client_of_a_tls_server_is_dropped_and_nobody_else(
    authority: trustme.CA, tls_files: TlsFiles
) -> None:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with running(QUICK, tls=tls_files) as metronome:
        with connect(metronome.port) as sock:
            sock.sendall(request_bytes(body_of()))
            while sock.recv(65536):
                pass
        assert ask(metronome.port, context=context).data[-1] == "[DONE]"


def test_it_listens_on_ipv6() -> None:
    try:
        with running(QUICK, host="::1") as metronome:
            with socket.create_connection(("::1", metronome.port), 10) as sock:
                sock.sendall(b"GET /v1/models HTTP/1.1\r\n\r\n")
                assert b"200 OK" in sock.recv(65536)
            assert metronome.url == f"http://[::1]:{metronome.port}/v1"
    except UsageError as error:
        pytest.skip(f"no IPv6 here: {error}")


def test_a_port_in_use_is_told_in_one_sentence(metronome: Running) -> None:
    with (
        pytest.raises(UsageError, match=f"port {metronome.port}: Address already in use"),
        running(QUICK, port=metronome.port),
    ):
        pass


def test_an_unwritable_truth_log_is_told_before_it_listens(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="cannot write the truth log"),
        running(QUICK, truth=tmp_path / "no" / "folder"),
    ):
        pass


def test_a_certificate_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    missing = TlsFiles(tmp_path / "cert.pem", tmp_path / "key.pem")
    with pytest.raises(UsageError, match="cannot use the certificate"), running(QUICK, tls=missing):
        pass
