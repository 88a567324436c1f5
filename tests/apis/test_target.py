"""Where an API's requests go, which model they name, and the endpoints that are refused."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from replay import Replay, bench_one, replaying, run, sample

from legato import apis
from legato.errors import TargetError, UsageError
from legato.traffic import target
from legato.wire.endpoint import parse_url

SETTINGS_FRAME = bytes([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0x3F, 0xFF, 0xFF])
GOAWAY_FRAME = bytes([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])


# --- paths ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "given", "base"),
    [
        ("chat", "", "/v1"),
        ("chat", "/v1/", "/v1"),
        ("chat", "/openai/deployments/x", "/openai/deployments/x"),
        ("chat", "/v1/chat/completions", "/v1"),
        ("anthropic", "", "/v1"),
        ("anthropic", "/anthropic/v1", "/anthropic/v1"),
        ("ollama", "", "/api"),
        ("ollama", "/api", "/api"),
        ("ollama", "/v1", "/api"),
        ("ollama", "/api/chat", "/api"),
        ("tgi", "", ""),
        ("tgi", "/v1", ""),
        ("tgi", "/generate_stream", ""),
        ("tgi", "/my/model", "/my/model"),
        ("triton", "/", "/v2"),
        ("triton", "/serving/v2", "/serving/v2"),
        ("llamacpp", "/v1", ""),
        ("llamacpp", "/gpu0/v1", "/gpu0"),
    ],
)
def test_a_base_url_is_taken_as_people_give_it(api: str, given: str, base: str) -> None:
    assert apis.named(api).base_path(given) == base


def test_a_models_name_is_quoted_in_a_path() -> None:
    path = apis.named("triton").path_for("a/b c")
    assert path == "/models/a%2Fb%20c/generate_stream"


# --- bodies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", apis.APIS)
def test_extra_fields_are_merged_in_and_a_null_removes_one(name: str) -> None:
    extra = {"options": {"temperature": 0}, "parameters": {"top_k": 5}, "stream": None}
    body = apis.named(name).body("m", "the prompt", 7, extra)
    assert body["options"]["temperature"] == 0
    assert body["parameters"]["top_k"] == 5
    assert "stream" not in body
    assert apis.named(name).body("m", "the prompt", 7, {}).items() <= (body | KEPT[name]).items()


KEPT: dict[str, dict[str, Any]] = {name: {"stream": True} for name in apis.APIS} | {
    "ollama": {"stream": True, "options": {"num_predict": 7}},
    "ollama-generate": {"stream": True, "options": {"num_predict": 7}},
    "tgi": {"parameters": {"details": True, "max_new_tokens": 7}},
}


def test_a_header_of_the_users_replaces_the_apis_own(tmp_path: Path) -> None:
    listings = {"/v1/models": {"data": [{"id": "claude-x"}]}}
    with replaying(Replay(sample("anthropic"), "text/event-stream", listings)) as server:
        bench_one(
            server.url,
            tmp_path / "run.parquet",
            *("--api", "anthropic", "--header", "Anthropic-Version: 2027-01-01"),
        )
    assert server.posted.headers["anthropic-version"] == "2027-01-01"
    assert "x-api-key" not in server.posted.headers


# --- models -----------------------------------------------------------------------------------


def look(api: str, listings: dict[str, Any], model: str | None = None) -> target.Target:
    with replaying(Replay([], "text/event-stream", listings)) as server:
        endpoint = parse_url(server.url + apis.named(api).base_path(""))
        return target.look(apis.named(api), endpoint, {}, model, insecure=False)


def test_a_server_of_one_model_is_asked_under_any_name() -> None:
    info = {"/v1/info": {"model_id": "bigscience/bloom"}}
    assert look("tgi", info) == target.Target("bigscience/bloom", "tgi")
    assert look("tgi", info, "my-name") == target.Target("my-name", "tgi")
    assert look("tgi", {}) == target.Target("unnamed", None)


def test_triton_needs_the_name_of_the_model_and_checks_it() -> None:
    with pytest.raises(UsageError, match="needs --model"):
        look("triton", {})
    with pytest.raises(UsageError, match="has no model 'other'"):
        look("triton", {}, "other")
    served = {"/v2/models/mine": {"name": "mine", "platform": "tensorrtllm"}}
    assert look("triton", served, "mine") == target.Target("mine", "tensorrtllm")


def test_ollama_without_a_model_is_told() -> None:
    with pytest.raises(TargetError, match="serves no model"):
        look("ollama", {"/api/tags": {"models": []}})
    with pytest.raises(UsageError, match="has no model 'b'; it has a:latest, a"):
        look("ollama", {"/api/tags": {"models": [{"name": "a:latest"}]}}, "b")


# --- what is refused --------------------------------------------------------------------------


def refused(*arguments: object) -> tuple[int, str]:
    code, out, err = run("bench", *arguments)
    assert out == ""
    assert err.startswith("legato: ")
    assert err.count("\n") == 1
    return code, err


@pytest.mark.parametrize(
    "arguments", [("grpc://127.0.0.1:8001",), ("http://127.0.0.1:1", "--api", "kserve-grpc")]
)
def test_grpc_is_refused_in_a_sentence_that_names_the_alternative(
    arguments: tuple[str, ...],
) -> None:
    code, sentence = refused(*arguments)
    assert code == 2
    assert "not gRPC" in sentence
    assert "--api triton" in sentence


@contextmanager
def listening(answer: bytes, *, to_http1: bool) -> Iterator[int]:
    """A port that knows only HTTP/2: to HTTP/1.1 it answers in HTTP/2, or closes at once."""

    def serve(sock: socket.socket) -> None:
        with sock:
            if to_http1 or sock.recv(4096).startswith(b"PRI * HTTP/2.0"):
                sock.sendall(answer)
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(4096):
                    pass

    def accept() -> None:
        try:
            while True:
                serve(listener.accept()[0])
        except OSError:
            return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("to_http1", [True, False], ids=["answers in HTTP/2", "closes"])
def test_a_port_that_speaks_only_http2_is_refused_likewise(to_http1: bool) -> None:
    with listening(SETTINGS_FRAME + GOAWAY_FRAME, to_http1=to_http1) as port:
        code, sentence = refused(f"http://127.0.0.1:{port}")
    assert code == 4
    assert "speaks only HTTP/2" in sentence
    assert "--api triton" in sentence


def test_an_unknown_api_is_told_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose one of chat, completions, responses, anthropic"):
        apis.named("nonesuch")
    with pytest.raises(UsageError, match="cannot read the API template"):
        apis.named(str(tmp_path / "none.toml"))
