"""The instrument's error and lateness, from the intervals of the run itself."""

from __future__ import annotations

from typing import Any

import pytest
from made_streams import chunks_of, recording, stream

from legato.metrics.gaps import gaps
from legato.metrics.instrument import client_merged_share, coalesced_share, gap_error_us
from legato.metrics.summary import summarise
from legato.recording import CONTENT, DONE, HAS_CHOICES, USER_CLOCK, Stream

USER = HAS_CHOICES | USER_CLOCK


def error(made: Stream, **meta: Any) -> dict[str, float | None]:
    chunks = chunks_of(made)
    return gap_error_us(recording(made, **meta), chunks, gaps(chunks))


def test_exact_arrivals_have_no_error_of_their_own() -> None:
    assert error(stream([50, 60, 70])) == {"p50": 0, "p99": 0, "max": 0}


def test_a_gap_is_as_uncertain_as_the_worse_of_its_ends() -> None:
    # Ends may be early by 0, 3 and 2 ms: the gaps may be wrong by 3 and 3 ms.
    found = error(stream([50, 60, 70], early_ms=[0, 3, 2]))
    assert found == {"p50": 3000, "p99": 3000, "max": 3000}


def test_the_clock_anchor_counts_once_for_each_kernel_stamp() -> None:
    clock = {"anchor_width_ns": 100}
    assert error(stream([50, 60]), clock=clock)["max"] == pytest.approx(0.2)
    mixed = stream([50, 60], flags=[HAS_CHOICES, USER])
    assert error(mixed, clock=clock)["max"] == pytest.approx(0.1)
    assert error(stream([50, 60], flags=[USER, USER]), clock=clock)["max"] == 0


def test_the_calibrated_floor_is_added() -> None:
    floor = {"floor_us": {"p50": 1.0, "p99": 9.0}}
    assert error(stream([50, 60, 70]), calibration=floor) == {"p50": 1, "p99": 9, "max": 9}


def test_chunks_the_client_read_late_together_are_merged_all_but_the_last() -> None:
    made = chunks_of(
        stream(
            [50, 90, 90, 90, 90],
            reads=[0, 1, 1, 1, 1],
            segments=[1, 4, 4, 4, 4],
            early_ms=[0, 30, 30, 30, 0],
        )
    )
    assert client_merged_share(made) == pytest.approx(3 / 5)
    assert coalesced_share(made) == pytest.approx(4 / 5)


def test_a_burst_is_coalesced_but_not_merged() -> None:
    made = chunks_of(stream([50, 90, 90, 90, 90], reads=[0, 1, 1, 1, 1]))
    assert client_merged_share(made) == 0
    assert coalesced_share(made) == pytest.approx(4 / 5)


def test_a_last_token_read_with_the_end_marks_accuses_nobody() -> None:
    made = chunks_of(
        stream(
            [50, 60, 60],
            tokens=[1, 1, 0],
            kind=[CONTENT, CONTENT, DONE],
            reads=[0, 1, 1],
            segments=[1, 2, 2],
            early_ms=[0, 0.02, 0],
        )
    )
    assert client_merged_share(made) == 0


def test_chunks_without_a_kernel_stamp_are_not_called_merged() -> None:
    made = chunks_of(
        stream([50, 60, 60], reads=[0, 1, 1], early_ms=[1, 1, 1], flags=[USER, USER, USER])
    )
    assert client_merged_share(made) == 0


def test_reads_of_different_streams_are_different_reads() -> None:
    assert coalesced_share(chunks_of(stream([50], reads=[3]), stream([50], reads=[3]))) == 0


@pytest.mark.parametrize(
    ("flags", "clock"), [([8, 8], "kernel"), ([24, 24], "user"), ([8, 24], "mixed")]
)
def test_the_clock_is_named(flags: list[int], clock: str) -> None:
    assert summarise(recording(stream([50, 60], flags=flags)))["instrument"]["clock"] == clock


def test_lag_is_unknown_without_kernel_stamps() -> None:
    found = summarise(recording(stream([50, 60], flags=[USER, USER])))["instrument"]
    assert found["lag_us"] is None


def test_lag_is_how_late_the_client_read() -> None:
    made = stream([50, 60, 70], lag_ns=[1000, 2000, 3000])
    found = summarise(recording(made))["instrument"]["lag_us"]
    assert found["p50"] == pytest.approx(2)


def test_slip_is_told_in_an_open_loop_only() -> None:
    streams = [stream([50, 60], late_ms=3) for _ in range(3)]
    opened = summarise(recording(*streams, settings={"mode": "open", "rate": 10.0}))
    assert opened["instrument"]["schedule_slip_ms"]["p99"] == pytest.approx(3)
    assert opened["instrument"]["verdict"] == "invalid"
    closed = summarise(recording(*streams, settings={"mode": "closed", "concurrency": 3}))
    assert closed["instrument"]["schedule_slip_ms"] is None
