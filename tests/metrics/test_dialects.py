"""Each dialect on streams small enough to work its figures out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.metrics.dialects import DIALECTS, all_dialects
from legato.metrics.dialects.statistics import linear, lower, weighted_table_ms
from legato.recording import (
    CONTENT,
    DONE,
    EMPTY,
    FINISH,
    HAS_CHOICES,
    HAS_FINISH,
    HAS_USAGE,
    REASONING,
    ROLE,
    TOOL,
    USAGE,
    Recording,
    Stream,
)

MS = 1_000_000

_FLAGS = {
    ROLE: HAS_CHOICES | EMPTY,
    FINISH: HAS_CHOICES | HAS_FINISH,
    USAGE: HAS_USAGE,
    DONE: 0,
}

# (ms from the send, kind, tokens, flags beside those of the kind)
Event = tuple[float, int, int] | tuple[float, int, int, int]

# The stream most tests use. Five tokens in three chunks; the role chunk is early, finish,
# usage and [DONE] are late; the response ends at 152 ms.
EXAMPLE: list[Event] = [
    (20, ROLE, 0),
    (50, CONTENT, 1),
    (80, CONTENT, 3),
    (90, CONTENT, 1),
    (95, FINISH, 0),
    (145, USAGE, 0),
    (150, DONE, 0),
]


def stream(events: Sequence[Event], *, ended_ms: float, sent_ms: float = 0, **more: Any) -> Stream:
    """A stream with a tokenizer's counts: each chunk re-encodes to the tokens it holds."""
    tokens = [event[2] for event in events]
    zeros = [0] * len(events)
    sent_ns = round(sent_ms * MS)
    values: dict[str, Any] = {
        "stream_id": 0,
        "status": "ok",
        "scheduled_ns": sent_ns,
        "sent_ns": sent_ns,
        "ended_ns": sent_ns + round(ended_ms * MS),
        "output_tokens": sum(tokens),
        "text_tokens": sum(tokens),
        "retokens": tokens,
        "arrival_ns": [round(event[0] * MS) for event in events],
        "tokens": tokens,
        "kind": [event[1] for event in events],
        "flags": [_FLAGS.get(event[1], HAS_CHOICES) | sum(event[3:]) for event in events],
        "lag_ns": zeros,
        "early_ns": zeros,
        "read_index": list(range(len(events))),
        "segments": [1] * len(events),
    }
    return Stream(**(values | more))


def example(**more: Any) -> Stream:
    return stream(EXAMPLE, ended_ms=152, **more)


def dialect(name: str, *streams: Stream, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    return all_dialects(Recording.from_streams(streams, meta))[name]


def ramp() -> list[Stream]:
    """Ten answers of two tokens 10 ms apart, the first after 10, 20, … 100 ms."""
    return [
        stream(
            [
                (t, CONTENT, 1),
                (t + 10, CONTENT, 1, HAS_FINISH),
                (t + 10, USAGE, 0),
                (t + 10, DONE, 0),
            ],
            ended_ms=t + 10,
        )
        for t in range(10, 101, 10)
    ]


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
    # without usage and without a tokenizer a chunk is a token
    bare = stream(
        [(10, CONTENT, 5), (20, CONTENT, 5), (30, DONE, 0)],
        ended_ms=30,
        output_tokens=None,
        text_tokens=None,
        retokens=None,
    )
    seen = dialect("servebench", bare)
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


# --- means a request ------------------------------------------------------------------------


def test_aiperf_divides_first_to_last_content_by_the_re_encoded_tokens() -> None:
    seen = dialect("aiperf", example())
    expected = {"mean": 10.0, "min": 10.0, "max": 10.0, "std": 0.0}
    assert seen["itl_ms"] == pytest.approx(expected | {"p50": 10.0, "p90": 10.0, "p99": 10.0})
    assert seen["ttft_ms"]["mean"] == pytest.approx(50.0)
    assert seen["e2e_ms"]["mean"] == pytest.approx(90.0)  # neither finish nor usage count
    # the server said 9, the tokenizer 5: the tokenizer wins
    assert dialect("aiperf", example(output_tokens=9))["itl_ms"]["mean"] == pytest.approx(10.0)


def test_aiperf_interpolates_over_requests_with_the_population_deviation() -> None:
    ttft = dialect("aiperf", *ramp())["ttft_ms"]
    # rank 0.99 · 9 = 8.91: 90 + 0.91 · 10; 8.1: 90 + 0.1 · 10
    assert (ttft["p50"], ttft["p90"], ttft["p99"]) == pytest.approx((55.0, 91.0, 99.1))
    assert ttft["std"] == pytest.approx(28.7228, abs=1e-4)  # √825


def test_a_stall_is_averaged_away_by_tools_of_request_means_and_shown_by_the_others() -> None:
    times = [10 + 10 * i + (500 if i >= 5 else 0) for i in range(11)]
    stalled = stream([(t, CONTENT, 1) for t in times], ended_ms=times[-1])
    # eleven tokens from 10 to 610 ms
    assert dialect("aiperf", stalled)["itl_ms"]["max"] == pytest.approx(60.0)
    assert dialect("sglang", stalled)["itl_ms"]["max"] == pytest.approx(510.0)


def test_genai_perf_rounds_to_whole_nanoseconds_and_prints_p75() -> None:
    events: list[Event] = [(10, CONTENT, 1), (20, CONTENT, 3)]
    seen = dialect("genai_perf", stream(events, ended_ms=20))
    # 10 ms over 3 is 3 333 333.3 ns
    assert seen["itl_ms"]["mean"] == 3.333333
    assert set(seen["itl_ms"]) == {"mean", "min", "max", "p75", "p90", "p99"}
    # rank 0.75 · 9 = 6.75 of 10, 20, … 100
    assert dialect("genai_perf", *ramp())["ttft_ms"]["p75"] == pytest.approx(77.5)


def test_genai_perf_has_no_itl_for_an_answer_in_one_chunk() -> None:
    seen = dialect("genai_perf", stream([(10, CONTENT, 5)], ended_ms=20))
    assert "itl_ms" not in seen
    assert seen["ttft_ms"]["mean"] == pytest.approx(10.0)


def test_guidellm_includes_the_first_token_in_tpot_and_ends_at_done() -> None:
    seen = dialect("guidellm", example())
    assert seen["itl_ms"] == pytest.approx({"mean": 10.0, "p50": 10.0, "p95": 10.0})
    assert seen["tpot_ms"]["mean"] == pytest.approx(90 / 5)
    assert seen["ttft_ms"]["mean"] == pytest.approx(50.0)
    assert seen["e2e_ms"]["mean"] == pytest.approx(150.0)


def test_guidellm_weights_requests_by_their_tokens() -> None:
    long = stream([(10 * i, CONTENT, 1) for i in range(1, 10)], ended_ms=90)
    short = stream([(10, CONTENT, 1), (50, CONTENT, 1)], ended_ms=50)
    seen = dialect("guidellm", long, short)
    # ITL 10 with weight 8 and 40 with weight 1
    assert seen["itl_ms"]["mean"] == pytest.approx((8 * 10 + 40) / 9)
    assert seen["itl_ms"]["p50"] == pytest.approx(10.0)
    assert seen["itl_ms"]["p95"] == pytest.approx(40.0)  # 8/9 of the weight is below 95 %
    # TPOT 90/9 with weight 9 and 50/2 with weight 2
    assert seen["tpot_ms"]["mean"] == pytest.approx((90 + 50) / 11)


def test_guidellm_counts_chunks_where_usage_is_missing() -> None:
    seen = dialect("guidellm", example(output_tokens=None))
    assert seen["itl_ms"]["mean"] == pytest.approx((90 - 50) / 2)
    assert seen["approximate"] is False


def test_guidellm_takes_the_inverted_cdf() -> None:
    ttft = dialect("guidellm", *ramp())["ttft_ms"]
    assert (ttft["p50"], ttft["p95"]) == pytest.approx((50.0, 100.0))


def test_genai_bench_stops_at_the_usage_chunk_and_prints_no_itl() -> None:
    seen = dialect("genai_bench", example())
    assert "itl_ms" not in seen
    assert seen["tpot_ms"]["mean"] == pytest.approx((145 - 50) / 4)
    assert seen["e2e_ms"]["mean"] == pytest.approx(145.0)


def test_genai_bench_stops_at_a_finish_chunk_that_carries_usage() -> None:
    events: list[Event] = [
        (50, CONTENT, 1),
        (90, CONTENT, 1),
        (100, FINISH, 0, HAS_USAGE),
        (150, DONE, 0),
    ]
    seen = dialect("genai_bench", stream(events, ended_ms=152, output_tokens=6))
    assert seen["tpot_ms"]["mean"] == pytest.approx((100 - 50) / 5)


def test_genai_bench_drops_tpot_where_decoding_took_less_than_a_millisecond() -> None:
    events: list[Event] = [(50, CONTENT, 2, HAS_FINISH), (50.9, USAGE, 0), (51, DONE, 0)]
    seen = dialect("genai_bench", stream(events, ended_ms=52))
    assert "tpot_ms" not in seen
    assert seen["ttft_ms"]["mean"] == pytest.approx(50.0)


def test_mlperf_counts_from_the_scheduled_send_to_the_end_of_the_response() -> None:
    seen = dialect("mlperf", example(sent_ms=5, scheduled_ns=0))
    assert seen["ttft_ms"]["mean"] == pytest.approx(55.0)
    assert seen["e2e_ms"]["mean"] == pytest.approx(157.0)
    assert seen["tpot_ms"]["mean"] == pytest.approx((157 - 55) / 4)


def test_mlperf_takes_the_sample_at_the_product_of_share_and_count() -> None:
    ttft = dialect("mlperf", *ramp())["ttft_ms"]
    # index 10 · 0.5 = 5 is the sixth, 10 · 0.9 = 9 and all above the tenth
    expected = {"p50": 60.0, "p90": 100.0, "p95": 100.0, "p97": 100.0, "p99": 100.0, "p999": 100.0}
    assert ttft == pytest.approx(expected | {"mean": 55.0, "min": 10.0, "max": 100.0})


def test_mlperf_divides_by_minus_one_for_an_answer_of_one_token() -> None:
    seen = dialect("mlperf", stream([(10, CONTENT, 1)], ended_ms=13))
    assert seen["tpot_ms"]["mean"] == pytest.approx(-3.0)


def test_mlperf_stops_the_clock_with_the_request_issued_last() -> None:
    early = stream([(10, CONTENT, 10), (900, CONTENT, 10)], ended_ms=1000)
    late = stream([(10, CONTENT, 10), (100, CONTENT, 10)], ended_ms=100, sent_ms=400)
    # 40 tokens from 0 to 400 + 100 ms
    assert dialect("mlperf", early, late)["output_tps"] == pytest.approx(40 / 0.5)


def test_endpoints_divides_by_the_tokens_after_the_first_chunk() -> None:
    events: list[Event] = [(50, CONTENT, 3), (80, CONTENT, 2), (90, DONE, 0)]
    seen = dialect("endpoints", stream(events, ended_ms=100))
    assert seen["tpot_ms"]["mean"] == pytest.approx((100 - 50) / 2)
    assert seen["approximate"] is False
    assert "itl_ms" not in seen  # chunk deltas are off by default


def test_endpoints_takes_the_lower_sample_and_the_sample_deviation() -> None:
    ttft = dialect("endpoints", *ramp())["ttft_ms"]
    # ranks ⌊4.5⌋ and ⌊8.1⌋ of 10, 20, … 100
    assert (ttft["p50"], ttft["p90"]) == pytest.approx((50.0, 90.0))
    assert ttft["std"] == pytest.approx(30.2765, abs=1e-4)  # √(8250 / 9)


def test_llmperf_averages_the_first_token_in_and_counts_lines() -> None:
    seen = dialect("llmperf", example())
    # 50 + 30 + 10 over role, three contents and finish
    assert seen["itl_ms"]["mean"] == pytest.approx(90 / 5)
    assert seen["ttft_ms"]["mean"] == pytest.approx(50.0)
    assert seen["e2e_ms"]["mean"] == pytest.approx(152.0)
    assert "output_tps" not in seen  # its own tokenizer would be needed


def test_llmperf_interpolates_with_the_sample_deviation() -> None:
    ttft = dialect("llmperf", *ramp())["ttft_ms"]
    assert (ttft["p25"], ttft["p75"]) == pytest.approx((32.5, 77.5))
    assert ttft["std"] == pytest.approx(30.2765, abs=1e-4)


def test_hf_benchmarker_divides_by_all_tokens_but_one_and_ends_at_done() -> None:
    seen = dialect("hf_benchmarker", example())
    assert seen["itl_ms"]["mean"] == pytest.approx(10.0)
    assert seen["e2e_ms"]["mean"] == pytest.approx(150.0)
    # (n − 1) · 0.6 = 5.4 of 10, 20, … 100
    assert dialect("hf_benchmarker", *ramp())["ttft_ms"]["p60"] == pytest.approx(64.0)


def test_hf_benchmarker_counts_an_answer_in_one_chunk_as_an_itl_of_zero() -> None:
    one = stream([(10, CONTENT, 4), (20, DONE, 0)], ended_ms=20)
    assert dialect("hf_benchmarker", example(), one)["itl_ms"]["mean"] == pytest.approx(5.0)


def test_hf_benchmarker_measures_the_run_from_the_request_that_ended_first() -> None:
    slow = stream([(10, CONTENT, 10), (1000, DONE, 0)], ended_ms=1000)
    quick = stream([(10, CONTENT, 10), (100, DONE, 0)], ended_ms=100, sent_ms=500)
    # 20 tokens from 500 ms, when the quick one was sent, to 1000 ms
    assert dialect("hf_benchmarker", slow, quick)["output_tps"] == pytest.approx(20 / 0.5)


# --- all of them ----------------------------------------------------------------------------

_WITH_ITL = (
    "vllm",
    "sglang",
    "aiperf",
    "genai_perf",
    "guidellm",
    "inference_perf",
    "evalscope",
    "llmperf",
    "etalon",
    "hf_benchmarker",
    "servebench",
)


@settings(max_examples=30, deadline=None)
@given(
    gap_us=st.integers(1000, 500_000),
    lengths=st.lists(st.integers(2, 40), min_size=1, max_size=5),
)
def test_all_agree_on_one_token_a_chunk_at_a_constant_gap(gap_us: int, lengths: list[int]) -> None:
    # No role chunk, and the first token as late as any other, since llmperf averages it in.
    gap_ms = gap_us / 1000
    streams = []
    for length in lengths:
        events: list[Event] = [(gap_ms * (i + 1), CONTENT, 1) for i in range(length)]
        end_ms = events[-1][0]
        events[-1] = (end_ms, CONTENT, 1, HAS_FINISH)
        events += [(end_ms, USAGE, 0), (end_ms, DONE, 0)]
        streams.append(stream(events, ended_ms=end_ms))
    dialects = all_dialects(Recording.from_streams(streams))
    for name in _WITH_ITL:
        for key, value in dialects[name]["itl_ms"].items():
            if key != "std":
                assert value == pytest.approx(gap_ms, rel=1.1e-3 if name == "etalon" else 1e-5)
        assert dialects[name]["approximate"] is False


def test_every_tool_is_there_and_every_figure_is_json() -> None:
    dialects = all_dialects(Recording.from_streams([example(), *ramp()]))
    assert list(dialects) == list(DIALECTS)
    assert set(_WITH_ITL) == {name for name, seen in dialects.items() if "itl_ms" in seen}
    assert json.loads(json.dumps(dialects, allow_nan=False)) == dialects


def test_without_a_tokenizer_the_tools_that_re_encode_say_approximate_and_why() -> None:
    recording = Recording.from_streams([example(text_tokens=None, retokens=None)])
    dialects = all_dialects(recording)
    approximate = {name for name, seen in dialects.items() if seen["approximate"]}
    assert approximate == {
        "aiperf",
        "genai_perf",
        "inference_perf",
        "endpoints",
        "etalon",
        "hf_benchmarker",
    }
    assert all("tokenizer" in dialects[name]["why"] for name in approximate)
    assert dialects["aiperf"]["itl_ms"]["mean"] == pytest.approx(10.0)


@pytest.mark.parametrize("name", list(DIALECTS))
def test_the_warm_up_is_not_counted(name: str) -> None:
    slow = stream([(t * 100, kind, n) for t, kind, n, *_ in EXAMPLE], ended_ms=15200)
    slow.phase = "warmup"
    assert dialect(name, slow, example()) == dialect(name, example())


@pytest.mark.parametrize("name", sorted(set(DIALECTS) - {"etalon"}))
def test_a_cut_stream_is_not_counted(name: str) -> None:
    cut = stream(EXAMPLE[:3], ended_ms=100, status="aborted")
    seen, whole = dialect(name, cut, example()), dialect(name, example())
    assert {k: v for k, v in seen.items() if k != "output_tps"} == {
        k: v for k, v in whole.items() if k != "output_tps"
    }


@pytest.mark.parametrize(
    "streams",
    [
        [],
        [stream([], ended_ms=5, status="http_error")],
        [stream([], ended_ms=5)],
        [stream([(10, ROLE, 0), (20, FINISH, 0), (20, DONE, 0)], ended_ms=20)],
        [stream([(10, TOOL, 2), (20, TOOL, 2), (30, USAGE, 0)], ended_ms=30)],
    ],
    ids=["no stream", "none succeeded", "no chunk", "no token", "only tool calls"],
)
def test_an_answer_without_text_breaks_no_dialect(streams: list[Stream]) -> None:
    dialects = all_dialects(Recording.from_streams(streams))
    assert json.dumps(dialects, allow_nan=False)


# --- the rules ------------------------------------------------------------------------------

_SAMPLES = st.lists(st.integers(0, 10**12), min_size=1, max_size=60)
_PERCENT = st.sampled_from([0.1, 1, 25, 50, 75, 90, 95, 99, 99.9])


@given(samples=_SAMPLES, percent=_PERCENT)
def test_the_linear_rule_is_numpys(samples: list[int], percent: float) -> None:
    ordered = np.sort(np.asarray(samples))
    assert linear(ordered, percent / 100) == pytest.approx(np.percentile(ordered, percent))


@given(samples=_SAMPLES, percent=_PERCENT)
def test_the_lower_rule_is_numpys(samples: list[int], percent: float) -> None:
    ordered = np.sort(np.asarray(samples))
    assert lower(ordered, percent / 100) == np.percentile(ordered, percent, method="lower")


@given(
    pairs=st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 50)), min_size=1, max_size=40),
    percent=st.sampled_from([3, 33, 67, 97]),
)
def test_a_weighted_percentile_is_that_of_the_repeated_samples(
    pairs: list[tuple[int, int]], percent: int
) -> None:
    values, weights = np.asarray(pairs).T
    repeated = np.repeat(values, weights)
    table = weighted_table_ms(values, weights, (percent,))
    if not len(repeated):
        assert table == {}
        return
    assert table["mean"] * MS == pytest.approx(repeated.mean())
    if len(repeated) * percent % 100:  # elsewhere rounding decides between two neighbours
        expected = np.percentile(repeated, percent, method="inverted_cdf")
        assert table[f"p{percent}"] * MS == pytest.approx(expected)
