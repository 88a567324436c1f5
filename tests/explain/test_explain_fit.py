"""The fit under the attribution: long values do not bend it, and copies are not told apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.explain.clusters import clusters, half_width
from legato.explain.fit import fit, independent


def test_a_few_huge_waits_leave_the_slope_where_it_was() -> None:
    rng = np.random.default_rng(1)
    steps = np.arange(2000.0) % 100
    x = np.column_stack([np.ones(2000), steps])
    wait_ns = 1e7 + 3e4 * steps + rng.normal(0, 1e5, 2000)
    wait_ns[(steps > 80) & (rng.random(2000) < 0.1)] += 5e8
    found = fit(wait_ns, x, x, np.ones(2000, dtype=bool))
    assert found.beta == pytest.approx([1e7, 3e4], rel=0.02)


def test_an_instrument_undoes_what_a_long_wait_does_to_its_own_column() -> None:
    rng = np.random.default_rng(2)
    scatter_ns = rng.gamma(2.0, 5e6, 50_000)
    opening = (rng.random(50_000) < 0.2).astype(np.float64)
    # Each wait meets the more events the longer it is.
    inside = opening + rng.poisson(scatter_ns / 1e8)
    wait_ns = scatter_ns + 4e6 * inside
    ones, all_count = np.ones(50_000), np.ones(50_000, dtype=bool)
    x = np.column_stack([ones, inside])
    plain = fit(wait_ns, x, x, all_count)
    instrumented = fit(wait_ns, x, np.column_stack([ones, opening]), all_count)
    assert plain.beta[1] > 4.5e6
    assert instrumented.beta[1] == pytest.approx(4e6, rel=0.05)


def test_waits_that_do_not_count_have_no_say() -> None:
    x = np.ones((20, 1))
    wait_ns = np.full(20, 1e7)
    wait_ns[::2] = 9e7
    counts = np.arange(20) % 2 == 1
    assert fit(wait_ns, x, x, counts).beta == pytest.approx([1e7])


@given(st.floats(-5, 5).filter(lambda a: abs(a) > 0.01), st.floats(-100, 100))
def test_a_combination_of_earlier_columns_is_left_out(factor: float, shift: float) -> None:
    first, second = np.ones(200), np.arange(200.0)
    copy = factor * second + shift
    assert independent(np.column_stack([first, second, copy, second**2])) == [0, 1, 3]


def test_a_column_of_zeros_is_left_out() -> None:
    assert independent(np.column_stack([np.ones(9), np.zeros(9), np.arange(9.0)])) == [0, 2]


def test_fewer_than_five_streams_give_no_interval() -> None:
    at_ns = np.arange(400)
    four, five = (clusters(at_ns % n, at_ns) for n in (4, 5))
    assert half_width(np.ones(400), four) is None
    assert half_width(np.ones(400), five) is not None


def test_what_a_stretch_of_time_shares_widens_the_interval() -> None:
    rng = np.random.default_rng(3)
    at_ns = np.arange(30_000)
    within = clusters(at_ns % 50, at_ns)
    alone = half_width(rng.normal(0, 1, 30_000), within)
    shared = half_width(np.repeat(rng.normal(0, 1, 30), 1000), within)
    assert alone is not None
    assert shared is not None
    assert shared > 10 * alone


def test_a_figure_that_rests_on_few_clusters_has_a_wide_interval() -> None:
    rng = np.random.default_rng(4)
    at_ns = np.arange(3000)
    within = clusters(at_ns % 50, at_ns)
    influence, few = rng.normal(0, 1, 3000), np.zeros(3000)
    few[:150] = 1.0
    spread, narrow = half_width(influence, within, mass=few), half_width(influence, within)
    assert spread is not None
    assert narrow is not None
    assert spread > 2 * narrow
