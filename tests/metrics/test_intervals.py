"""Intervals of quantiles: as wide as what really varies, be it gaps, streams or moments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from legato.metrics.gaps import Floats
from legato.metrics.intervals import Interval, quantile_intervals, student_975
from legato.metrics.samples import Samples, quantile, sort

STREAMS, TOKENS = 40, 250


def run(rng: np.random.Generator, *, pace: float = 0.0, stall_share: float = 0.0) -> Samples:
    """Streams open together for the whole run; a stalled step is long for all of them."""
    gap_ns = 1e7 * rng.lognormal(0, 0.3, (STREAMS, TOKENS))
    gap_ns *= rng.lognormal(0, pace, (STREAMS, 1))
    stalled = rng.random((1, TOKENS)) < stall_share
    gap_ns = gap_ns + np.where(stalled, rng.uniform(2e8, 5e8, (1, TOKENS)), 0.0)
    return sort(
        gap_ns.ravel(),
        np.ones(gap_ns.size, np.int64),
        np.repeat(np.arange(STREAMS), TOKENS),
        np.tile(np.arange(TOKENS) * 10_000_000, STREAMS),
    )


def width(interval: Interval | None) -> float:
    assert interval is not None
    return interval.high_ns - interval.low_ns


def blind_to_time(samples: Samples) -> Samples:
    return replace(samples, at_ns=samples.stream)


def covered(samples: list[Samples], p: float, truth_ns: float) -> int:
    found = [quantile_intervals(s, [p])[0] for s in samples]
    return sum(i is not None and i.low_ns <= truth_ns <= i.high_ns for i in found)


def truth_ns(p: float, **process: float) -> float:
    draws: list[Floats] = [run(np.random.default_rng(i), **process).value_ns for i in range(400)]
    return float(np.quantile(np.concatenate(draws), p))


@pytest.mark.parametrize("p", [0.5, 0.9, 0.99])
def test_independent_gaps_are_covered_about_19_times_in_20(p: float) -> None:
    runs = [run(np.random.default_rng(1000 + i)) for i in range(100)]
    assert 88 <= covered(runs, p, truth_ns(p)) <= 100


def test_stalls_that_hit_every_stream_at_once_are_covered_where_streams_alone_are_not() -> None:
    runs = [run(np.random.default_rng(1000 + i), stall_share=0.05) for i in range(100)]
    truth = truth_ns(0.99, stall_share=0.05)
    assert covered(runs, 0.99, truth) >= 85
    assert covered([blind_to_time(r) for r in runs], 0.99, truth) <= 50


def test_streams_of_different_pace_widen_the_interval() -> None:
    alike = quantile_intervals(run(np.random.default_rng(1)), [0.5])[0]
    different = quantile_intervals(run(np.random.default_rng(1), pace=0.2), [0.5])[0]
    assert width(different) > 3 * width(alike)


def test_an_interval_contains_its_quantile() -> None:
    samples = run(np.random.default_rng(2), pace=0.1, stall_share=0.03)
    for p, found in zip(
        (0.5, 0.9, 0.99), quantile_intervals(samples, [0.5, 0.9, 0.99]), strict=True
    ):
        value = quantile(samples, p)
        assert value is not None
        assert found is not None
        assert found.low_ns <= value <= found.high_ns


def test_equal_gaps_have_an_interval_of_no_width() -> None:
    samples = replace(
        run(np.random.default_rng(3)), value_ns=np.full(STREAMS * TOKENS, 10_000_000.0)
    )
    assert quantile_intervals(samples, [0.99]) == [Interval(1e7, 1e7)]


def test_a_weighted_sample_has_the_interval_of_the_expanded_one() -> None:
    single = run(np.random.default_rng(4), stall_share=0.02)
    doubled = sort(
        np.repeat(single.value_ns, 2),
        np.ones(2 * len(single), np.int64),
        np.repeat(single.stream, 2),
        np.repeat(single.at_ns, 2),
    )
    weight = np.full(len(single), 2)
    weighted = sort(single.value_ns, weight, single.stream, single.at_ns)
    assert quantile_intervals(weighted, [0.5, 0.99]) == quantile_intervals(doubled, [0.5, 0.99])


def test_fewer_than_five_streams_give_no_interval() -> None:
    samples = run(np.random.default_rng(5))
    four = sort(samples.value_ns, samples.weight, samples.stream % 4, samples.at_ns)
    assert quantile_intervals(four, [0.5]) == [None]


def test_a_pause_between_two_runs_does_not_cost_the_interval() -> None:
    samples = run(np.random.default_rng(6), stall_share=0.03)
    an_hour_later = np.where(samples.at_ns > 1_250_000_000, 3_600_000_000_000, 0)
    paused = replace(samples, at_ns=samples.at_ns + an_hour_later)
    assert quantile_intervals(paused, [0.9]) == quantile_intervals(samples, [0.9])


def test_samples_of_one_moment_give_no_interval() -> None:
    samples = run(np.random.default_rng(6))
    at_once = replace(samples, at_ns=np.zeros(len(samples), np.int64))
    assert quantile_intervals(at_once, [0.5]) == [None]


@pytest.mark.parametrize(("df", "expected"), [(4, 2.776), (10, 2.228), (29, 2.045), (1e9, 1.960)])
def test_student_points_match_the_tables(df: float, expected: float) -> None:
    assert student_975(df) == pytest.approx(expected, rel=3e-3)
