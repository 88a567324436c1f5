"""The summary as a whole: its keys, which streams count where, and recordings with little."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_streams import recording, steady, stream

from legato.metrics.summary import summarise
from legato.recording import CONTENT, DONE, KINDS, ROLE, STATUSES, TOKEN_SOURCES, Stream

KEYS = {
    *("schema", "run", "streams", "failures", "tokens", "tokens_per_chunk"),
    *("itl_ms", "itl_zeros_ms", "chunk_gap_ms", "tpot_ms", "tpot_incl_ms", "ttft_ms"),
    *("ttft_intended_ms", "ttft_any_ms", "decode_ms", "e2e_ms"),
    *("by_position", "by_context", "by_in_flight", "cold", "tps", "goodput", "smoothness"),
    *("dialects", "instrument", "histogram_ms"),
}
DISTRIBUTION = {"n", "mean", "std", "p50", "p90", "p95", "p99", "p999", "max", "ci95"}
DISTRIBUTIONS = [key for key in sorted(KEYS) if key.endswith("_ms") and key != "histogram_ms"]


def summary(*streams: Stream, **meta: Any) -> dict[str, Any]:
    found = summarise(recording(*streams, **meta))
    json.dumps(found, allow_nan=False)
    return found


@st.composite
def any_stream(draw: st.DrawFn) -> Stream:
    n = draw(st.integers(0, 6))
    never_sent: dict[str, Any] = {} if n or draw(st.booleans()) else {"sent_ns": None}
    return stream(
        sorted(draw(st.lists(st.floats(0, 1e5), min_size=n, max_size=n))),
        tokens=draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)),
        kind=draw(st.lists(st.integers(0, len(KINDS) - 1), min_size=n, max_size=n)) or None,
        flags=draw(st.lists(st.integers(0, 31), min_size=n, max_size=n)) or None,
        reads=sorted(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))) or None,
        early_ms=draw(st.lists(st.floats(0, 10), min_size=n, max_size=n)) or None,
        start_ms=draw(st.floats(0, 1e5)),
        status=draw(st.sampled_from(STATUSES)),
        phase=draw(st.sampled_from(["warmup", "steady", "cooldown"])),
        token_source=draw(st.sampled_from(TOKEN_SOURCES)),
        prompt_tokens=draw(st.none() | st.integers(0, 1000)),
        reused=draw(st.booleans()),
        **never_sent,
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(any_stream(), max_size=6), st.sampled_from(["open", "closed", None]))
def test_any_recording_has_every_key_and_is_json(streams: list[Stream], mode: str | None) -> None:
    found = summary(*streams, settings={"mode": mode, "concurrency": 2, "rate": 3.0})
    assert set(found) == KEYS
    assert all(set(found[key]) == DISTRIBUTION for key in DISTRIBUTIONS)


def test_a_recording_without_streams_is_all_nulls() -> None:
    found = summary()
    assert found["streams"]["total"] == 0
    assert found["itl_ms"]["mean"] is None
    assert found["tps"]["system"] is None
    assert found["instrument"]["error_us"] == {"p50": None, "p99": None, "max": None}
    assert found["histogram_ms"] == {"edges": [], "counts": []}


def test_three_tokens_an_event_are_told_apart_from_three_events() -> None:
    arrivals = [50 + 30 * i for i in range(40)]
    found = summary(*[stream(arrivals, tokens=[3] * 40) for _ in range(8)])
    assert found["itl_ms"]["p50"] == 10
    assert found["chunk_gap_ms"]["p50"] == 30
    assert found["itl_zeros_ms"]["p50"] == 0
    assert found["itl_zeros_ms"]["mean"] == pytest.approx(10)
    assert found["tokens_per_chunk"]["mean"] == 3
    assert found["itl_ms"]["n"] == 8 * (120 - 3)


def test_tpot_divides_by_all_tokens_but_one_and_its_variant_by_all() -> None:
    found = summary(stream([50, 80, 110], tokens=[3, 3, 3]))
    assert found["tpot_ms"]["mean"] == pytest.approx(60 / 8)
    assert found["tpot_incl_ms"]["mean"] == pytest.approx(110 / 9)
    assert found["decode_ms"]["mean"] == 60
    assert found["e2e_ms"]["mean"] == 110


def test_a_single_token_has_no_tpot() -> None:
    assert summary(stream([50]))["tpot_ms"]["n"] == 0


def test_ttft_is_told_from_the_send_from_the_schedule_and_to_any_chunk() -> None:
    made = stream([5, 50, 60], tokens=[0, 1, 1], kind=[ROLE, CONTENT, CONTENT], late_ms=7)
    found = summary(made)
    assert found["ttft_ms"]["mean"] == 50
    assert found["ttft_intended_ms"]["mean"] == 57
    assert found["ttft_any_ms"]["mean"] == 5


def test_a_cut_stream_keeps_its_gaps_and_its_first_token_but_has_no_end() -> None:
    found = summary(stream([50, 60]), stream([90, 600, 700], status="timeout"))
    assert found["itl_ms"]["n"] == 3
    assert found["itl_ms"]["max"] == 510
    assert found["ttft_ms"]["n"] == 2
    assert found["e2e_ms"]["n"] == found["tpot_ms"]["n"] == found["decode_ms"]["n"] == 1


def test_warm_up_streams_count_nowhere_and_the_drain_counts() -> None:
    found = summary(
        stream([500, 900], phase="warmup"), stream([50, 60]), stream([50, 70], phase="cooldown")
    )
    assert found["streams"]["total"] == 2
    assert found["itl_ms"]["n"] == 2
    assert found["tokens"]["output"] == 4
    assert found["run"]["warmup_streams"] == 1


def test_an_endpoint_that_does_not_stream_has_no_latencies() -> None:
    found = summary(stream([900, 900, 900], status="not_streaming"))
    assert found["streams"]["not_streaming"] == 1
    assert found["itl_ms"]["n"] == found["ttft_ms"]["n"] == found["ttft_any_ms"]["n"] == 0


def test_streams_are_counted_by_how_they_ended() -> None:
    statuses = ["ok", "ok", "http_error", "timeout", "protocol_error", "aborted", "not_streaming"]
    found = summary(*[stream([], status=status) for status in statuses])["streams"]
    ends = {"ok": 2, "failed": 3, "aborted": 1, "not_streaming": 1}
    assert {name: found[name] for name in ends} == ends
    assert found["total"] == sum(ends.values())


def test_failures_are_told_with_the_first_message_of_each_kind() -> None:
    found = summary(
        stream([], status="timeout", error="no byte within 5 s"),
        stream([], status="http_error", http_status=429, error="slow down"),
        stream([], status="http_error", http_status=429, error="slow down more"),
        stream([], status="http_error", http_status=500),
    )["failures"]
    assert found == [
        {"status": "http_error", "http_status": 429, "count": 2, "error": "slow down"},
        {"status": "timeout", "http_status": None, "count": 1, "error": "no byte within 5 s"},
        {"status": "http_error", "http_status": 500, "count": 1, "error": None},
    ]


def test_the_token_source_is_named_or_said_to_be_mixed() -> None:
    one = stream([50, 60], token_source="chunk_usage")
    other = stream([50, 60], token_source="chunks")
    assert summary(one, one)["tokens"]["source"] == "chunk_usage"
    mixed = summary(one, one, other)["tokens"]
    assert mixed["source"] == "mixed"
    assert mixed["sources"] == {"chunk_usage": 2, "chunks": 1}


def test_quantiles_carry_intervals_where_they_are_shown() -> None:
    found = summary(*steady(20, n_tokens=60))
    assert found["itl_ms"]["ci95"]["p99"] == [10, 10]
    assert found["itl_ms"]["p999"] is None
    assert found["ttft_ms"]["p90"] is None
    assert found["ttft_ms"]["ci95"]["p90"] is None


def test_fresh_connections_are_told_apart_from_kept_ones() -> None:
    found = summary(
        stream([200, 210], phase="warmup"),
        stream([90, 100], start_ms=300),
        stream([50, 60], start_ms=400, reused=True),
        stream([70, 80], start_ms=9000, reused=True, idle_before_ns=5_000_000_000),
    )["cold"]
    assert found["n"] == 1
    assert found["ttft_ms"]["p50"] == 90
    assert found["warm_ttft_ms"]["p50"] == 50
    assert found["after_idle_ttft_ms"]["p50"] == 70
    assert found["first_stream_ttft_ms"] == 200


def test_the_run_says_what_was_asked_and_what_was_lost() -> None:
    found = summary(
        *steady(2),
        partial=True,
        settings={"concurrency": 2, "cache_friendly": False},
        load={"started_ns": 0, "ended_ns": 2_500_000_000, "lost_streams": 3, "workers_lost": 1},
    )
    assert found["run"]["partial"] is True
    assert found["run"]["duration_s"] == 2.5
    assert found["run"]["lost_streams"] == 3
    assert found["run"]["salted"] is True
    assert found["instrument"]["verdict"] == "degraded"


def test_a_late_client_makes_the_run_invalid_and_says_why() -> None:
    late = stream(
        [50 + 40 * (i // 4) for i in range(40)],
        reads=[i // 4 for i in range(40)],
        segments=[4] * 40,
        early_ms=[0 if i % 4 == 3 else 30 for i in range(40)],
    )
    found = summary(*[late for _ in range(6)])["instrument"]
    assert found["verdict"] == "invalid"
    assert "merged 75 % of chunks" in found["reasons"][0]


def test_a_server_that_writes_bursts_gives_a_valid_run_that_is_not_smooth() -> None:
    burst = stream([50 + 40 * (i // 4) for i in range(200)], reads=[i // 4 for i in range(200)])
    found = summary(*[burst for _ in range(6)])
    assert found["instrument"]["verdict"] == "valid"
    assert found["smoothness"]["burst_share"] == pytest.approx(0.75, abs=0.01)


def test_end_marks_hold_no_tokens() -> None:
    made = stream([50, 60, 61], tokens=[1, 1, 0], kind=[CONTENT, CONTENT, DONE])
    assert summary(made)["tokens"]["output"] == 2
