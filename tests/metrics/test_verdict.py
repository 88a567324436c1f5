"""The verdict's thresholds, from both sides, and what is said when one is crossed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from legato.metrics.verdict import Evidence, judge

MS = 1_000_000.0

GOOD = Evidence(
    merged_share=0.0,
    error_p99_ns=0.02 * MS,
    itl_p50_ns=10 * MS,
    concurrency_asked=100,
    concurrency_reached=100.0,
    slip_p99_ns=0.1 * MS,
    ttft_p50_ns=50 * MS,
    cpu_share=0.4,
)


def test_a_good_run_is_valid_and_says_nothing() -> None:
    assert judge(GOOD) == ("valid", [])


def test_a_run_that_tells_nothing_is_not_accused() -> None:
    assert judge(Evidence()) == ("valid", [])


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"merged_share": 0.03}, "valid"),
        ({"merged_share": 0.0301}, "degraded"),
        ({"merged_share": 0.10}, "degraded"),
        ({"merged_share": 0.1001}, "invalid"),
        ({"error_p99_ns": 1.0 * MS}, "valid"),
        ({"error_p99_ns": 1.001 * MS}, "degraded"),
        # bursts: half the gaps are nothing, so the mean is what an error is held against
        ({"itl_p50_ns": 0.0, "itl_mean_ns": 10 * MS}, "valid"),
        ({"itl_p50_ns": 0.0, "itl_mean_ns": 0.1 * MS}, "degraded"),
        ({"concurrency_reached": 98.0}, "valid"),
        ({"concurrency_reached": 97.9}, "invalid"),
        ({"slip_p99_ns": 0.5 * MS}, "valid"),
        ({"slip_p99_ns": 0.501 * MS}, "invalid"),
        ({"cpu_share": 0.9}, "valid"),
        ({"cpu_share": 0.91}, "degraded"),
        ({"clock_steps": 1}, "degraded"),
        ({"streams_lost": 2, "workers_lost": 1}, "degraded"),
    ],
)
def test_each_threshold_decides(change: dict[str, Any], verdict: str) -> None:
    found, reasons = judge(replace(GOOD, **change))
    assert found == verdict
    assert len(reasons) == (verdict != "valid")


def test_a_reason_names_the_figure_the_limit_and_what_to_do() -> None:
    _, reasons = judge(replace(GOOD, merged_share=0.124))
    assert reasons == [
        "the client merged 12.4 % of chunks (limit 10 %): it was the bottleneck; "
        "use more workers, fewer streams or an idle machine"
    ]


def test_the_grave_reasons_come_first() -> None:
    verdict, reasons = judge(replace(GOOD, cpu_share=0.99, concurrency_reached=50.0))
    assert verdict == "invalid"
    assert reasons[0].startswith("50.0 streams were open on average where 100 were asked for")
    assert reasons[1].startswith("the busiest worker used 99 % of a core")


def test_slip_counts_in_an_open_loop_only() -> None:
    assert judge(replace(GOOD, slip_p99_ns=None))[0] == "valid"
