"""Streams in flight, the steady window and the throughput inside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from made_streams import EPOCH_NS, MS, recording, stream

from legato.metrics.gaps import stream_times, token_chunks
from legato.metrics.occupancy import concurrency_reached, occupancy, throughput
from legato.recording import Recording, Stream

CLOSED = {"mode": "closed", "concurrency": 2}


def open_from(start_ms: float, end_ms: float, **fields: Any) -> Stream:
    return stream([], start_ms=start_ms, end_ms=end_ms - start_ms, **fields)


def tps(made: Recording) -> dict[str, Any]:
    chunks = token_chunks(made, made.strings("phase") != "warmup")
    return throughput(made, occupancy(made), chunks, stream_times(chunks))


def reached(*streams: Stream, **meta: Any) -> float | None:
    made = recording(*streams, **({"settings": CLOSED} | meta))
    return concurrency_reached(made, occupancy(made))


def test_a_stream_is_open_from_its_send_to_its_end() -> None:
    open_at = occupancy(recording(open_from(0, 10), open_from(5, 20)))
    moments = np.array([0, 4, 5, 10, 11, 20, 21]) * MS + EPOCH_NS
    assert open_at.at(moments).tolist() == [1, 1, 2, 2, 1, 1, 0]


def test_a_stream_that_was_never_sent_is_never_open() -> None:
    assert occupancy(recording(open_from(0, 10), open_from(0, 10, sent_ns=None))).most() == 1


def test_concurrency_is_the_mean_from_when_it_was_first_reached_to_the_drain() -> None:
    # Two are open from 10 ms; one slot stands empty from 60 to 70 ms; the drain starts at 110.
    streams = [open_from(0, 60), open_from(10, 110), open_from(70, 150)]
    drain = {"drain_ns": EPOCH_NS + 110 * MS}
    assert reached(*streams, load=drain) == pytest.approx(2 - 10 / 100)


def test_without_a_noted_drain_the_load_ends_with_the_last_send() -> None:
    streams = [open_from(0, 60), open_from(10, 110), open_from(70, 150)]
    assert reached(*streams) == pytest.approx(2 - 10 / 60)


def test_a_concurrency_never_reached_is_reported_as_the_most_that_was() -> None:
    assert reached(open_from(0, 10), open_from(20, 30)) == 1


def test_a_run_of_one_round_has_reached_what_was_open_together() -> None:
    assert reached(open_from(0, 10), open_from(1, 10)) == 2


def test_warm_up_streams_fill_slots_like_any_other() -> None:
    streams = [open_from(0, 50, phase="warmup"), open_from(0, 100), open_from(50, 100)]
    assert reached(*streams) == pytest.approx(2)


def test_an_open_loop_asks_for_no_concurrency() -> None:
    assert reached(open_from(0, 10), settings={"mode": "open", "rate": 5.0}) is None


def test_system_throughput_leaves_out_ramp_and_drain() -> None:
    # A token each 10 ms in both slots; the second joins at 500 ms, the drain starts at 1000.
    ticks = [10.0 * (i + 1) for i in range(150)]
    made = recording(
        stream(ticks),
        stream(ticks[:100], start_ms=500),
        settings=CLOSED,
        load={"drain_ns": EPOCH_NS + 1000 * MS},
    )
    found = tps(made)
    assert found["system_window"] == pytest.approx(0.5)
    assert found["system"] == pytest.approx(200, rel=0.02)
    assert found["stream"] == pytest.approx(100)
    assert found["overall"] == pytest.approx(250 / 1.5)


def test_the_steady_window_opens_when_the_last_warm_up_stream_has_ended() -> None:
    ticks = [10.0 * (i + 1) for i in range(100)]
    made = recording(
        stream(ticks[:50], phase="warmup"),
        stream(ticks),
        stream(ticks, start_ms=500),
        settings=CLOSED,
        load={"drain_ns": EPOCH_NS + 1000 * MS},
    )
    assert tps(made)["system_window"] == pytest.approx(0.5)
    assert tps(made)["system"] == pytest.approx(200, rel=0.02)


def test_a_run_without_a_steady_window_has_no_system_throughput() -> None:
    found = tps(recording(stream([10, 20]), stream([10, 20]), settings=CLOSED))
    assert found["system"] is None
    assert found["overall"] == pytest.approx(4 / 0.02)


def test_a_streams_rate_is_the_inverse_of_its_mean_gap() -> None:
    assert tps(recording(stream([50, 80, 110], tokens=[3, 3, 3])))["stream"] == pytest.approx(100)
