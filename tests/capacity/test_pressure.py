"""Pressure: how far each condition of an SLO is from its limit in one run."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.capacity.pressure import MOST_PRESSURE, Judged, judge, with_implied, worst
from legato.errors import UsageError
from legato.expressions import parse
from legato.recording import CONTENT, HAS_CHOICES, Recording, Stream

MS = 1_000_000
SECOND = 1_000 * MS


def made(gap_ms: float, streams: int = 20, failed: int = 0, tokens: int = 30) -> Recording:
    """Streams one after another, a constant gap each."""
    rows = []
    for number in range(streams):
        sent_ns = SECOND * number
        n = 0 if number < failed else tokens
        rows.append(
            Stream(
                stream_id=number,
                status="http_error" if number < failed else "ok",
                scheduled_ns=sent_ns,
                sent_ns=sent_ns,
                ended_ns=sent_ns + SECOND // 2,
                arrival_ns=[round((50 + gap_ms * i) * MS) for i in range(n)],
                lag_ns=[0] * n,
                early_ns=[0] * n,
                read_index=list(range(n)),
                segments=[1] * n,
                tokens=[1] * n,
                kind=[CONTENT] * n,
                flags=[HAS_CHOICES] * n,
            )
        )
    return Recording.from_streams(rows, {})


def judged(recording: Recording, slo: str) -> Judged:
    (one,) = judge(recording, parse(slo, relative=False))
    return one


@settings(max_examples=25, deadline=None)
@given(st.integers(min_value=1, max_value=200), st.integers(min_value=1, max_value=200))
def test_pressure_of_a_time_is_the_log_of_figure_over_limit(gap_ms: int, limit_ms: int) -> None:
    one = judged(made(gap_ms, streams=6, tokens=12), f"itl.p50<={limit_ms}ms")
    assert one.pressure == pytest.approx(math.log(gap_ms / limit_ms), abs=1e-9)


@pytest.mark.parametrize(
    ("slo", "holds"),
    [
        ("itl.p50<20ms", True),
        ("itl.p50<5ms", False),
        ("ttft.p50<1s", True),
        ("error<1%", True),
        ("fluidity>0.9", True),
        ("tps.stream>50", True),
        ("tps.stream>500", False),
    ],
)
def test_pressure_is_above_zero_exactly_where_the_condition_fails(slo: str, holds: bool) -> None:
    assert (judged(made(10), slo).pressure <= 0) is holds


def test_failed_streams_press_on_the_error_condition() -> None:
    few, many = (judged(made(10, failed=n), "error<1%").pressure for n in (1, 10))
    assert 0 < few < many


def test_a_tail_that_a_summary_would_withhold_is_judged_and_marked() -> None:
    one = judged(made(10), "ttft.p99<1s")
    assert one.few
    assert one.estimate is not None
    assert one.estimate.value == pytest.approx(50)
    assert one.pressure < 0


def test_a_run_without_a_single_answer_presses_hardest() -> None:
    assert judged(made(10, failed=20), "itl.p99<50ms").pressure == MOST_PRESSURE


def test_the_condition_that_fares_worst_decides() -> None:
    recording = made(10)
    conditions = parse("itl.p50<9ms, ttft.p50<1s", relative=False)
    assert worst(judge(recording, conditions)).condition == conditions[0]


def test_every_slo_has_a_condition_on_errors() -> None:
    plain, own = (with_implied(parse(slo, relative=False)) for slo in ("itl.p99<50ms", "error<5%"))
    assert [str(one.figure) for one in plain] == ["itl.p99", "error"]
    assert len(own) == 1


@pytest.mark.parametrize(
    ("slo", "said"),
    [
        ("itl.p99<0ms", "can never hold"),
        ("tps.system>100", "grows with load"),
        ("goodput>3", "grows with load"),
    ],
)
def test_what_no_search_can_answer_is_refused(slo: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        with_implied(parse(slo, relative=False))
