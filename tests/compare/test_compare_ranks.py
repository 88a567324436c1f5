"""The rank test and its effect sizes, against cases small enough to count by hand."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.compare import ranks
from legato.compare.ranks import effect, hodges_lehmann, mann_whitney
from legato.metrics.gaps import Floats


def floats(*values: float) -> Floats:
    return np.asarray(values, dtype=np.float64)


def samples() -> st.SearchStrategy[list[float]]:
    return st.lists(st.integers(0, 9).map(float), min_size=1, max_size=5)


def test_three_all_below_three_has_two_of_twenty_orderings() -> None:
    found = mann_whitney(floats(1, 2, 3), floats(4, 5, 6))
    assert found.p == pytest.approx(2 / 20)
    assert found.method == "exact"


def test_alike_sides_have_p_one() -> None:
    assert mann_whitney(floats(1, 2, 3), floats(1, 2, 3)).p == 1.0
    assert mann_whitney(np.ones(200), np.ones(200)).p == 1.0


def test_ties_share_a_rank() -> None:
    # Ranks 1.5 1.5 | 3 4: of six orderings only this one and its mirror image are as far out.
    assert mann_whitney(floats(1, 1), floats(2, 3)).p == pytest.approx(2 / 6)


def test_the_normal_law_takes_over_where_orderings_are_many_and_agrees_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = floats(*range(8)), floats(*(x + 2.5 for x in range(8)))
    exact = mann_whitney(a, b)
    monkeypatch.setattr(ranks, "MOST_ORDERINGS", 0)
    normal = mann_whitney(a, b)
    assert (exact.method, normal.method) == ("exact", "normal")
    assert normal.p == pytest.approx(exact.p, abs=0.01)


def test_many_values_with_ties_give_what_scipy_gives() -> None:
    a = np.arange(300.0) * 7 % 50
    b = np.arange(250.0) * 11 % 47 + 4
    # scipy.stats.mannwhitneyu(a, b).pvalue
    assert mann_whitney(a, b).p == pytest.approx(0.05790712903190383)


@given(samples(), samples())
def test_delta_and_shift_are_those_of_all_pairs(a: list[float], b: list[float]) -> None:
    pairs = [there - here for here, there in product(a, b)]
    found = effect(floats(*a), floats(*b), None)
    over = sum(d > 0 for d in pairs) - sum(d < 0 for d in pairs)
    assert found.delta == pytest.approx(over / len(pairs))
    assert found.shift == pytest.approx(float(np.median(pairs)))


@given(samples(), samples())
def test_swapping_the_sides_turns_the_sign(a: list[float], b: list[float]) -> None:
    there, back = effect(floats(*a), floats(*b), None), effect(floats(*b), floats(*a), None)
    assert there.delta == pytest.approx(-back.delta)
    assert there.shift == pytest.approx(-back.shift)
    assert mann_whitney(floats(*a), floats(*b)).p == pytest.approx(
        mann_whitney(floats(*b), floats(*a)).p
    )


def test_deltas_interval_holds_the_truth_about_95_times_in_100() -> None:
    rng = np.random.default_rng(3)
    truth = 2 * (0.5 * math.erfc(-0.5 / math.sqrt(2) / math.sqrt(2))) - 1

    def half_width(placed: Floats) -> float:
        return float(1.96 * placed.std(ddof=1) / math.sqrt(len(placed)))

    held = 0
    for _ in range(400):
        found = effect(rng.normal(0, 1, 60), rng.normal(0.5, 1, 60), (half_width, half_width))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_the_shift_of_many_values_is_taken_from_their_quantiles() -> None:
    rng = np.random.default_rng(1)
    a = rng.lognormal(0, 1, 5000)
    assert hodges_lehmann(a, a + 0.25) == pytest.approx(0.25, abs=1e-3)


@pytest.mark.parametrize(
    ("b", "word"), [([1, 2, 3, 4], "negligible"), ([2.5, 2.5, 2.5, 4], "small"), ([9] * 4, "large")]
)
def test_the_size_of_an_effect_has_a_word(b: list[float], word: str) -> None:
    assert effect(floats(1, 2, 3, 4), floats(*b), None).size == word
