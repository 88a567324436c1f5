"""Real servers with tiny models of random weights. Slow to set up, so not run by default:
`pytest -m slow tests/apis`, with what each test says it misses installed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_gguf
import tiny_transformer
from replay import run

import legato
from legato.recording import Stream

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

START_S = 300  # loading a framework may take minutes on a busy machine
TOKENS = 16


@pytest.fixture(scope="module")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """llama.cpp's server; LEGATO_LLAMA_SERVER names it where it is not on the path."""
    program = os.environ.get("LEGATO_LLAMA_SERVER") or shutil.which("llama-server")
    if program is None:
        pytest.skip("there is no llama-server; LEGATO_LLAMA_SERVER may name one")
    model = tmp_path_factory.mktemp("model") / "tiny.gguf"
    tiny_gguf.write(model)
    port = _free_port()
    options = ("--model", model, "--host", "127.0.0.1", "--port", port, "-c", 4096, "-np", 2)
    with serving(port, "/health", program, *options) as url:
        yield url


@pytest.fixture(scope="module")
def llama_cpp_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """llama-cpp-python's server, whose lines end in CRLF."""
    _needs("llama_cpp", "llama-cpp-python[server]")
    model = tmp_path_factory.mktemp("model") / "tiny.gguf"
    tiny_gguf.write(model)
    port = _free_port()
    module = ("-m", "llama_cpp.server", "--model", model, "--n_ctx", 2048)
    # By default a request cuts off the one that is being answered.
    place = ("--host", "127.0.0.1", "--port", port, "--interrupt_requests", "false")
    with serving(port, "/v1/models", sys.executable, *module, *place) as url:
        yield url


@pytest.fixture(scope="module")
def transformers_serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of `transformers serve`, and the folder of its model."""
    _needs("transformers", "transformers[serving]")
    model = tmp_path_factory.mktemp("model") / "tiny"
    tiny_transformer.write(model)
    port = _free_port()
    command = ("-m", "transformers.cli.transformers", "serve", model)
    place = ("--host", "127.0.0.1", "--port", port, "--device", "cpu")
    with serving(port, "/health", sys.executable, *command, *place) as url:
        yield url, model


def _needs(module: str, package: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {package}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@contextlib.contextmanager
def serving(port: int, ready: str, *command: object) -> Iterator[str]:
    """The URL of a server that was started and says that it is ready."""
    process = subprocess.Popen(
        [str(part) for part in command],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(process, url + ready)
        yield url
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], url: str) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        assert process.poll() is None, f"the server ended with {process.returncode}"
        with contextlib.suppress(OSError, urllib.error.URLError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.2)
    raise AssertionError("the server was never ready")


def measured(url: str, out: Path, *arguments: object) -> list[Stream]:
    """Four streams, two at a time."""
    load = ("--concurrency", 2, "--requests", 4, "--prompt-tokens", 8, "--output-tokens", TOKENS)
    code, _, err = run("bench", url, "--json", "--keep-text", "--out", out, *load, *arguments)
    assert code in (0, 3), err  # a noisy machine may make any run invalid
    return list(legato.load(str(out)))


def assert_whole(streams: list[Stream]) -> None:
    assert [(stream.status, stream.error) for stream in streams] == [("ok", None)] * 4
    for stream in streams:
        assert sum(stream.tokens) == TOKENS
        assert "".join(stream.text or []).strip()


@pytest.mark.parametrize("api", ["chat", "completions", "responses", "anthropic", "llamacpp"])
def test_llama_server_speaks_five_apis(api: str, llama_server: str, tmp_path: Path) -> None:
    streams = measured(llama_server, tmp_path / "run.parquet", "--api", api)
    assert_whole(streams)
    for stream in streams:
        assert stream.output_tokens == TOKENS
        assert stream.prompt_tokens
        assert stream.token_source == ("chunk_usage" if api == "llamacpp" else "usage_spread")


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_llama_cpp_python_streams(api: str, llama_cpp_python: str, tmp_path: Path) -> None:
    # Its server knows neither usage in a stream nor ignore_eos; the bias keeps the end token away.
    extra = ("--extra-body", '{"stream_options": null, "logit_bias": {"2": -100}}')
    streams = measured(llama_cpp_python, tmp_path / "run.parquet", "--api", api, *extra)
    assert_whole(streams)


@pytest.mark.parametrize("api", ["chat", "completions", "responses"])
def test_transformers_serve_streams(
    api: str, transformers_serve: tuple[str, Path], tmp_path: Path
) -> None:
    url, model = transformers_serve
    # Its list of models needs the network, so the model is named.
    streams = measured(url, tmp_path / "run.parquet", "--api", api, "--model", model)
    assert_whole(streams)
    assert {stream.output_tokens for stream in streams} == {TOKENS}
