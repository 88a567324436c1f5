"""Ctrl-C and `kill -9` at any moment: no capture is lost and nothing is left running."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from command_line import Finished, run, started, wait_until

import legato
from legato.metronome import truth as truths
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.recording import Recording

STREAMS, TOKENS = 4, 20
ENDLESS = ("--concurrency", STREAMS, "--requests", 100_000, "--output-tokens", TOKENS)
# As long as starting, measuring and decoding a short run takes, roughly: where in a run a moment
# falls differs from machine to machine, and the outcome must be right wherever it falls.
RANDOM = random.Random(1)
MOMENTS_S = [RANDOM.uniform(start, start + 0.2) for start in (0, 0.1, *np.arange(0.2, 2.4, 0.2))]


class Measured:
    """A metronome, the truth of what it was asked, and the place of a run."""

    def __init__(self, url: str, truth: Path, out: Path) -> None:
        self.url, self.out = url, out
        self.partial = out.with_name(out.name + ".partial")
        self._truth = truth

    def requests(self) -> int:
        return len(truths.load(self._truth))

    def start(self, *arguments: object) -> tuple[object, ...]:
        return ("bench", self.url, "--json", "--out", self.out, *arguments)

    def recording(self) -> Recording | None:
        """What is on the disk after the run, read as a user reads it."""
        for path in (self.out, self.partial):
            if path.exists():
                return legato.load(str(path))
        return None


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[Measured]:
    with metronome(tmp_path) as place:
        yield place


@contextmanager
def metronome(folder: Path) -> Iterator[Measured]:
    truth = folder / "truth"
    with running(Pattern(gap_ms=5, tokens=TOKENS), truth=truth) as target:
        yield Measured(target.url, truth, folder / "run.parquet")


def wait_for_requests(measured: Measured, count: int) -> None:
    wait_until(lambda: measured.requests() >= count, f"{count} requests")


def assert_whole(recording: Recording) -> None:
    """Streams that ended well have all their tokens; no id comes twice."""
    assert len(set(recording.ints("stream_id"))) == len(recording)
    for stream in recording:
        if stream.status == "ok":
            assert sum(stream.tokens) == TOKENS


def good_streams(recording: Recording) -> int:
    return list(recording.strings("status")).count("ok")


# --- Ctrl-C -----------------------------------------------------------------------------------


def interrupted(folder: Path, moment_s: float) -> tuple[Finished, Measured]:
    """A run of two workers that is over by itself soon, and Ctrl-C at some moment of it."""
    folder.mkdir()
    with metronome(folder) as measured:
        load = ("--concurrency", 4, "--requests", 24, "--output-tokens", TOKENS, "--workers", 2)
        with started(*measured.start(*load)) as process:
            time.sleep(moment_s)
            process.signal_group(signal.SIGINT)
            done = process.finished()
            wait_until(lambda: not process.members(), "nothing is left running")
        return done, measured


def test_ctrl_c_at_any_moment_keeps_what_was_captured(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        folders = [tmp_path / str(number) for number in range(len(MOMENTS_S))]
        for done, measured in pool.map(interrupted, folders, MOMENTS_S):
            recording = measured.recording()
            if recording is None:
                # Before the first request; 1 and -2 are Python's own, before it ran a line of ours.
                assert done.code in (130, 1, -signal.SIGINT), done
                assert done.code != 130 or done.err == ""
                assert measured.requests() == 0
                assert not measured.partial.exists()
                continue
            assert done.code in (0, 3, 130), done
            assert "Traceback" not in done.err
            assert_whole(recording)
            assert recording.meta["partial"] or len(recording) == 24
            if measured.partial.exists():
                # While it decoded: the capture stays, and the sentence says where.
                assert str(measured.partial) in done.err


def test_ctrl_c_while_workers_start_leaves_nothing(measured: Measured) -> None:
    with started(*measured.start(*ENDLESS, "--workers", 2)) as process:
        wait_until(lambda: len(process.workers()) == 2, "the workers start")
        time.sleep(0.03)  # so that they are past the interpreter's start, in our own imports
        process.signal_group(signal.SIGINT)
        done = process.finished()
        wait_until(lambda: not process.members(), "nothing is left running")
    assert (done.code, done.err) in ((130, ""), (0, ""), (3, ""))
    # Where the machine was slow to tell us, the load had begun: then there is a recording.
    assert measured.out.exists() == (measured.requests() > 0)
    assert not measured.partial.exists()


@pytest.mark.parametrize("polite", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_end_stops_sending_and_prints_the_summary_of_a_partial_recording(
    measured: Measured, polite: signal.Signals
) -> None:
    with started(*measured.start(*ENDLESS)) as process:
        wait_for_requests(measured, 3 * STREAMS)
        captured = measured.requests() - STREAMS  # all but the open ones had been read
        process.signal_group(polite)
        done = process.finished()
        assert process.members() == []
    assert done.code in (0, 3)
    assert done.err == ""
    assert done.summary["run"]["partial"] is True
    assert not measured.partial.exists()
    recording = legato.load(str(measured.out))
    assert recording.meta["partial"] is True
    assert_whole(recording)
    assert good_streams(recording) >= captured
    assert recording.meta["load"]["workers_lost"] == 0
    cut = recording.strings("status") == "aborted"
    assert set(recording.strings("error")[cut]) <= {"stopped before the end"}


# --- kill -9 ----------------------------------------------------------------------------------


def test_a_killed_worker_loses_its_open_streams_only(measured: Measured) -> None:
    load = ("--concurrency", STREAMS, "--requests", 40, "--output-tokens", TOKENS)
    with started(*measured.start(*load, "--workers", 2)) as process:
        wait_for_requests(measured, 3 * STREAMS)
        captured = measured.requests() - STREAMS
        os.kill(process.workers()[0], signal.SIGKILL)
        done = process.finished()
        assert process.members() == []
    assert done.code in (0, 3)
    assert "Traceback" not in done.err
    recording = legato.load(str(measured.out))
    facts = recording.meta["load"]
    assert recording.meta["partial"] is True
    assert facts["workers_lost"] == 1
    assert facts["lost_streams"] <= STREAMS // 2
    assert_whole(recording)
    lost = recording.strings("error") == "the worker that read this stream died"
    assert lost.sum() == facts["lost_streams"]
    # The other worker drew every request that was left.
    assert 40 - STREAMS // 2 <= good_streams(recording) <= 40
    assert good_streams(recording) >= captured
    assert any("1 worker died" in reason for reason in done.summary["instrument"]["reasons"])


def test_when_the_only_worker_is_killed_the_run_ends_and_keeps_what_there_was(
    measured: Measured,
) -> None:
    with started(*measured.start(*ENDLESS, "--workers", 1)) as process:
        wait_for_requests(measured, 3 * STREAMS)
        captured = measured.requests() - STREAMS
        os.kill(process.workers()[0], signal.SIGKILL)
        done = process.finished()
    recording = legato.load(str(measured.out))
    assert done.summary["run"]["workers_lost"] == 1
    assert recording.meta["partial"] is True
    assert_whole(recording)
    assert good_streams(recording) >= captured


def test_when_the_run_is_killed_its_workers_end_and_the_capture_is_readable(
    measured: Measured,
) -> None:
    with started(*measured.start(*ENDLESS, "--workers", 2)) as process:
        wait_for_requests(measured, 3 * STREAMS)
        captured = measured.requests() - STREAMS
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not process.members(), "the workers end by themselves")
    assert not measured.out.exists()
    done = run("report", measured.partial, "--json")
    assert done.code in (0, 3), done
    assert done.summary["run"]["partial"] is True
    assert done.summary["streams"]["ok"] >= captured
    recording = legato.load(str(measured.partial))
    assert_whole(recording)


def test_when_everything_is_killed_at_once_the_capture_is_readable(measured: Measured) -> None:
    with started(*measured.start(*ENDLESS, "--workers", 2)) as process:
        wait_for_requests(measured, 3 * STREAMS)
        captured = measured.requests() - STREAMS
        # Halted first: a worker that outlived its parent by a moment would end by itself.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in process.members():
                os.kill(pid, number)
    done = run("report", measured.partial, "--json")
    assert done.code in (0, 3), done
    assert done.summary["streams"]["ok"] >= captured
    assert done.summary["run"]["workers_lost"] == 2
    assert_whole(legato.load(str(measured.partial)))


def killed(folder: Path, moment_s: float) -> Measured:
    folder.mkdir()
    with metronome(folder) as measured:
        load = ("--concurrency", 4, "--requests", 24, "--output-tokens", TOKENS, "--workers", 2)
        with started(*measured.start(*load)) as process:
            time.sleep(moment_s)
            os.kill(process.pid, signal.SIGKILL)
            wait_until(lambda: not process.members(), "nothing is left running")
        return measured


def test_kill_at_any_moment_leaves_nothing_running_and_what_was_captured(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        folders = [tmp_path / str(number) for number in range(len(MOMENTS_S))]
        for measured in pool.map(killed, folders, MOMENTS_S):
            if (measured.partial / "plan.json").exists() or measured.out.exists():
                recording = measured.recording()
                assert recording is not None
                assert_whole(recording)
            else:
                assert measured.requests() == 0
