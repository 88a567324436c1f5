from __future__ import annotations

import summaries

from legato.report.peers import peer_groups


def test_tools_that_agree_stand_together_and_those_that_agree_with_us_come_first() -> None:
    first, *others = peer_groups(summaries.smooth())
    assert first.flaws == []
    assert first.names[:4] == ["vLLM", "SGLang", "EvalScope", "servebench"]
    assert all(group.flaws for group in others)


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
    first, *_ = peer_groups(summary)
    assert "GuideLLM" in first.names
    assert first.reading.p99_ms == 11.2


def test_tools_without_figures_are_left_out() -> None:
    summary = summaries.smooth()
    summary["dialects"] = {"vllm": {"itl_ms": {"mean": None}}, "sglang": None}
    assert peer_groups(summary) == []
