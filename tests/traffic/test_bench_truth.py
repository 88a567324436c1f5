"""What `legato bench` prints against what the metronome really sent, by the truth log."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Finished, bench, expected_code, run

from legato.metronome import truth as truths
from legato.metronome.launch import running
from legato.metronome.pattern import Pattern
from legato.recording import Recording

# A valid run's p99 error is at most this share of the median ITL (the verdict's own threshold).
VALID_ERROR = 0.10


class Sent:
    """What the metronome sent to the streams of a recording: gaps between events, in ms."""

    def __init__(self, recording: Recording, truth: truths.Truth) -> None:
        gaps, tokens, same_write = [], [], []
        for response in recording.strings("response_id"):
            before, after, counts = truth.arrivals(response)
            gaps.append(np.diff((before + after) / 2) / 1e6)
            tokens.append(counts[1:])
            same_write.append(np.diff(before) == 0)
        self.chunk_gaps_ms = np.concatenate(gaps)
        self.tokens = np.concatenate(tokens)
        self.same_write = np.concatenate(same_write)

    @property
    def itl_p50_ms(self) -> float:
        each = np.repeat(self.chunk_gaps_ms / self.tokens, self.tokens)
        return float(np.median(each))


def measured(
    folder: Path, pattern: Pattern, *load: object, prefix: tuple[str, ...] = ()
) -> tuple[Finished, Recording, Sent]:
    log = folder / "truth"
    with running(pattern, truth=log) as metronome:
        done, recording = bench(metronome.url, folder / "run.parquet", *load, prefix=prefix)
    return done, recording, Sent(recording, truths.load(log))


def close_to(value: float) -> Any:
    return pytest.approx(value, rel=VALID_ERROR)


def test_three_tokens_an_event_are_three_tokens_of_a_third_of_the_gap(tmp_path: Path) -> None:
    pattern = Pattern(gap_ms=10, tokens_per_event=3)
    load = ("--concurrency", 4, "--requests", 12, "--output-tokens", 60)
    done, _, sent = measured(tmp_path, pattern, *load)
    summary = done.summary
    assert done.code == expected_code(summary)
    assert summary["tokens_per_chunk"]["mean"] == 3
    assert summary["tokens_per_chunk"]["p50"] == 3
    assert summary["itl_ms"]["p50"] == close_to(sent.itl_p50_ms)
    chunk_gap = float(np.median(sent.chunk_gaps_ms))
    assert summary["chunk_gap_ms"]["p50"] == close_to(chunk_gap)
    assert chunk_gap == close_to(3 * sent.itl_p50_ms)
    # One tool takes an event for a token; another divides by the tokens.
    assert summary["dialects"]["vllm"]["itl_ms"]["p50"] == close_to(chunk_gap)
    assert summary["dialects"]["aiperf"]["itl_ms"]["p50"] == close_to(sent.itl_p50_ms)


def test_four_events_in_one_write_are_a_burst_and_never_called_smooth(tmp_path: Path) -> None:
    pattern = Pattern(gap_ms=10, events_per_write=4)
    load = ("--concurrency", 4, "--requests", 12, "--output-tokens", 40)
    done, recording, sent = measured(tmp_path, pattern, *load)
    assert done.code == expected_code(done.summary)
    share = float(sent.same_write.mean())
    assert share == close_to(0.75)
    assert done.summary["smoothness"]["burst_share"] == close_to(share)
    same_read = np.diff(recording.read_index) == 0
    assert (recording.segments[1:][same_read] == 1).mean() > 0.9
    shown = run("report", tmp_path / "run.parquet").out
    assert "bursty" in shown
    assert "smooth" not in shown.lower()


@contextmanager
def hogs(cpu: int, count: int) -> Iterator[None]:
    """Processes that take all they can get of one CPU."""
    program = f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_client_starved_of_cpu_says_so_or_is_right(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    pin = (
        sys.executable,
        "-c",
        f"import os, sys; os.sched_setaffinity(0, {{{cpu}}}); os.execv(sys.argv[1], sys.argv[1:])",
    )
    load = ("--concurrency", 100, "--requests", 200, "--output-tokens", 60, "--workers", 1)
    with hogs(cpu, 3):
        done, _, sent = measured(tmp_path, Pattern(gap_ms=5), *load, prefix=pin)
    instrument = done.summary["instrument"]
    assert done.code == expected_code(done.summary)
    if instrument["verdict"] == "valid":
        assert done.summary["itl_ms"]["p50"] == close_to(sent.itl_p50_ms)
    else:
        assert instrument["reasons"]
