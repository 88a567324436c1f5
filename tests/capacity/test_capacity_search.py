"""The search finds a known limit in few runs, and its interval covers it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_servers import affine, cliff, noisy

from legato.capacity.edge import Measurement, find_edge
from legato.capacity.search import Answer, Scope, next_level, search

SEARCHES = 20


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 12, 31, 60, 100, 333, 1000])
def test_a_gap_that_grows_with_open_streams_gives_the_exact_limit(limit: int) -> None:
    found = search(affine(limit + 1e-6), Scope())
    assert found.level == limit
    assert found.low <= limit <= found.high
    assert len(found.runs) <= 12
    assert found.ending == "settled"


@settings(max_examples=40, deadline=None)
@given(limit=st.floats(min_value=2, max_value=3000))
def test_any_limit_is_found_within_five_per_cent_in_twelve_runs(limit: float) -> None:
    found = search(affine(limit), Scope())
    assert abs(found.level - limit) <= max(0.05 * limit, 1.0)
    assert len(found.runs) <= 12


@settings(max_examples=40, deadline=None)
@given(limit=st.integers(min_value=1, max_value=600))
def test_a_cliff_is_found_from_the_side_that_holds(limit: int) -> None:
    found = search(cliff(limit), Scope())
    assert limit - max(0.05 * limit, 1) <= found.level <= limit
    assert found.low <= limit <= found.high


def _covered(answers: list[Answer], limit: int) -> int:
    return sum(answer.low <= limit <= answer.high for answer in answers)


def test_lognormal_gaps_are_settled_near_the_truth() -> None:
    answers = [search(noisy(60, 0.99, seed), Scope()) for seed in range(SEARCHES)]
    assert _covered(answers, 60) >= SEARCHES - 2
    assert all(abs(answer.level - 60) <= 4 for answer in answers)
    assert all(len(answer.runs) <= 12 for answer in answers)


def test_stalls_that_hit_all_streams_widen_the_interval_instead_of_missing_the_truth() -> None:
    answers = [search(noisy(60, 0.99, s, stalls_per_s=1.5), Scope()) for s in range(SEARCHES)]
    assert _covered(answers, 60) >= SEARCHES - 2


def test_runs_that_differ_from_each_other_widen_the_interval() -> None:
    """Each run's own error is a fifth of what runs differ by: only repeats can tell."""
    answers = [search(noisy(60, 0.5, seed, between=0.03), Scope()) for seed in range(SEARCHES)]
    assert _covered(answers, 60) >= SEARCHES - 2


def test_rates_are_searched_between_whole_numbers() -> None:
    def queue(rate: float) -> Measurement:
        return Measurement(rate, math.log(0.1 / (1 - min(0.36 * rate, 0.999))), 0.01)

    found = search(queue, Scope(least=0.1, most=100, whole=False))
    assert found.low <= 2.5 <= found.high
    assert found.level == pytest.approx(2.5, rel=0.05)


def test_a_lowest_level_that_fails_is_tried_again_before_it_is_the_answer() -> None:
    found = search(lambda level: Measurement(level, 1.0), Scope())
    assert (found.ending, found.level, len(found.runs)) == ("none", 0.0, 2)


def test_a_limit_beyond_the_highest_level_allowed_is_a_lower_bound() -> None:
    found = search(lambda level: Measurement(level, -1.0), Scope(most=100))
    assert (found.ending, found.level, found.high) == ("most", 100.0, math.inf)


def test_a_client_that_gives_way_leaves_a_lower_bound() -> None:
    found = search(lambda level: Measurement(level, -1.0, held=level <= 50), Scope())
    assert found.ending == "client"
    assert 50 / 1.3 <= found.level <= 50
    assert found.high == math.inf


def test_a_run_the_client_lost_once_is_run_again() -> None:
    runs = [Measurement(1, -1.0), Measurement(4, -1.0, held=False)]
    assert next_level(runs, Scope()) == 4
    held = [*runs, Measurement(4, -1.0)]
    assert next_level(held, Scope()) == 16


def test_an_interrupted_search_answers_with_what_it_knows() -> None:
    runs = iter([Measurement(1, -1.0), Measurement(4, -0.5)])
    found = search(lambda _: next(runs, None), Scope())
    assert (found.ending, found.level, found.high) == ("stopped", 4.0, math.inf)


def test_the_budget_of_runs_is_never_exceeded() -> None:
    answers = [search(noisy(60, 0.99, 1, stalls_per_s=3), Scope(runs=n)) for n in (1, 3, 6)]
    assert [len(answer.runs) for answer in answers] == [1, 3, 6]


def test_there_is_no_edge_until_a_run_passed_and_a_run_failed() -> None:
    assert find_edge([Measurement(1, -1.0), Measurement(2, -0.1)]) is None
    assert find_edge([Measurement(1, 0.1)]) is None


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(min_value=1, max_value=200),
            st.floats(min_value=-5, max_value=5),
            st.floats(min_value=0, max_value=1),
        ),
        min_size=2,
        max_size=12,
    )
)
def test_an_edge_lies_in_its_interval_whatever_the_runs(
    runs: list[tuple[int, float, float]],
) -> None:
    edge = find_edge([Measurement(*run) for run in runs])
    if edge is not None:
        assert 0 <= edge.low <= edge.level <= edge.high
        assert edge.kept <= edge.low
        assert edge.high <= edge.broken
