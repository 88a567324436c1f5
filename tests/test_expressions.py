"""Conditions: what is read, what is refused and how, and how summaries and streams are judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.errors import UsageError
from legato.expressions import (
    METRICS,
    RATES,
    SHARES,
    STATISTICS,
    TIMES,
    Condition,
    Outcome,
    evaluate,
    parse,
    parse_figure,
    streams_meeting,
)
from legato.metrics.summary import summarise
from legato.recording import CONTENT, Recording, Stream

MS = 1_000_000
EPOCH_NS = 1_700_000_000_000_000_000


def stream(ttft_ms: float, gaps_ms: Sequence[float], **fields: Any) -> Stream:
    """One token a chunk."""
    arrival_ns = (np.cumsum([ttft_ms, *gaps_ms]) * MS).round().astype(np.int64)
    n = len(arrival_ns)
    values: dict[str, Any] = {
        "stream_id": 0,
        "scheduled_ns": EPOCH_NS,
        "sent_ns": EPOCH_NS,
        "ended_ns": EPOCH_NS + int(arrival_ns[-1]),
        "status": "ok",
        "arrival_ns": arrival_ns,
        "lag_ns": [0] * n,
        "early_ns": [0] * n,
        "read_index": list(range(n)),
        "segments": [1] * n,
        "tokens": [1] * n,
        "kind": [CONTENT] * n,
        "flags": [0] * n,
    }
    return Stream(**(values | fields))


def recording(*streams: Stream) -> Recording:
    return Recording.from_streams(streams)


# --- reading


def test_the_documented_example_is_four_conditions() -> None:
    read = parse("itl.p99<50ms, ttft.p99<1s, error<0.1%, fluidity>=0.9", relative=False)
    assert [c.figure for c in read] == ["itl.p99", "ttft.p99", "error", "fluidity"]
    assert [c.op for c in read] == ["<", "<", "<", ">="]
    assert [c.limit for c in read] == [50.0, 1000.0, 0.001, 0.9]


@pytest.mark.parametrize(
    ("text", "limit"),
    [("itl.p50<50ms", 50), ("itl.p50<0.05s", 50), ("itl.p50<500us", 0.5), ("itl.p50<500µs", 0.5)],
)
def test_times_are_brought_to_milliseconds(text: str, limit: float) -> None:
    assert parse(text, relative=False)[0].limit == pytest.approx(limit)


def test_white_space_and_typographic_signs_do_not_matter() -> None:
    assert parse(" itl.p99 ≤ 50 ms ", relative=False) == parse("itl.p99<=50ms", relative=False)


def test_p99_9_is_p999() -> None:
    assert parse("itl.p99.9<1s", relative=False)[0].statistic == "p999"


def test_a_signed_value_is_relative_to_the_baseline() -> None:
    share, points, time, fall = parse(
        "itl.p99>+5%, error>+0.5pp, ttft.p50>+20ms, itl.p50>-10%", relative=True
    )
    assert (share.relation, share.limit) == ("change", 0.05)
    assert (points.relation, points.limit) == ("difference", 0.005)
    assert (time.relation, time.limit) == ("difference", 20.0)
    assert (fall.relation, fall.limit) == ("change", -0.1)


def _conditions() -> st.SearchStrategy[Condition]:
    number = st.floats(0, 1e6, allow_nan=False)
    ops = st.sampled_from(["<", "<=", ">", ">="])
    times = st.builds(
        Condition,
        st.sampled_from(TIMES),
        st.sampled_from(STATISTICS),
        ops,
        number,
        st.sampled_from(["us", "ms", "s"]),
        st.sampled_from(["value", "difference"]),
    )
    shares = st.builds(
        Condition, st.sampled_from(SHARES), st.none(), ops, st.floats(0, 1), st.sampled_from(["%"])
    )
    rates = st.builds(
        Condition, st.sampled_from(RATES), st.none(), ops, number, st.sampled_from(["", "/s"])
    )
    changes = st.builds(
        Condition,
        st.sampled_from(TIMES),
        st.sampled_from(STATISTICS),
        ops,
        st.floats(-99, 1e4),
        st.just("%"),
        st.just("change"),
    )
    return st.one_of(times, shares, rates, changes)


@given(_conditions())
def test_a_condition_reads_back_from_its_own_text(condition: Condition) -> None:
    assert parse(str(condition), relative=True) == [condition]


@given(st.text(max_size=40) | st.from_regex(r"[a-z.]{1,8}[<>=]{1,2}[+-]?[0-9.]{1,4}[a-z%]{0,2}"))
def test_any_text_is_read_or_refused_in_one_sentence(text: str) -> None:
    try:
        read = parse(text, relative=True)
    except UsageError as error:
        said = str(error)
    else:
        said = "; ".join(map(str, read))
    assert said
    assert "\n" not in said


REFUSED = {
    "nothing": ("", "position 1"),
    "a comma too many": ("itl.p99<50ms,", "position 14"),
    "an unknown metric": ("tbt.p99<50ms", "there are itl, itl_zeros"),
    "an unknown statistic": ("itl.p98<50ms", "mean, std, p50, p90, p95, p99, p999, max"),
    "a time without a statistic": ("itl<50ms", "itl needs a statistic"),
    "a share with a statistic": ("error.p99<1%", "write error"),
    "a bare tps": ("tps>5", "tps.stream or tps.system"),
    "a time without a unit": ("itl.p99<50", "itl needs a unit (position 11); write ms, s or us"),
    "a time in percent": ("itl.p99<50%", "'%' is no unit of itl (position 11)"),
    "a time in minutes": ("itl.p99<1min", "'min' is no unit of itl"),
    "a share in ms": ("error<5ms", "'ms' is no unit of error"),
    "a share over one": ("error<5", "at most 1 or 100%"),
    "a rate in ms": ("tps.system>5ms", "'ms' is no unit of tps.system"),
    "no operator": ("itl.p99 50ms", "is not a condition"),
    "an equals sign": ("itl.p99=50ms", "'=' at position 8 must be one of < <= > >="),
    "no number": ("itl.p99<fast", "is not a condition"),
    "a second bad part": ("itl.p99<50ms, foo<1", "position 15"),
    "an endless number": ("itl.p99<1e999ms", "too large"),
    "conditions that exclude each other": ("itl.p99<50ms,itl.p99>60ms", "never hold together"),
    "a relative value without a baseline": ("itl.p99>+5%", "there is none here"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named_with_its_place(case: str) -> None:
    text, words = REFUSED[case]
    with pytest.raises(UsageError, match=re.escape(words)):
        parse(text, relative=False)


def test_a_share_changes_by_points_or_by_percent_of_the_baseline_but_not_by_ms() -> None:
    with pytest.raises(UsageError, match=r"percentage points"):
        parse("error>+5ms", relative=True)


def test_a_range_is_not_a_contradiction() -> None:
    assert len(parse("itl.p50>=5ms, itl.p50<=5ms", relative=False)) == 2


def test_the_name_of_a_figure_alone_can_be_read() -> None:
    assert parse_figure("itl.p99") == ("itl", "p99")
    assert parse_figure("error") == ("error", None)
    with pytest.raises(UsageError, match="no metric"):
        parse_figure("speed")


# --- judging a summary


def outcome(text: str, summary: dict[str, Any]) -> Outcome:
    return evaluate(parse(text, relative=False), summary)[0]


SUMMARY = {
    "itl_ms": {"p50": 10.0, "p99": None, "ci95": {"p50": [9.0, 11.0], "p99": None}},
    "streams": {"total": 200, "ok": 199},
    "smoothness": {"fluidity_index": 0.95, "stall_ratio": 0.0, "burst_share": None},
    "tps": {"stream": 100.0, "system": None},
    "goodput": {"requests_per_s": 4.0},
}


def test_a_condition_holds_fails_or_is_unknown() -> None:
    assert outcome("itl.p50<50ms", SUMMARY).verdict == "holds"
    assert outcome("itl.p50<10ms", SUMMARY).verdict == "fails"
    assert outcome("itl.p99<50ms", SUMMARY).verdict == "unknown"


def test_an_outcome_carries_the_value_and_its_interval() -> None:
    found = outcome("itl.p50<50ms", SUMMARY)
    assert (found.value, found.interval) == (10.0, (9.0, 11.0))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("error<1%", 0.005),
        ("fluidity>0.9", 0.95),
        ("stall_ratio<1%", 0.0),
        ("burst_share<1%", None),
        ("tps.stream>1", 100.0),
        ("tps.system>1", None),
        ("goodput>1", 4.0),
    ],
)
def test_every_kind_of_figure_is_found_in_the_summary(text: str, value: float | None) -> None:
    assert outcome(text, SUMMARY).value == (None if value is None else pytest.approx(value))


def test_an_empty_summary_leaves_everything_unknown() -> None:
    for metric in METRICS:
        name = f"{metric}.p50<1ms" if metric in TIMES else f"{metric}<1"
        assert outcome(name, {}).verdict == "unknown"


# --- judging streams


def test_each_stream_is_judged_by_its_own_figures() -> None:
    made = recording(
        stream(50, [10] * 10),
        stream(500, [10] * 10),
        stream(50, [10] * 9 + [200]),
    )
    mask = streams_meeting(parse("itl.max<100ms,ttft.p99<100ms", relative=False), made)
    assert mask.tolist() == [True, False, False]
    assert streams_meeting(parse("itl.p50<20ms", relative=False), made).all()


def test_failed_and_warm_up_streams_never_meet() -> None:
    made = recording(
        stream(50, [10]), stream(50, [10], status="aborted"), stream(50, [10], phase="warmup")
    )
    assert streams_meeting([], made).tolist() == [True, False, False]


def test_a_stream_of_one_token_has_no_gap_that_could_be_too_long() -> None:
    made = recording(stream(50, []))
    assert streams_meeting(parse("itl.p99<1ms", relative=False), made).tolist() == [True]


def test_conditions_on_the_whole_run_say_nothing_of_a_stream() -> None:
    made = recording(stream(50, [10]))
    conditions = parse("error<0.1%,tps.system>1e6", relative=False)
    assert streams_meeting(conditions, made).tolist() == [True]


@given(
    st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=6), min_size=1, max_size=5),
    st.sampled_from(["p50", "p90", "p99", "mean", "std", "max"]),
    st.integers(0, 400),
)
def test_own_statistics_are_those_of_numpy(
    gaps_ms: list[list[int]], statistic: str, limit_ms: int
) -> None:
    made = recording(*(stream(10, [float(g) for g in gaps]) for gaps in gaps_ms))
    found = streams_meeting(parse(f"itl.{statistic}<={limit_ms}.5ms", relative=False), made)
    plain: dict[str, Callable[[list[int]], Any]] = {"mean": np.mean, "std": np.std, "max": np.max}
    own = [
        plain[statistic](gaps)
        if statistic in plain
        else np.quantile(gaps, int(statistic[1:]) / 100)
        for gaps in gaps_ms
    ]
    assert found.tolist() == [bool(value <= limit_ms + 0.5 + 1e-9) for value in own]


@pytest.mark.parametrize("metric", ["fluidity", "stall_ratio", "tps.stream", "e2e.p50", "tpot.p50"])
def test_of_one_stream_its_own_figure_is_the_summarys(metric: str) -> None:
    made = recording(stream(1500, [10, 20, 700, 10, 10, 30]))
    whole = summarise(made)
    value = {
        "fluidity": whole["smoothness"]["fluidity_index"],
        "stall_ratio": whole["smoothness"]["stall_ratio"],
        "tps.stream": whole["tps"]["stream"],
        "e2e.p50": whole["e2e_ms"]["mean"],
        "tpot.p50": whole["tpot_ms"]["mean"],
    }[metric]
    unit = "ms" if "." in metric and metric != "tps.stream" else ""
    above, below = value * 1.0001, value * 0.9999
    assert streams_meeting(parse(f"{metric}<{above}{unit}", relative=False), made).all()
    assert not streams_meeting(parse(f"{metric}<{below}{unit}", relative=False), made).any()
