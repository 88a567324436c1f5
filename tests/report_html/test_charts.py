"""The charts hold what the recording holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from page_recordings import stream, uneven

from legato.metrics.summary import measure, summarise
from legato.recording import Recording
from legato.report.html.axes import FLOOR_MS
from legato.report.html.chart import DARK, LIGHT, Chart, config
from legato.report.html.document import charts


def drawn(recording: Recording) -> dict[str, Chart]:
    return {chart.name: chart for chart in charts(recording, summarise(recording))}


def values(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = part["data"]["values"]
    assert isinstance(found, list)
    return found


def bursty() -> Recording:
    """Four chunks of one segment every 40 ms."""
    arrivals = [50.0 + 40 * (index // 4) for index in range(80)]
    reads = [index // 4 for index in range(80)]
    return Recording.from_streams(
        [stream(row, arrivals, start_ms=row, read_index=reads) for row in range(12)]
    )


@pytest.mark.parametrize("recording", [uneven(), bursty()], ids=["uneven", "bursty"])
def test_every_token_gap_is_in_the_distribution_and_in_the_heat_map(recording: Recording) -> None:
    found, gaps = drawn(recording), int(measure(recording).gaps.tokens.sum())
    bars = found["itl-distribution"].spec["vconcat"][0]["layer"][0]
    assert sum(bar["gaps"] for bar in values(bars)) == gaps
    cells = found["gaps-over-time"].spec["vconcat"][0]["layer"][0]
    assert sum(cell["gaps"] for cell in values(cells)) == gaps


def test_gaps_of_no_time_stand_at_the_floor_and_the_caption_says_so() -> None:
    chart = drawn(bursty())["itl-distribution"]
    bars = values(chart.spec["vconcat"][0]["layer"][0])
    assert bars[0]["from"] == FLOOR_MS
    assert "stand at the left edge" in chart.caption


def test_each_tool_has_a_row_and_its_printed_figures_stand_where_they_read() -> None:
    recording = uneven()
    summary = summarise(recording)
    points = values(drawn(recording)["itl-distribution"].spec["vconcat"][1])
    assert {point["tool"].lstrip("≈") for point in points} >= {
        "legato",
        "vLLM",
        "AIPerf",
        "GuideLLM",
    }
    [p99] = [p for p in points if p["tool"].endswith("vLLM") and p["figure"] == "p99"]
    assert p99["at"] == summary["dialects"]["vllm"]["itl_ms"]["p99"]


def test_the_charts_against_position_context_and_load_share_one_scale() -> None:
    found = drawn(uneven())
    scales = [
        found[name].spec["encoding"]["y"]["scale"]
        for name in ("itl-position", "itl-context", "itl-concurrency")
    ]
    assert scales[0] == scales[1] == scales[2]


def test_the_open_streams_are_those_of_the_recording() -> None:
    area = drawn(uneven())["gaps-over-time"].spec["vconcat"][1]
    assert max(point["open"] for point in values(area)) <= 40
    assert values(area)[0]["open"] == 1


def test_a_recording_without_gaps_has_no_charts() -> None:
    assert drawn(Recording.from_streams([stream(0, [50.0])])) == {}


def test_every_style_that_a_chart_names_is_in_both_themes() -> None:
    named = set()

    def collect(part: Any) -> None:
        if isinstance(part, Mapping):
            if isinstance(part.get("mark"), Mapping) and "style" in part["mark"]:
                named.add(part["mark"]["style"])
            for inner in part.values():
                collect(inner)
        elif isinstance(part, list):
            for inner in part:
                collect(inner)

    for chart in drawn(uneven()).values():
        collect(chart.spec)
    assert named
    for theme in (LIGHT, DARK):
        assert named <= set(config(theme)["style"])
