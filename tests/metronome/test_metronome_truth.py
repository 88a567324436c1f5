"""The truth log: against what arrived, and after every way of ending the process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metronome_client import body_of, connect, get, reads_of, request_bytes

from legato import stamps
from legato.errors import LegatoError, RecordingError
from legato.metronome import truth, truthlog
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern


def write_log(path: Path, streams: int, events: int) -> None:
    log = truthlog.TruthLog(path, "cafe")
    for stream in range(streams):
        log.request(stream, 1000 * stream, 7, 0, True)
    for index in range(events):
        for stream in range(streams):
            at = 1000 * stream + 10 * index
            log.event(stream, index, index, truth.CONTENT, 2, at + 1, at + 2, at)
    for stream in range(streams):
        log.end(stream, 10**6, events, truth.FINISHED)
    log.close()


# --- against the wire


@pytest.mark.parametrize(
    "pattern",
    [
        Pattern(tokens=30),
        Pattern(tokens=30, events_per_write=3),
        Pattern(tokens=30, tokens_per_event=3, role_early=True),
        Pattern(tokens=20, split="writes"),
    ],
    ids=["plain", "bursts", "multi-token", "split"],
)
def test_every_arrival_lies_between_its_send_and_the_next(pattern: Pattern, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    with running(pattern, truth=path) as metronome:
        reads = reads_of(metronome.port, body_of(stream_options={"include_usage": True}))
    log = truth.load(path)
    events = log.events_of(log.response_ids[0])
    tolerance_ns = 20_000 + 2 * stamps.anchor().width_ns
    data, seen = b"", 0
    for read in reads:
        # An event is complete with its blank line; a read has the stamp of its last segment.
        data += read.data
        seen = data.count(b"}\n\n") + data.count(b"[DONE]\n\n")
        if seen:
            assert read.arrived_ns >= events["before_ns"][seen - 1] - tolerance_ns
        if seen < len(events):
            assert read.arrived_ns <= events["before_ns"][seen] + tolerance_ns
    assert seen == len(events)


def test_the_time_to_the_first_token_counts_from_the_kernels_stamp(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    with running(Pattern(tokens=2, first_token_ms=30), truth=path) as metronome:
        before_ns = time.monotonic_ns()
        reads_of(metronome.port, body_of())
    log = truth.load(path)
    response = log.response_ids[0]
    request = log.request(response)
    assert request["kernel"] == 1
    assert request["received_ns"] >= before_ns - 20_000
    early, late = log.ttft_ns(response)
    assert 30_000_000 <= early <= late
    assert log.events_of(response)["deadline_ns"][0] == request["received_ns"] + 30_000_000


def test_deadlines_are_absolute_and_no_write_is_early(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    with running(Pattern(tokens=50, gap_ms=2), truth=path) as metronome:
        reads_of(metronome.port, body_of())
        stats = metronome.stop()
    log = truth.load(path)
    deadlines = log.sends["deadline_ns"]
    assert set(np.diff(deadlines).tolist()) == {2_000_000}
    assert (log.lateness_ns >= 0).all()
    assert stats["lateness_us"]["max"] == log.lateness_ns.max() / 1000
    assert stats["events"] == len(log.events)


# --- the reader


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    write_log(path, streams=3, events=4)
    log = truth.load(path)
    assert log.response_ids == ["chatcmpl-cafe-0", "chatcmpl-cafe-1", "chatcmpl-cafe-2"]
    before, after, tokens = log.arrivals("chatcmpl-cafe-1")
    assert before.tolist() == [1001, 1011, 1021, 1031]
    assert after.tolist() == [1002, 1012, 1022, 1032]
    assert tokens.tolist() == [2, 2, 2, 2]
    assert log.ttft_ns("chatcmpl-cafe-2") == (1, 2)
    assert log.end_of("chatcmpl-cafe-2") == "finished"
    assert len(log.sends) == 12
    for unknown in ("chatcmpl-cafe-9", "chatcmpl-beef-1", "nonsense"):
        with pytest.raises(KeyError):
            log.request(unknown)


def test_a_log_of_many_windows_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    events = 3 * truthlog.WINDOW_BYTES // truth.RECORD.size // 2 + 7
    write_log(path, streams=2, events=events)
    log = truth.load(path)
    assert len(log.events) == 2 * events
    assert log.arrivals("chatcmpl-cafe-1")[0].tolist()[-1] == 1000 + 10 * (events - 1) + 1
    assert len(log.ends) == 2


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_log_cut_at_any_byte_gives_its_whole_records(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "truth"
    write_log(path, streams=2, events=5)
    content = path.read_bytes()
    keep = data.draw(st.integers(truth.HEADER_BYTES, len(content)))
    zeros = data.draw(st.sampled_from([0, 1, truth.RECORD.size, 5000]))
    path.write_bytes(content[:keep] + bytes(zeros))
    log = truth.load(path)
    whole = (keep - truth.HEADER_BYTES) // truth.RECORD.size
    assert len(log.requests) + len(log.events) + len(log.ends) == whole


@pytest.mark.parametrize("content", [b"", b"PAR1", truth.MAGIC, os.urandom(5000)])
def test_what_is_no_truth_log_is_told_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "truth"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="is not a truth log"):
        truth.load(path)


def test_a_missing_truth_log_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot read the truth log"):
        truth.load(tmp_path / "none")


def test_a_full_disk_is_told_and_keeps_what_was_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "truth"
    log = truthlog.TruthLog(path, "cafe")

    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    fits = truthlog.WINDOW_BYTES // truth.RECORD.size
    for index in range(fits):
        log.event(0, index, index, truth.CONTENT, 1, 1, 2, 0)
    with pytest.raises(LegatoError, match="No space left"):
        log.event(0, fits, fits, truth.CONTENT, 1, 1, 2, 0)
    log.close()
    assert len(truth.load(path).events) == fits


# --- ending


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_signal_loses_a_send_that_arrived(number: int, tmp_path: Path) -> None:
    source = random.Random(number)
    for trial in range(4):
        path = tmp_path / f"truth{trial}"
        pattern = Pattern(gap_ms=0.5, first_token_ms=1, tokens=100_000)
        with running(pattern, truth=path) as metronome, connect(metronome.port) as sock:
            sock.sendall(request_bytes(body_of()))
            wanted = source.randrange(1_000, 60_000)
            received = b""
            while len(received) < wanted:
                received += sock.recv(1024)
            os.kill(metronome.pid, number)
            try:
                while part := sock.recv(65536):
                    received += part
            except ConnectionResetError:
                pass
            metronome.stop()
        log = truth.load(path)
        arrived = received.count(b'"content":" ')
        # Killed between a send and its record, one event is out that the log does not have.
        assert arrived - 1 <= len(log.arrivals(log.response_ids[0])[0])
        if number != signal.SIGKILL:
            assert arrived <= len(log.arrivals(log.response_ids[0])[0])


def test_the_metronome_ends_when_whoever_started_it_dies(tmp_path: Path) -> None:
    path = tmp_path / "truth"
    program = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from legato.metronome.launch import running\n"
        "from legato.metronome.pattern import Pattern\n"
        f"with running(Pattern(), truth=Path({str(path)!r})) as metronome:\n"
        "    print(metronome.pid, metronome.port, flush=True)\n"
        "    time.sleep(60)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid, port = map(int, starter.stdout.readline().split())
    assert get(port, "/v1/models").status == 200
    starter.kill()
    starter.wait()
    starter.stdout.close()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}/stat").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break  # ended; nobody has asked how
        time.sleep(0.02)
    with pytest.raises(ConnectionRefusedError):
        connect(port)
    assert len(truth.load(path).requests) == 0
