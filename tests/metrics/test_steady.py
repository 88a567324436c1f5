"""The steady part of a run: what is trimmed, the rates in it, and whether it was steady."""

from __future__ import annotations

import numpy as np
import pytest
from made_streams import EPOCH_NS, MS, recording, stream

from legato.metrics.steady import rates, steadiness, trim
from legato.recording import Recording, Stream

SETTINGS = {"mode": "closed", "concurrency": 2}


def slots(rounds: int, *, gap_ms: float = 10.0, tokens: int = 10, slots: int = 2) -> list[Stream]:
    """Streams of 100 ms, one after another in each slot."""
    arrivals = [gap_ms * (i + 1) for i in range(tokens)]
    return [
        stream(arrivals, start_ms=(gap_ms * tokens + 1) * turn + slot, end_ms=gap_ms * tokens)
        for turn in range(rounds)
        for slot in range(slots)
    ]


def closed(*streams: Stream) -> Recording:
    return recording(*streams, settings=SETTINGS)


def phases(of: Recording) -> list[str]:
    return [str(phase) for phase in of.strings("phase")]


def test_the_first_generation_and_the_drain_are_left_out() -> None:
    trimmed = trim(closed(*slots(rounds=5)))
    assert [phase == "warmup" for phase in phases(trimmed.recording)] == (
        [True] * 2 + [False] * 6 + [True] * 2
    )
    assert trimmed.left_out == 4


def test_a_stream_that_failed_is_never_left_out() -> None:
    first, *others = slots(rounds=5)
    first.status = "timeout"
    trimmed = trim(closed(first, *others))
    assert phases(trimmed.recording)[0] != "warmup"


def test_a_run_of_one_generation_is_not_trimmed() -> None:
    trimmed = trim(closed(*slots(rounds=1)))
    assert trimmed.window is None
    assert trimmed.left_out == 0


def test_rates_are_taken_in_the_window_alone() -> None:
    made = closed(*slots(rounds=11))
    found = rates(made, trim(made).window, np.ones(len(made), dtype=bool))
    # Two slots, ten tokens each 101 ms.
    assert found["tokens_per_s"] == pytest.approx(2 * 10 / 0.101, rel=0.03)
    assert found["requests_per_s"] == pytest.approx(2 / 0.101, rel=0.1)
    assert found["goodput_per_s"] == found["requests_per_s"]


def test_goodput_counts_only_the_requests_that_met_the_slo() -> None:
    made = closed(*slots(rounds=11))
    met = np.arange(len(made)) % 2 == 0
    found = rates(made, trim(made).window, met)
    assert found["goodput_per_s"] == pytest.approx((found["requests_per_s"] or 0) / 2, rel=0.1)


def paced(gap_of: list[float], seed: int = 1) -> Recording:
    """Streams one after another, each at a pace of its own, with some noise."""
    rng = np.random.default_rng(seed)
    rows = []
    start_ms = 0.0
    for gap_ms in gap_of:
        arrivals = np.cumsum(gap_ms * rng.lognormal(0, 0.1, 20)).tolist()
        rows.append(stream(arrivals, start_ms=start_ms))
        start_ms += arrivals[-1]
    return recording(*rows)


def test_an_even_pace_is_steady() -> None:
    found = steadiness(paced([10.0] * 60))
    assert found["steady"] is True
    assert abs(found["itl"]) < 0.05


def test_a_pace_that_slows_down_is_not_steady() -> None:
    found = steadiness(paced([10.0 + 0.1 * i for i in range(60)]))
    assert found["steady"] is False
    assert found["itl"] == pytest.approx(0.26, abs=0.08)


def test_a_queue_that_grows_shows_in_ttft() -> None:
    rows = [
        stream([20.0 + 2 * i] + [20.0 + 2 * i + 10 * (k + 1) for k in range(10)], start_ms=300 * i)
        for i in range(60)
    ]
    found = steadiness(recording(*rows))
    assert found["steady"] is False
    assert found["ttft"] > 0.5
    assert found["itl"] == pytest.approx(0)


def test_too_little_to_tell_is_not_called_steady() -> None:
    assert steadiness(paced([10.0]))["steady"] is None


def test_trimming_needs_a_moment_when_the_load_was_on() -> None:
    assert trim(recording(settings=SETTINGS)).window is None
    lone = stream([], status="http_error", start_ms=0, end_ms=5)
    assert lone.sent_ns == EPOCH_NS
    assert lone.ended_ns - EPOCH_NS == 5 * MS
    assert trim(closed(lone)).window is None
