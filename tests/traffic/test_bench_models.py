"""What `legato bench` makes of a server's list of models, however odd it is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from command_line import run

CONTENT = json.dumps({"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]})
ANSWER = f"data: {CONTENT}\n\ndata: [DONE]\n\n".encode()


@contextmanager
def serving(models: bytes) -> Iterator[str]:
    """A server that answers `models` to `/v1/models`, and one token to whatever is asked."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            known = self.path == "/v1/models"
            self._reply(200 if known else 404, "application/json", models if known else b"{}")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._reply(200, "text/event-stream", ANSWER)

        def _reply(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("owner", [["a"], {"a": 1}, 7, True, None], ids=repr)
def test_an_owner_that_is_no_string_is_an_unknown_one(owner: object, tmp_path: Path) -> None:
    models = json.dumps({"data": [{"id": "m", "owned_by": owner}]}).encode()
    with serving(models) as url:
        done = run("bench", url, "--requests", 1, "--json", cwd=tmp_path)
    settings = done.summary["run"]["settings"]
    assert (settings["model"], settings["served_by"]) == ("m", None)
    assert done.summary["streams"]["ok"] == 1


@pytest.mark.parametrize(
    "models",
    [b"[" * 100_000, b"{}", b"7", b'{"data": 3}', b'{"data": [{"id": 3}]}', b"\xff"],
    ids=["nested", "empty", "a number", "no entries", "an id of 3", "no text"],
)
def test_a_list_that_is_none_is_told_in_one_sentence(models: bytes, tmp_path: Path) -> None:
    with serving(models) as url:
        done = run("bench", url, "--requests", 1, cwd=tmp_path)
    assert done.code == 2
    assert done.is_one_sentence(), done
    assert "no list of models: give --model" in done.err


@pytest.mark.parametrize("path", ["/models", "/chat", "/embeddings"])
def test_a_url_that_goes_on_after_the_base_is_answered_with_the_base(
    path: str, tmp_path: Path
) -> None:
    with serving(b"") as url:
        done = run("bench", url + path, "--requests", 1, cwd=tmp_path)
    assert done.code == 2
    assert done.is_one_sentence(), done
    assert f"did you mean {url}?" in done.err


def test_the_whole_url_of_the_endpoint_is_taken_for_its_base(tmp_path: Path) -> None:
    with serving(b'{"data": [{"id": "m"}]}') as url:
        done = run("bench", f"{url}/chat/completions", "--requests", 1, "--json", cwd=tmp_path)
    assert done.summary["run"]["settings"]["url"] == url
    assert done.summary["streams"]["ok"] == 1
