from __future__ import annotations

import pytest
import summaries
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.report.failures import failure_lines
from legato.report.words import headline, reader_words, verdict, verdict_words


def test_a_smooth_run_is_called_smooth() -> None:
    assert verdict_words(summaries.smooth()) == [
        "smooth",
        "99 % of gaps are within 0.012 ms of the truth, the one read latest within 0.12 ms"
        " (calibrated floor included)",
    ]


def test_several_events_in_one_segment_are_bursty_with_their_number() -> None:
    assert verdict_words(summaries.bursty())[0] == (
        "bursty: 4 tokens at a time, several events in one segment"
    )


def test_several_tokens_in_one_event_are_bursty_with_their_number() -> None:
    assert verdict_words(summaries.multi_token())[0] == (
        "bursty: 3 tokens at a time, inside one event"
    )


def test_a_few_shared_arrivals_are_partly_bursty() -> None:
    summary = summaries.smooth()
    summary["smoothness"]["burst_share"] = 0.2
    assert verdict_words(summary)[0] == (
        "partly bursty: 20 % of tokens came together with the one before"
    )


def test_stalls_are_counted_with_the_streams_they_hit() -> None:
    assert verdict_words(summaries.stalls())[0] == (
        "3 stalls over 100 ms in 2 of 100 streams, the longest 512 ms"
    )


def test_one_stall_is_singular() -> None:
    summary = summaries.stalls()
    summary["smoothness"] |= {"stall_count": 1, "streams_with_stalls": 1}
    assert verdict_words(summary)[0].startswith("1 stall over 100 ms in 1 of 100 streams")


def test_a_long_tail_without_stalls_is_uneven() -> None:
    assert verdict_words(summaries.uneven())[0] == (
        "uneven: 12.4 % of gaps took over twice the median, typically 40.0 ms"
    )


def test_a_tail_that_the_clients_error_may_have_made_is_not_called_uneven() -> None:
    summary = summaries.degraded()
    summary["itl_ms"]["p99"] = 26.8
    summary["instrument"]["error_us"] = {"p50": 1.1, "p99": 21_000.0, "max": 30_000.0}
    assert verdict_words(summary)[0] == (
        "smoothness not judged: the client's own error is as large as the unevenness"
    )
    assert "p99 26.8 ms, may be wrong by 21 ms" in headline(summary)


def test_a_tail_far_beyond_the_clients_error_is_uneven_in_a_degraded_run_too() -> None:
    summary = summaries.uneven()
    summary["instrument"] |= {"verdict": "degraded", "error_us": {"p50": 1, "p99": 9e3, "max": 9e3}}
    assert verdict_words(summary)[0].startswith("uneven")


def test_stalls_of_all_streams_at_once_are_a_pause_of_the_server() -> None:
    assert verdict_words(summaries.shared_stalls())[0] == (
        "40 stalls over 100 ms in 40 of 100 streams, the longest 512 ms; in 4 moments, nearly all"
        " open streams at once: the server paused, not a request"
    )


def test_failures_lead_the_headline_and_say_what_leaves_them_out() -> None:
    assert headline(summaries.some_timed_out()).startswith(
        "5 of 20 streams failed: the gaps they gave count, but TPOT, decode and E2E leave them"
        " out. Smooth."
    )


def test_answers_without_their_end_mark_are_counted() -> None:
    summary = summaries.smooth()
    summary["streams"]["without_done"] = 20
    assert verdict_words(summary)[-1] == "20 answers ended without [DONE]"


def test_the_two_figures_of_a_reader_say_where_each_starts() -> None:
    deadlines, wait = reader_words(summaries.stalls())
    assert "from the send" in deadlines
    assert "starts at the first token" in wait


@pytest.mark.parametrize("flaw", [summaries.bursty, summaries.stalls, summaries.uneven])
def test_an_invalid_run_is_not_judged_whatever_its_gaps(flaw: summaries.Situation) -> None:
    summary = flaw()
    summary["instrument"] |= {"verdict": "invalid"}
    assert verdict_words(summary)[0] == "smoothness not judged: the run is invalid"


def test_gaps_that_vary_within_a_stream_are_uneven() -> None:
    summary = summaries.smooth()
    summary["smoothness"]["cv"] = 0.6
    assert verdict_words(summary)[0] == "uneven: gaps vary by 60 % of their mean"


@pytest.mark.parametrize(
    "unknown",
    [
        ("smoothness", "burst_share"),
        ("smoothness", "stall_count"),
        ("smoothness", "cv"),
        ("tokens_per_chunk", "mean"),
        ("itl_ms", "p50"),
    ],
)
def test_an_unknown_is_never_taken_for_smooth(unknown: tuple[str, str]) -> None:
    summary = summaries.smooth()
    summary[unknown[0]][unknown[1]] = None
    assert verdict_words(summary)[0] == "smoothness unknown: too few gaps to tell"


@given(
    share=st.floats(0.0501, 1.0),
    per_chunk=st.one_of(st.none(), st.floats(1.0, 20.0)),
    cv=st.one_of(st.none(), st.floats(0.0, 3.0)),
    stalls=st.one_of(st.none(), st.integers(0, 9)),
    judged=st.sampled_from(["valid", "degraded", None]),
)
@settings(max_examples=200)
def test_a_bursty_run_is_never_called_smooth(
    share: float, per_chunk: float | None, cv: float | None, stalls: int | None, judged: str | None
) -> None:
    summary = summaries.smooth()
    summary["smoothness"] |= {"burst_share": share, "cv": cv, "stall_count": stalls}
    summary["tokens_per_chunk"]["mean"] = per_chunk
    summary["instrument"]["verdict"] = judged
    said = [*verdict_words(summary), headline(summary)]
    assert not any("smooth" in sentence.lower() for sentence in said)
    assert "bursty" in said[0]


@given(per_chunk=st.floats(1.06, 50.0))
def test_several_tokens_a_chunk_are_never_smooth_whatever_the_burst_share(
    per_chunk: float,
) -> None:
    summary = summaries.smooth()
    summary["tokens_per_chunk"]["mean"] = per_chunk
    summary["smoothness"]["burst_share"] = None
    assert "bursty" in verdict_words(summary)[0]


@pytest.mark.parametrize("situation", [summaries.invalid, summaries.all_cut])
def test_a_run_that_may_not_be_believed_is_not_called_smooth(
    situation: summaries.Situation,
) -> None:
    assert "smooth" not in verdict_words(situation())
    assert "smooth" not in headline(situation()).lower()


def test_a_degraded_run_is_smooth_only_with_a_reservation() -> None:
    assert verdict_words(summaries.degraded())[0] == "smooth, as far as the client could tell"


def test_an_invalid_run_opens_with_the_warning() -> None:
    assert headline(summaries.invalid()).startswith("Do not quote these figures. ")


def test_an_endpoint_that_does_not_stream_is_said_to() -> None:
    assert verdict_words(summaries.not_streaming()) == [
        "does not stream: each answer came in one piece, so there is no gap to measure"
    ]


def test_some_answers_that_did_not_stream_are_counted() -> None:
    summary = summaries.smooth()
    summary["streams"] |= {"ok": 88, "not_streaming": 12}
    assert verdict_words(summary)[0] == "12 of 100 answers did not stream"


def test_a_run_without_a_success_says_so() -> None:
    assert verdict_words(summaries.all_failed()) == ["every stream failed: 7 of 7"]
    assert verdict(summaries.all_failed()) == "failed"


def test_streams_that_were_all_cut_are_a_failure_even_with_gaps() -> None:
    assert verdict_words(summaries.all_cut())[0] == "every stream failed: 100 of 100"
    assert verdict(summaries.all_cut()) == "failed"


def test_a_partial_run_says_how_far_it_came() -> None:
    said = verdict_words(summaries.partial())
    assert said[0] == (
        "partial run: 33 of 100 requests completed; 4 were open when it stopped (their gaps count)"
    )


def test_streams_that_the_user_left_open_have_not_failed() -> None:
    assert "failed" not in headline(summaries.partial())
    assert failure_lines(summaries.partial()) == []


def test_a_run_stopped_before_any_answer_was_complete_is_no_failure_of_the_endpoint() -> None:
    summary = summaries.partial()
    summary["streams"] |= {"total": 10, "ok": 0, "aborted": 10, "left_open": 10}
    assert verdict(summary) == "valid"
    assert "failed" not in headline(summary)
    summary["itl_ms"] = {"n": 0}
    assert headline(summary).startswith("Nothing was measured: it was stopped too soon.")


def test_a_partial_run_without_a_number_of_requests_says_what_it_has() -> None:
    summary = summaries.partial()
    summary["run"]["settings"]["requests"] = None
    assert verdict_words(summary)[0].startswith("partial run: 33 requests completed; 4 were open")


def test_guessed_token_counts_are_called_a_guess() -> None:
    assert "token counts are a guess: one per chunk" in verdict_words(summaries.partial())


def test_token_counts_guessed_in_some_streams_are_counted() -> None:
    summary = summaries.smooth()
    summary["tokens"] = {"source": "mixed", "sources": {"chunks": 3, "chunk_usage": 97}}
    assert "token counts of 3 streams are a guess: one per chunk" in verdict_words(summary)


def test_what_the_client_added_is_one_bound_where_the_worst_is_no_worse() -> None:
    summary = summaries.smooth()
    summary["instrument"]["error_us"] = {"p50": 1.0, "p99": 20.0, "max": 20.0}
    assert verdict_words(summary)[-1] == (
        "99 % of gaps are within 0.02 ms of the truth (calibrated floor included)"
    )


def test_the_headline_gives_the_median_with_its_interval() -> None:
    assert headline(summaries.smooth()) == (
        "Smooth. ITL is 10.0 ms at the median (95 % interval 9.90–10.2), 11.2 ms at p99."
    )


def test_the_headline_of_bursts_gives_the_mean_since_the_median_is_nothing() -> None:
    assert "ITL averages 9.70 ms (0 ms at the median)" in headline(summaries.bursty())


def test_answers_of_one_token_have_no_gap() -> None:
    summary = summaries.smooth()
    summary["itl_ms"] = {"n": 0}
    assert headline(summary).startswith("No gaps to measure")
