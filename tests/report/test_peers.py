from __future__ import annotations

import summaries
from hypothesis import given
from hypothesis import strategies as st

from legato.report.peers import TOOLS, peer_groups


def test_tools_that_agree_stand_together_and_those_that_agree_with_us_come_first() -> None:
    groups = peer_groups(summaries.uneven())
    assert groups[0].names == ["vLLM", "SGLang", "EvalScope", "servebench"]
    differing = [bool(group.flaws) for group in groups]
    assert differing == sorted(differing)


def test_tools_that_print_gaps_never_share_a_row_with_tools_that_print_means() -> None:
    summary = summaries.smooth()
    for tool in summary["dialects"]:
        summary["dialects"][tool] = summaries.tool(10.0, 10.0, 11.2)
    rows = [group.names for group in peer_groups(summary)]
    assert ["vLLM", "SGLang", "EvalScope", "servebench"] in rows
    assert not any({"vLLM", "AIPerf"} <= set(row) for row in rows)


def test_a_row_shows_the_range_of_what_its_tools_print() -> None:
    summary = summaries.smooth()
    summary["dialects"]["vllm"] = summaries.tool(10.15, 10.0, 11.3)
    first, *_ = peer_groups(summary)
    assert first.names[:2] == ["vLLM", "SGLang"]
    assert first.shown[:3] == ["10.0–10.2 ms", "10.0 ms", "11.2–11.3 ms"]


@given(figures=st.lists(st.floats(5.0, 50.0), min_size=14, max_size=14))
def test_every_figure_of_a_tool_lies_within_the_range_of_its_row(figures: list[float]) -> None:
    summary = summaries.smooth()
    for tool, figure in zip(TOOLS, figures, strict=True):
        summary["dialects"][tool] = summaries.tool(figure, figure, figure)
    for group in peer_groups(summary):
        low, _, high = group.shown[0].removesuffix(" ms").partition("–")
        for reading in group.readings:
            assert reading.mean_ms is not None
            assert float(low) * 0.995 <= reading.mean_ms <= float(high or low) * 1.005
            assert float(high or low) <= float(low) * 1.03


def test_without_a_gap_no_tool_is_shown() -> None:
    summary = summaries.smooth()
    summary["itl_ms"] = {"n": 0}
    assert peer_groups(summary) == []


def test_every_tool_that_prints_a_figure_appears_once() -> None:
    names = [name for group in peer_groups(summaries.multi_token()) for name in group.names]
    assert len(names) == len(set(names)) == 14


def test_an_approximate_tool_is_marked() -> None:
    names = [name for group in peer_groups(summaries.smooth()) for name in group.names]
    assert "≈AIPerf" in names
    assert "GuideLLM" in names


def test_several_tokens_a_chunk_explain_why_chunk_counting_tools_differ() -> None:
    groups = {group.names[0]: group for group in peer_groups(summaries.multi_token())}
    assert groups["vLLM"].flaws == ["a chunk counts as one token"]
    assert groups["≈inference-perf"].flaws == ["zeros inside a chunk, then the whole gap"]


def test_with_one_token_a_chunk_the_reason_is_another() -> None:
    groups = {group.names[0]: group for group in peer_groups(summaries.open_loop())}
    assert groups["vLLM"].flaws == ["role, empty and finish chunks count too"]


def test_a_ttft_that_differs_is_explained() -> None:
    groups = {group.names[0]: group for group in peer_groups(summaries.open_loop())}
    assert "TTFT: counted from the intended send" in groups["MLPerf"].flaws


def test_a_tool_without_an_itl_is_shown_by_its_tpot() -> None:
    summary = summaries.smooth()
    summary["dialects"] = {"mlperf": {"tpot_ms": {"mean": 7.0, "p50": 7.0, "p99": 7.5}}}
    (group,) = peer_groups(summary)
    assert group.reading.mean_ms == 7.0


def test_a_tool_that_prints_fewer_figures_joins_those_it_does_not_contradict() -> None:
    summary = summaries.smooth()
    summary["dialects"]["guidellm"]["itl_ms"]["p99"] = None
    row = next(group for group in peer_groups(summary) if "≈AIPerf" in group.names)
    assert "GuideLLM" in row.names
    assert row.flaws == ["one mean a request: no single gap shows"]
    assert row.notes[-1] == "no p99 from GuideLLM"


def test_tools_without_figures_are_left_out() -> None:
    summary = summaries.smooth()
    summary["dialects"] = {"vllm": {"itl_ms": {"mean": None}}, "sglang": None}
    assert peer_groups(summary) == []
