"""A recording against a truth log, both made by hand: every number here can be checked by eye."""

from __future__ import annotations

from pathlib import Path

import pytest

from legato.calibrate.truth import compare, quantiles_us
from legato.metronome import truth as truths
from legato.metronome.truthlog import TruthLog
from legato.recording import CONTENT, USER_CLOCK, Recording, Stream

US = 1000
EPOCH_NS = 5_000_000_000


def test_gap_errors_are_taken_from_the_clock_before_each_send(tmp_path: Path) -> None:
    # sent at 1000, 2000 and 3000 µs; arrived 3, 5 and 4 µs into each send
    found = compare(*_pair(tmp_path, [1003, 2005, 3004], early_us=[0, 0, 0]))
    assert found.kernel_ns.tolist() == [3 * US, 5 * US, 4 * US]
    assert found.gap_errors_ns(found.kernel_ns, exact_only=True).tolist() == [2 * US, 1 * US]
    assert found.inside_share == 1.0
    assert found.contained_share is None
    assert found.lost_events == 0


def test_an_inexact_end_makes_a_gap_inexact(tmp_path: Path) -> None:
    found = compare(*_pair(tmp_path, [3004, 3004, 3004], early_us=[2500, 1100, 0]))
    assert found.exact.tolist() == [False, False, True]
    assert len(found.gap_errors_ns(found.kernel_ns, exact_only=True)) == 0
    assert len(found.gap_errors_ns(found.kernel_ns, exact_only=False)) == 2
    assert found.merged_share == pytest.approx(2 / 3)
    assert found.contained_share == 1.0


def test_an_interval_that_misses_the_truth_is_found(tmp_path: Path) -> None:
    found = compare(*_pair(tmp_path, [3004, 3004, 3004], early_us=[500, 1100, 0]))
    assert found.contained_share == pytest.approx(1 / 2)


def test_events_that_were_sent_and_not_recorded_are_lost(tmp_path: Path) -> None:
    found = compare(*_pair(tmp_path, [1003, 2005], early_us=[0, 0]))
    assert found.lost_events == 1


def test_a_stream_that_failed_or_never_came_is_counted(tmp_path: Path) -> None:
    recording, log = _pair(tmp_path, [1003, 2005, 3004], early_us=[0, 0, 0])
    assert compare(recording, log).failed_streams == 0
    (stream,) = recording
    stream.status = "aborted"
    cut = Recording.from_streams([stream], recording.meta)
    assert compare(cut, log).failed_streams == 1


def test_read_times_are_neither_exact_nor_merged(tmp_path: Path) -> None:
    found = compare(
        *_pair(tmp_path, [1003, 2005, 3004], early_us=[9, 9, 9], flags=[USER_CLOCK] * 3)
    )
    assert found.exact_share == 0.0
    assert found.merged_share == 0.0


def test_ttft_is_compared_from_the_kernels_stamp_of_the_request(tmp_path: Path) -> None:
    # written at 100 µs, received at 110 µs, first token sent at 1000 µs: true TTFT 890 µs;
    # recorded 1003 − 100 = 903 µs
    found = compare(*_pair(tmp_path, [1003, 2005, 3004], early_us=[0, 0, 0]))
    assert found.ttft_ns.tolist() == [13 * US]


def test_no_errors_have_no_quantiles() -> None:
    import numpy as np

    assert quantiles_us(np.zeros(0, np.int64)) == {"p50": None, "p99": None, "max": None}


def _pair(
    folder: Path, arrived_us: list[int], early_us: list[int], flags: list[int] | None = None
) -> tuple[Recording, truths.Truth]:
    """Three events, each a send of 10 µs that began at 1000, 2000 and 3000 µs."""
    log = _log(folder / "log.truth")
    sent_us = 100
    count = len(arrived_us)
    stream = Stream(
        stream_id=0,
        scheduled_ns=EPOCH_NS,
        sent_ns=EPOCH_NS + sent_us * US,
        ended_ns=EPOCH_NS + 4000 * US,
        status="ok",
        response_id=log.response_ids[0],
        arrival_ns=[(at - sent_us) * US for at in arrived_us],
        lag_ns=[20 * US] * count,
        early_ns=[early * US for early in early_us],
        read_index=list(range(count)),
        segments=[1] * count,
        tokens=[1] * count,
        kind=[CONTENT] * count,
        flags=flags or [0] * count,
    )
    return Recording.from_streams([stream], {"clock": {"epoch_offset_ns": EPOCH_NS}}), log


def _log(path: Path) -> truths.Truth:
    log = TruthLog(path, "run")
    log.request(0, 110 * US, 4, api=0, by_kernel=True)
    for index, start_us in enumerate((1000, 2000, 3000)):
        before, after = start_us * US, (start_us + 10) * US
        log.event(0, index, index, truths.CONTENT, 1, before, after, before)
    log.end(0, 3010 * US, 3, truths.FINISHED)
    log.close()
    return truths.load(path)
