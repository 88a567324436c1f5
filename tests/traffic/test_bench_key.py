"""The API key is sent to the target and is found nowhere else, even where the target repeats it."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from command_line import Finished, bench, cmdline, run, started, wait_until

from legato.recording import Recording

KEY = "sk-marker-5f0e1b7c9d3a"
EVENT_STREAM = "text/event-stream"


def error_body(key: str) -> tuple[int, str, str]:
    return 403, "application/json", json.dumps({"error": {"message": f"no such key: {key}"}})


def error_text(key: str) -> tuple[int, str, str]:
    return 500, "text/plain", f"could not look up {key} in the table of keys"


def error_event(key: str) -> tuple[int, str, str]:
    event = json.dumps({"error": {"message": f"the key {key} has expired"}})
    return 200, EVENT_STREAM, f"data: {event}\n\n"


def content_type(key: str) -> tuple[int, str, str]:
    return 200, f"application/{key}", "{}"


@contextmanager
def parrot(answer: object) -> Iterator[tuple[str, list[str]]]:
    """A server that repeats the key it was sent; gives its URL and the keys it saw."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(200, "application/json", json.dumps({"data": [{"id": "parrot"}]}))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            key = self.headers["Authorization"].removeprefix("Bearer ")
            seen.append(key)
            assert callable(answer)
            self._reply(*answer(key))

        def _reply(self, status: int, kind: str, body: str) -> None:
            data = body.encode()
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
            yield f"http://127.0.0.1:{server.server_port}/v1", seen
        finally:
            server.shutdown()
            thread.join()


def assert_nowhere(folder: Path, done: Finished, recording: Recording) -> None:
    """In no file, in no value of the recording (whose bytes are compressed), in no output."""
    for path in folder.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path
    assert KEY not in repr(recording.table.to_pylist())
    assert KEY not in json.dumps(recording.meta)
    assert KEY not in done.out + done.err


@pytest.mark.parametrize("answer", [error_body, error_text, error_event, content_type])
def test_a_target_that_repeats_the_key_does_not_get_it_recorded(
    tmp_path: Path, answer: object
) -> None:
    with parrot(answer) as (url, seen):
        load = ("--concurrency", 1, "--requests", 2)
        done, recording = bench(url, tmp_path / "run.parquet", *load, extra={"LEGATO_API_KEY": KEY})
    assert seen == [KEY, KEY]
    assert done.code == 4
    assert "[key]" in recording.strings("error")[0]
    assert_nowhere(tmp_path, done, recording)


def test_the_key_file_and_the_other_variable_work_too(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    load = ("--concurrency", 1, "--requests", 1)
    with parrot(error_body) as (url, seen):
        extra = {"OPENAI_API_KEY": "another", "LEGATO_API_KEY": "a-third"}
        bench(url, tmp_path / "a.parquet", *load, "--api-key-file", file, extra=extra)
        bench(url, tmp_path / "b.parquet", *load, extra={"OPENAI_API_KEY": KEY})
        bench(url, tmp_path / "c.parquet", *load, extra=extra)
    assert seen == [KEY, KEY, "a-third"]


def test_a_run_says_by_name_where_its_key_came_from(target: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    load = ("--concurrency", 1, "--requests", 1, "--output-tokens", 3)
    sources: list[tuple[tuple[object, ...], dict[str, str], str | None]] = [
        ((), {}, None),
        ((), {"OPENAI_API_KEY": KEY}, "OPENAI_API_KEY"),
        ((), {"OPENAI_API_KEY": "another", "LEGATO_API_KEY": KEY}, "LEGATO_API_KEY"),
        (("--api-key-file", file), {"OPENAI_API_KEY": "another"}, "--api-key-file"),
    ]
    for number, (options, extra, source) in enumerate(sources):
        out = tmp_path / f"{number}.parquet"
        done, recording = bench(target, out, *load, *options, extra=extra)
        assert recording.meta["settings"]["key_from"] == source
        assert done.err == ""


def test_a_key_that_leaves_the_machine_without_encryption_is_warned_of(
    target: str, tmp_path: Path
) -> None:
    # The unspecified address leads here, and by its name it is not the loopback.
    elsewhere = target.replace("127.0.0.1", "0.0.0.0")
    load = ("--concurrency", 1, "--requests", 1, "--output-tokens", 3)
    extra = {"OPENAI_API_KEY": KEY}
    done, _ = bench(elsewhere, tmp_path / "a.parquet", *load, extra=extra)
    told = f"legato: the key of OPENAI_API_KEY goes to {elsewhere} without encryption\n"
    assert done.err == told
    done, _ = bench(elsewhere, tmp_path / "b.parquet", *load)
    assert done.err == ""


def test_a_user_s_own_header_is_recorded_by_name_only(target: str, tmp_path: Path) -> None:
    load = ("--concurrency", 1, "--requests", 1, "--output-tokens", 3)
    header = ("--header", f"X-Secret: {KEY}")
    done, recording = bench(target, tmp_path / "run.parquet", *load, *header)
    assert recording.meta["settings"]["header_names"] == ["X-Secret"]
    assert_nowhere(tmp_path, done, recording)


def test_no_process_shows_the_key_and_a_killed_run_leaves_none(target: str, tmp_path: Path) -> None:
    out = tmp_path / "run.parquet"
    partial = tmp_path / "run.parquet.partial"
    load = ("--concurrency", 2, "--requests", 100_000, "--workers", 2)
    with started("bench", target, *load, "--out", out, extra={"LEGATO_API_KEY": KEY}) as process:
        wait_until(lambda: len(process.workers()) == 2, "two workers")
        wait_until(lambda: len(list(partial.glob("*.pulse"))) == 2, "two workers at work")
        lines = [cmdline(pid) for pid in process.members()]
        assert len(lines) == 3
        assert all(line and KEY.encode() not in line for line in lines)
        for pid in process.members():
            os.kill(pid, signal.SIGKILL)
        done = process.finished()
    assert partial.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in partial.glob("*.spool"))
    for path in partial.iterdir():
        assert KEY.encode() not in path.read_bytes(), path
    assert KEY not in done.out + done.err


def test_a_refused_key_is_named_by_where_it_came_from_and_not_repeated(tmp_path: Path) -> None:
    class Gate(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(401, f"bad key {self.headers['Authorization']}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Gate) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        done = run("bench", url, cwd=tmp_path, extra={"LEGATO_API_KEY": KEY})
        thread.join()
    assert done.code == 4
    assert done.is_one_sentence(), done
    assert "LEGATO_API_KEY" in done.err
    assert KEY not in done.err
