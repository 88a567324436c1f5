"""What `legato bench` does when the target fails: wholly (exit 4), or in some streams."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import Finished, bench, expected_code, run

from legato.metronome.launch import running
from legato.metronome.pattern import FAULTS, Pattern
from legato.recording import Recording

REQUESTS, STREAMS, TOKENS, EVERY = 9, 3, 12, 3
# Only what never comes waits this long.
PATIENCE = ("--first-byte-timeout", 2, "--idle-timeout", 2)

# The status of each stream that meets the fault, and a piece of its error. A body that is whole
# but lacks [DONE] after a finish reason is complete; so are slow and long events.
STRUCK = {
    "none": ("ok", ""),
    "http_error": ("http_error", "HTTP 500: The metronome was told to answer with status 500."),
    "hang": ("timeout", "no byte of a response within 2 s"),
    "reset": ("aborted", "connection reset"),
    "close": ("aborted", "closed before the response was complete"),
    "half_event": ("timeout", "nothing came for 2 s"),
    "garbage": ("protocol_error", "bad chunk size"),
    "garbage_event": ("protocol_error", "is not a chunk of this API"),
    "garbage_head": ("protocol_error", "not HTTP"),
    "long_line": ("ok", ""),
    "wrong_type": ("not_streaming", "the answer came whole, as application/json"),
    "no_done": ("ok", ""),
    "no_end": ("aborted", "closed before the response was complete"),
    "trickle": ("ok", ""),
}


def with_fault(name: str, folder: Path) -> tuple[Finished, Recording]:
    pattern = Pattern(
        gap_ms=5, tokens=TOKENS, fault=name, fault_every=EVERY, fault_at=4, trickle_ms=0.1
    )
    load = ("--concurrency", STREAMS, "--requests", REQUESTS, "--output-tokens", TOKENS)
    with running(pattern) as metronome:
        return bench(metronome.url, folder / f"{name}.parquet", *load, *PATIENCE)


Runs = dict[str, Future[tuple[Finished, Recording]]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """A run for each fault; they mostly wait, so several go at once."""
    folder = tmp_path_factory.mktemp("faults")
    with ThreadPoolExecutor(4) as pool:
        yield {name: pool.submit(with_fault, name, folder) for name in STRUCK}


@pytest.mark.parametrize("fault", STRUCK)
def test_a_fault_gives_its_stream_a_status_and_leaves_the_others_alone(
    runs: Runs, fault: str
) -> None:
    done, recording = runs[fault].result()
    assert done.code == expected_code(done.summary), done.err
    assert done.err == ""
    assert recording.meta["partial"] is False
    status, error = STRUCK[fault]
    found = Counter(recording.strings("status"))
    struck = REQUESTS // EVERY
    assert found == Counter({"ok": REQUESTS - struck}) + Counter({status: struck})
    for stream in recording:
        if stream.status == "ok":
            assert (sum(stream.tokens), stream.error) == (TOKENS, None)
        else:
            assert error in (stream.error or "")


def test_every_fault_of_the_metronome_is_tried() -> None:
    assert {*STRUCK, "refuse"} == set(FAULTS)


def test_streams_whose_connection_is_refused_are_kept_as_aborted(tmp_path: Path) -> None:
    with running(Pattern(gap_ms=5, tokens=TOKENS, fault="refuse", fault_every=EVERY)) as metronome:
        load = ("--concurrency", 1, "--requests", REQUESTS, "--output-tokens", TOKENS)
        out = tmp_path / "run.parquet"
        done, recording = bench(metronome.url, out, *load, "--fresh-connections")
    assert done.code == expected_code(done.summary)
    statuses = list(recording.strings("status"))
    assert statuses == ["ok"] * EVERY + ["aborted"] * (REQUESTS - EVERY)
    assert set(recording.strings("error")) == {"", "connection refused"}


def test_a_429_keeps_its_retry_after_and_is_not_tried_again(tmp_path: Path) -> None:
    pattern = Pattern(gap_ms=5, fault="http_error", fault_status=429, retry_after_s=7)
    with running(pattern) as metronome:
        out = tmp_path / "run.parquet"
        done, recording = bench(metronome.url, out, "--concurrency", 2, "--requests", 6)
        asked = metronome.stop()["requests"]
    assert done.code == 4
    assert (len(recording), asked) == (6, 6)
    assert set(recording.strings("retry_after")) == {"7"}


# --- no stream succeeds -----------------------------------------------------------------------


def test_a_closed_port_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))  # bound and not listening: nobody else takes it
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        done = run("bench", url, cwd=tmp_path)
    assert done.code == 4
    assert done.is_one_sentence(), done
    assert "connection refused" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_does_not_exist_is_told_in_one_sentence(tmp_path: Path) -> None:
    done = run("bench", "http://no-such-host.invalid", cwd=tmp_path)
    assert done.code == 4
    assert done.is_one_sentence(), done
    assert "'no-such-host.invalid' cannot be resolved" in done.err
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_speak_http_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:

        def greet() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                peer.recv(4096)

        pool.submit(greet)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        done = run("bench", url, cwd=tmp_path)
    assert done.code == 4
    assert done.is_one_sentence(), done
    assert "does not speak HTTP" in done.err


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("http_error", "The metronome was told to answer with status 500."),
        ("wrong_type", "stream"),
        ("reset", "connection reset by peer"),
    ],
)
def test_a_run_without_one_good_stream_exits_4_and_says_why(
    tmp_path: Path, fault: str, words: str
) -> None:
    out = tmp_path / "run.parquet"
    with running(Pattern(gap_ms=5, tokens=4, fault=fault)) as metronome:
        load = ("--concurrency", 2, "--requests", 4, "--output-tokens", 4)
        done = run("bench", metronome.url, "--out", out, *load, extra={"COLUMNS": "200"})
    assert done.code == 4
    assert words in done.out
    assert "Traceback" not in done.err
    # What was seen is kept, and `report` says the same of it.
    assert run("report", out).code == 4
