"""Dialects whose ITL is the gaps between chunks or tokens, worked out by hand."""

from __future__ import annotations

import pytest
from dialect_streams import Event, dialect, example, ramp, stream

from legato.recording import (
    CONTENT,
    DONE,
    FINISH,
    HAS_FINISH,
    HAS_USAGE,
    REASONING,
    TOOL,
    USAGE,
)

# --- gaps between chunks --------------------------------------------------------------------


def test_vllm_takes_a_sample_from_every_chunk_with_choices_and_ends_at_usage() -> None:
    seen = dialect("vllm", example())
    # choices at 20, 50, 80, 90, 95: gaps 30, 30, 10, 5; sorted 5, 10, 30, 30
    assert seen["itl_ms"] == pytest.approx({"mean": 18.75, "p50": 20.0, "p99": 30.0})
    # the role chunk sets TTFT; (145 − 20) / (5 − 1)
    assert seen["ttft_ms"] == pytest.approx({"mean": 20.0, "p50": 20.0, "p99": 20.0})
    assert seen["tpot_ms"] == pytest.approx({"mean": 31.25, "p50": 31.25, "p99": 31.25})
    # five tokens in the 152 ms of the run
    assert seen["output_tps"] == pytest.approx(5 / 0.152)
    assert seen["approximate"] is False
    assert "e2e_ms" not in seen  # not printed unless asked for


def test_vllm_ends_a_text_completion_at_its_last_text() -> None:
    seen = dialect("vllm", example(api="completions"))
    assert seen["tpot_ms"]["mean"] == pytest.approx((95 - 20) / 4)


def test_vllm_does_not_read_usage_that_rides_on_a_choice() -> None:
    events: list[Event] = [(10, CONTENT, 1), (20, CONTENT, 4, HAS_FINISH | HAS_USAGE)]
    # usage says 9; the text encodes to 5; (20 − 10) / (5 − 1)
    seen = dialect("vllm", stream(events, ended_ms=20, output_tokens=9))
    assert seen["tpot_ms"]["mean"] == pytest.approx(2.5)


def test_sglang_counts_chunks_with_text_and_ends_at_done() -> None:
    seen = dialect("sglang", example())
    # 50, 80, 90: gaps 30 and 10; p90 is 10 + 0.9 · 20, p95 10 + 0.95 · 20, p99 10 + 0.99 · 20
    expected = {"mean": 20.0, "p50": 20.0, "p90": 28.0, "p95": 29.0, "p99": 29.8, "max": 30.0}
    assert seen["itl_ms"] == pytest.approx(expected)
    assert seen["ttft_ms"]["mean"] == pytest.approx(50.0)
    assert seen["e2e_ms"]["mean"] == pytest.approx(150.0)
    assert seen["tpot_ms"]["mean"] == pytest.approx((150 - 50) / 4)


def test_sglang_believes_the_requested_length_where_usage_is_missing() -> None:
    silent = stream([(50, CONTENT, 1), (90, CONTENT, 1)], ended_ms=90, output_tokens=None)
    seen = dialect("sglang", silent, meta={"settings": {"output_tokens": 11}})
    assert seen["tpot_ms"]["mean"] == pytest.approx((90 - 50) / 10)
    assert seen["approximate"] is False
    assert dialect("sglang", silent)["approximate"] is True


def test_evalscope_takes_the_nearest_rank_and_ends_at_usage() -> None:
    seen = dialect("evalscope", example())
    # gaps 10 and 30: rank ceil(0.5 · 2) is the first, ceil(0.75 · 2) the second
    assert seen["itl_ms"]["mean"] == pytest.approx(20.0)
    assert seen["itl_ms"]["p50"] == pytest.approx(10.0)
    assert seen["itl_ms"]["p75"] == pytest.approx(30.0)
    assert seen["tpot_ms"]["mean"] == pytest.approx((145 - 50) / 4)
    assert seen["e2e_ms"]["max"] == pytest.approx(145.0)
    # the last JSON chunk ends the run too
    assert seen["output_tps"] == pytest.approx(5 / 0.145)


def test_evalscope_percentiles_of_ten_requests() -> None:
    ttft = dialect("evalscope", *ramp())["ttft_ms"]
    # ceil(9) is the ninth, ceil(9.5) the tenth, ceil(0.1) the first
    assert (ttft["p90"], ttft["p95"], ttft["p1"]) == pytest.approx((90.0, 100.0, 10.0))


def test_evalscope_counts_reasoning_and_tool_calls_as_output() -> None:
    mixed = stream([(10, REASONING, 1), (30, CONTENT, 1), (60, TOOL, 1)], ended_ms=60)
    seen = dialect("evalscope", mixed)
    assert seen["ttft_ms"]["mean"] == pytest.approx(10.0)
    assert seen["itl_ms"]["mean"] == pytest.approx((20 + 30) / 2)
    # others leave the tool call, or the reasoning too, aside
    assert dialect("sglang", mixed)["itl_ms"]["mean"] == pytest.approx(20.0)
    assert dialect("inference_perf", mixed).get("itl_ms") is None


def test_servebench_rounds_arrivals_to_microseconds_and_ends_at_done() -> None:
    events: list[Event] = [
        (10.0004, CONTENT, 1),
        (20.0006, CONTENT, 1),
        (25, FINISH, 0),
        (25, USAGE, 0),
        (30, DONE, 0),
    ]
    seen = dialect("servebench", stream(events, ended_ms=31))
    # 10.000 and 20.001 after rounding
    assert seen["itl_ms"]["p50"] == pytest.approx(10.001, abs=1e-9)
    assert seen["ttft_ms"] == pytest.approx({"p50": 10.0, "p99": 10.0}, abs=1e-9)
    assert seen["tpot_ms"]["p50"] == pytest.approx(20.0, abs=1e-9)
    assert seen["e2e_ms"] == pytest.approx({"p50": 30.0})


def test_servebench_refuses_an_answer_that_just_stops() -> None:
    cut = stream([(10, CONTENT, 1), (20, CONTENT, 1)], ended_ms=20)
    assert "itl_ms" not in dialect("servebench", cut)


def test_servebench_counts_chunks_where_usage_is_missing() -> None:
    events: list[Event] = [(10, CONTENT, 5), (20, CONTENT, 5), (30, DONE, 0)]
    seen = dialect("servebench", stream(events, ended_ms=30, output_tokens=None))
    assert seen["tpot_ms"]["p50"] == pytest.approx((30 - 10) / 1)
    assert seen["approximate"] is False


# --- gaps between tokens --------------------------------------------------------------------


def test_inference_perf_gives_zeros_inside_a_chunk_and_then_the_whole_gap() -> None:
    seen = dialect("inference_perf", example())
    # tokens at 50, 80, 80, 80, 90: gaps 30, 0, 0, 10; sorted 0, 0, 10, 30
    assert seen["itl_ms"]["mean"] == pytest.approx(10.0)
    assert seen["itl_ms"]["p50"] == pytest.approx(5.0)
    assert seen["itl_ms"]["p99"] == pytest.approx(10 + 0.97 * 20)
    assert seen["itl_ms"]["p0.1"] == 0
    assert seen["tpot_ms"]["mean"] == pytest.approx((90 - 50) / 4)
    assert seen["e2e_ms"]["mean"] == pytest.approx(152.0)


def test_inference_perf_has_zeros_for_the_first_chunk_too() -> None:
    seen = dialect("inference_perf", stream([(50, CONTENT, 3), (80, CONTENT, 1)], ended_ms=80))
    # tokens at 50, 50, 50, 80: gaps 0, 0, 30
    assert seen["itl_ms"]["mean"] == pytest.approx(10.0)
    assert seen["itl_ms"]["p50"] == 0


def test_inference_perf_has_no_ttft_for_an_answer_of_one_token() -> None:
    seen = dialect("inference_perf", stream([(50, CONTENT, 1)], ended_ms=60))
    assert "ttft_ms" not in seen
    assert seen["e2e_ms"]["mean"] == pytest.approx(60.0)


def test_etalon_reads_its_percentiles_from_a_sketch() -> None:
    seen = dialect("etalon", example())
    # 30, 0, 0, 10: rank ⌊0.5 · 3⌋ is a zero, ⌊0.9 · 3⌋ and ⌊0.99 · 3⌋ the 10, which its bucket
    # shows as 10.00168165 (figures of the ddsketch library)
    expected = {"mean": 10.0, "p50": 0.0, "p90": 10.00168165, "p99": 10.00168165}
    assert seen["itl_ms"] == pytest.approx(expected)
    assert seen["ttft_ms"]["p50"] == pytest.approx(50.03655212)
    assert seen["tpot_ms"]["mean"] == pytest.approx((90 - 50) / 4)
    assert seen["e2e_ms"]["mean"] == pytest.approx(90.0)


def test_etalon_counts_a_failed_request_as_zeros_and_the_others_leave_it_out() -> None:
    failed = stream([], ended_ms=5, status="http_error", output_tokens=None, text_tokens=None)
    seen = dialect("etalon", example(), failed)
    assert seen["ttft_ms"]["mean"] == pytest.approx(25.0)
    assert seen["itl_ms"]["mean"] == pytest.approx(10.0)
    assert dialect("sglang", example(), failed)["ttft_ms"]["mean"] == pytest.approx(50.0)
