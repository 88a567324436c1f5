"""Dialects that print one mean a request, worked out by hand."""

from __future__ import annotations

import pytest
from dialect_streams import Event, dialect, example, ramp, stream

from legato.recording import CONTENT, DONE, FINISH, HAS_FINISH, HAS_USAGE, USAGE


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


def test_guidellm_believes_the_requested_length_where_usage_is_missing() -> None:
    silent = example(output_tokens=None)
    seen = dialect("guidellm", silent, meta={"settings": {"output_tokens": 9}})
    assert seen["itl_ms"]["mean"] == pytest.approx((90 - 50) / 8)
    # where no length was asked for either, a chunk is a token
    seen = dialect("guidellm", silent)
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


def test_genai_bench_would_not_see_the_running_usage_that_we_ask_for() -> None:
    events: list[Event] = [
        (50, CONTENT, 1, HAS_USAGE),
        (90, CONTENT, 1, HAS_USAGE),
        (100, FINISH, 0, HAS_USAGE),
        (150, USAGE, 0),
        (150, DONE, 0),
    ]
    seen = dialect("genai_bench", stream(events, ended_ms=152))
    assert seen["tpot_ms"]["mean"] == pytest.approx(150 - 50)


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
