"""The piano roll's data: everything that fits, and stalls and failures whatever fits."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_recordings import stream, uneven

from legato.metrics.smoothness import stalled
from legato.metrics.summary import measure
from legato.recording import STATUSES, Ints, Recording
from legato.report.html import roll as piano
from legato.report.html.roll import Roll, packed, roll
from legato.report.html.roll_chart import MOST_ROWS, roll_chart
from legato.report.html.stalls import longest


def decoded(text: str) -> list[int]:
    """LEB128 as the page's script reads it."""
    values, value, scale = [], 0, 1
    for byte in base64.b64decode(text):
        value += (byte & 127) * scale
        scale *= 128
        if byte < 128:
            values.append(value)
            value, scale = 0, 1
    return values


def made_from(recording: Recording) -> Roll:
    return roll(recording, measure(recording))


def stall_count(recording: Recording) -> int:
    return int(np.count_nonzero(stalled(measure(recording).gaps)))


def stall_lengths(made: Roll) -> list[int]:
    return [int(made.tick[index] - made.tick[index - 1]) for index in made.stall]


@given(st.lists(st.integers(0, 2**52)))
def test_packed_integers_read_back(values: list[int]) -> None:
    array: Ints = np.asarray(values, np.int64)
    assert decoded(piano._text(array)) == values


def test_the_page_can_rebuild_every_arrival() -> None:
    recording = uneven()
    data: dict[str, Any] = packed(made_from(recording))
    counts, steps = decoded(data["count"]), decoded(data["tick"])
    starts = np.cumsum(decoded(data["start"]))
    at = 0
    for row, count in enumerate(counts):
        arrivals = np.cumsum(steps[at : at + count]) * data["unit_ms"]
        at += count
        exact = np.asarray(recording.stream(row).arrival_ns) / 1e6
        assert np.abs(arrivals - exact).max() <= data["unit_ms"]
        assert starts[row] * data["unit_ms"] == pytest.approx(row * 20.0)
    assert at == len(steps)


def test_rows_come_in_the_order_they_were_sent() -> None:
    recording = Recording.from_streams(
        [stream(7, [50, 60], start_ms=30), stream(8, [50, 60, 70], start_ms=10)]
    )
    made = made_from(recording)
    assert made.stream_id.tolist() == [8, 7]
    assert np.diff(made.offsets).tolist() == [3, 2]


def test_a_stream_that_never_gave_a_token_has_a_row_without_ticks() -> None:
    recording = Recording.from_streams(
        [stream(1, [50, 60]), stream(2, [], status="timeout", end_ms=900)]
    )
    made = made_from(recording)
    assert np.diff(made.offsets).tolist() == [2, 0]
    assert STATUSES[int(made.status[1])] == "timeout"


def test_warm_up_is_not_shown() -> None:
    recording = Recording.from_streams(
        [stream(1, [50, 60], phase="warmup"), stream(2, [50, 60], start_ms=5)]
    )
    assert made_from(recording).stream_id.tolist() == [2]


def test_thinning_keeps_every_stall_whole_and_the_ends_of_every_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recording = uneven()
    whole = made_from(recording)
    monkeypatch.setattr(piano, "MOST_BYTES", 900)
    thin = made_from(recording)
    assert thin.every_tick > 1
    assert len(thin.tick) < len(whole.tick) / 2
    assert len(thin.stall) == len(whole.stall) == stall_count(recording) > 0
    assert stall_lengths(thin) == stall_lengths(whole)
    assert thin.tick[thin.offsets[:-1]].tolist() == whole.tick[whole.offsets[:-1]].tolist()
    assert thin.tick[thin.offsets[1:] - 1].tolist() == whole.tick[whole.offsets[1:] - 1].tolist()


def test_rows_are_thinned_only_where_nothing_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = uneven(streams=90)
    monkeypatch.setattr(piano, "MOST_ROWS", 10)
    made = made_from(recording)
    measured = measure(recording)
    eventful = set(measured.gaps.stream[stalled(measured.gaps)].tolist()) | {5, 11}
    assert eventful <= set(made.rows.tolist())
    assert made.left_out_rows == 90 - len(made.rows) > 0
    assert len(made.stall) == stall_count(recording)


def test_the_longest_stalls_name_their_place_and_their_company() -> None:
    gaps = [50, 60, 70, 570, 580, 590, 600]
    late = [50, 60, 70, 80, 90, 100, 500]
    recording = Recording.from_streams(
        [stream(4, gaps, start_ms=0), stream(9, late, start_ms=40), stream(5, [50, 60, 70])]
    )
    measured = measure(recording)
    found = longest(measured, roll(recording, measured), int(recording.ints("sent_ns").min()))
    assert [(stall.stream_id, stall.gap_ms, stall.position) for stall in found] == [
        (4, 500.0, 4),
        (9, 400.0, 7),
    ]
    assert [stall.at_s for stall in found] == pytest.approx([0.570, 0.540])
    assert [stall.together for stall in found] == [2, 2]


def test_the_still_image_shows_the_longest_stall() -> None:
    quiet = [stream(index, [50, 60, 70], start_ms=index) for index in range(200)]
    quiet[150] = stream(150, [50, 60, 70, 900], start_ms=150)
    chart = roll_chart(made_from(Recording.from_streams(quiet)))
    assert chart is not None
    lines, _, stalls = (layer["data"]["values"] for layer in chart.spec["layer"])
    assert len(lines) == MOST_ROWS
    assert [stall["row"] for stall in stalls] == ["150"]
    assert "150" in [line["row"] for line in lines]


def test_without_streams_there_is_no_still_image() -> None:
    assert roll_chart(made_from(Recording.from_streams([]))) is None
