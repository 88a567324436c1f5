"""The change of a figure: differences, ratios, their intervals, p values and their correction."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.compare.change import changed, corrected, holm
from legato.compare.estimate import Estimate, Figure
from legato.compare.student import point_975, two_sided_p

P50 = Figure("itl", "p50")
ERROR = Figure("error")


def estimates() -> st.SearchStrategy[Estimate]:
    return st.builds(
        lambda value, below, above, df: Estimate(value, value / below, value * above, df),
        st.floats(0.1, 1e4),
        st.floats(1.001, 2),
        st.floats(1.001, 2),
        st.floats(4, 1000),
    )


def values(*numbers: float) -> list[Estimate]:
    return [Estimate(number) for number in numbers]


# --- one run a side


def test_the_ratio_of_two_quantiles_combines_both_intervals_on_the_log_scale() -> None:
    found = changed(P50, [Estimate(10, 9, 11, 1e9)], [Estimate(20, 18, 22, 1e9)])
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(2)
    below, above = math.log(10 / 9), math.log(11 / 10)
    reach = math.hypot(below, above)
    assert found.ratio.low == pytest.approx(2 * math.exp(-reach))
    assert found.ratio.high == pytest.approx(2 * math.exp(reach))
    assert found.difference.low == pytest.approx(10 - math.hypot(2, 1))
    assert found.difference.high == pytest.approx(10 + math.hypot(2, 1))


@given(estimates(), estimates())
def test_p_is_below_5_percent_exactly_where_the_interval_leaves_out_one(
    a: Estimate, b: Estimate
) -> None:
    found = changed(P50, [a], [b])
    assert found.ratio is not None
    assert found.ratio.low is not None
    assert found.ratio.high is not None
    assert found.p is not None
    nearest = min(abs(math.log(found.ratio.low)), abs(math.log(found.ratio.high)))
    if nearest > 1e-6:
        assert (found.p < 0.05) == (not found.ratio.low <= 1 <= found.ratio.high)


@given(estimates(), estimates())
def test_swapping_the_sides_inverts_the_ratio(a: Estimate, b: Estimate) -> None:
    there, back = changed(P50, [a], [b]), changed(P50, [b], [a])
    assert there.ratio is not None
    assert back.ratio is not None
    assert there.ratio.value == pytest.approx(1 / back.ratio.value)
    assert there.ratio.low == pytest.approx(1 / (back.ratio.high or 0))
    assert there.p == pytest.approx(back.p)


def test_without_an_interval_a_change_is_not_judged() -> None:
    found = changed(P50, values(10), values(20))
    assert found.p is None
    assert not corrected([found])[0].shown


def test_nothing_varied_and_nothing_changed_is_no_test() -> None:
    assert changed(ERROR, [Estimate(0, 0, 0)], [Estimate(0, 0, 0)]).p is None


def test_a_baseline_of_zero_has_a_difference_but_no_ratio() -> None:
    found = changed(ERROR, [Estimate(0, 0, 0)], [Estimate(0.1, 0.05, 0.15)])
    assert found.ratio is None
    assert found.p is not None
    assert found.p < 0.05


def test_a_side_with_few_time_blocks_needs_more_to_convince() -> None:
    many = changed(P50, [Estimate(10, 9, 11, 1000)], [Estimate(14, 12, 16, 1000)])
    few = changed(P50, [Estimate(10, 9, 11, 4)], [Estimate(14, 12, 16, 4)])
    assert many.p is not None
    assert few.p is not None
    assert many.p < few.p < 0.05


# --- several runs a side: checked against the textbook's formulas


def test_runs_are_compared_by_welchs_t() -> None:
    a, b = [10.0, 10.4, 9.8, 10.1], [11.0, 11.6, 11.1]
    found = changed(P50, values(*a), values(*b))
    logs_a, logs_b = [math.log(x) for x in a], [math.log(x) for x in b]
    part_a, part_b = statistics.variance(logs_a) / 4, statistics.variance(logs_b) / 3
    df = (part_a + part_b) ** 2 / (part_a**2 / 3 + part_b**2 / 2)
    centre = math.log(statistics.fmean(b) / statistics.fmean(a))
    assert found.basis == "runs"
    assert found.p == pytest.approx(two_sided_p(centre / math.sqrt(part_a + part_b), df))


def test_what_the_runs_say_of_themselves_does_not_narrow_the_interval() -> None:
    sure = [Estimate(v, v * 0.999, v * 1.001) for v in (10.0, 12.0)]
    found = changed(P50, sure, [Estimate(v, v * 0.999, v * 1.001) for v in (12.0, 14.0)])
    assert found.p is not None
    assert found.p > 0.05


def test_runs_taken_in_turns_share_a_drift_that_then_cancels() -> None:
    a, b = [10.0, 12.0, 15.0, 18.0], [10.5, 12.7, 15.7, 18.9]
    apart, paired = (changed(P50, values(*a), values(*b), paired=p) for p in (False, True))
    assert apart.p is not None
    assert paired.p is not None
    assert paired.basis == "pairs"
    assert paired.p < 0.001 < 0.5 < apart.p


def test_one_run_against_several_is_taken_to_vary_as_they_do() -> None:
    found = changed(P50, values(10.0), values(10.0, 11.0, 9.0))
    assert found.ratio is not None
    error = statistics.stdev([math.log(10), math.log(11), math.log(9)]) * math.sqrt(1 + 1 / 3)
    assert found.ratio.high == pytest.approx(math.exp(point_975(2) * error))


# --- correction


def test_holm_corrects_as_in_the_textbook() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), max_size=12))
def test_correction_keeps_the_order_and_never_helps(ps: list[float]) -> None:
    adjusted = holm(ps)
    assert all(p <= q <= 1 for p, q in zip(ps, adjusted, strict=True))
    assert [q for _, q in sorted(zip(ps, adjusted, strict=True))] == sorted(adjusted)
    if ps:
        assert min(adjusted) == pytest.approx(min(1.0, len(ps) * min(ps)))


# --- Student's t


@pytest.mark.parametrize(
    ("df", "point"), [(1, 12.7062), (2, 4.30265), (4, 2.77645), (10, 2.22814), (120, 1.97993)]
)
def test_students_t_is_that_of_the_tables(df: float, point: float) -> None:
    assert point_975(df) == pytest.approx(point, rel=1e-5)
    assert two_sided_p(point, df) == pytest.approx(0.05, rel=1e-4)


def test_with_many_degrees_of_freedom_it_is_the_normal_law() -> None:
    assert two_sided_p(2.5, 1e7) == pytest.approx(two_sided_p(2.5), rel=1e-4)
