"""Weighted samples give exactly the figures of the sample they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_streams import gaps_of, stream

from legato.metrics import samples
from legato.metrics.samples import Samples

VALUES = st.lists(st.tuples(st.floats(0, 1e12), st.integers(1, 6)), min_size=1, max_size=60)
SHARES = st.floats(0, 1)


def made(values: list[float], weights: list[int] | None = None, streams: int = 1) -> Samples:
    n = len(values)
    return samples.sort(
        np.asarray(values, np.float64),
        np.asarray(weights or [1] * n, np.int64),
        np.arange(n) % streams,
        np.arange(n),
    )


@given(VALUES, SHARES)
def test_a_quantile_equals_numpys_of_the_expanded_sample(
    pairs: list[tuple[float, int]], p: float
) -> None:
    values, weights = [v for v, _ in pairs], [w for _, w in pairs]
    assert samples.quantile(made(values, weights), p) == np.quantile(np.repeat(values, weights), p)


@given(VALUES)
def test_mean_and_deviation_are_those_of_the_expanded_sample(
    pairs: list[tuple[float, int]],
) -> None:
    values, weights = [v for v, _ in pairs], [w for _, w in pairs]
    expanded = np.repeat(values, weights)
    assert samples.mean(made(values, weights)) == pytest.approx(expanded.mean(), rel=1e-12)
    assert samples.std(made(values, weights)) == pytest.approx(
        expanded.std(), rel=1e-6, abs=1e-7 * (1 + expanded.max())
    )


def test_an_empty_sample_has_no_figures() -> None:
    empty = made([])
    assert samples.quantile(empty, 0.5) is None
    assert samples.mean(empty) is None
    assert samples.std(empty) is None
    assert not samples.supported(empty, 0.5)


@pytest.mark.parametrize(
    ("p", "enough"), [(0.5, 20), (0.9, 92), (0.95, 182), (0.99, 902), (0.999, 9002)]
)
def test_a_quantile_needs_ten_samples_beyond_it(p: float, enough: int) -> None:
    assert samples.supported(made([float(i) for i in range(enough)], streams=5), p)
    few = made([float(i) for i in range(enough - 1)], streams=5)
    assert not samples.supported(few, p)
    value = samples.quantile(few, p)
    assert value is not None
    assert int((few.value_ns > value).sum()) == 9


def test_a_quantile_needs_five_streams_beyond_it() -> None:
    values = [float(i) for i in range(100)]
    assert samples.supported(made(values, streams=5), 0.9)
    assert not samples.supported(made(values, streams=4), 0.9)


def test_five_streams_below_a_quantile_do_not_support_it() -> None:
    values = np.arange(200.0)
    stream_of = np.where(values < 100, values.astype(np.int64) % 50, 0)
    one_slow = samples.sort(values, np.ones(200, np.int64), stream_of, np.arange(200))
    assert not samples.supported(one_slow, 0.9)


def test_streams_that_tie_with_a_quantile_support_it() -> None:
    assert samples.supported(made([10.0] * 100, streams=5), 0.9)


def test_tokens_of_one_chunk_count_each_for_the_support_of_a_quantile() -> None:
    assert samples.supported(made([10.0] * 10, [2] * 10, streams=5), 0.5)
    assert not samples.supported(made([10.0] * 10, [1] * 10, streams=5), 0.5)


def test_a_chunk_of_three_tokens_is_three_thirds_of_its_gap() -> None:
    itl = samples.spread_evenly(gaps_of(stream([50, 80, 100], tokens=[3, 3, 1])))
    expanded = np.repeat(itl.value_ns, itl.weight) / 1e6
    assert expanded.tolist() == [10, 10, 10, 20]


def test_the_other_reading_is_two_zeros_and_the_whole_gap() -> None:
    zeros = samples.zeros_then_gap(gaps_of(stream([50, 80, 100], tokens=[3, 3, 1])))
    assert (np.repeat(zeros.value_ns, zeros.weight) / 1e6).tolist() == [0, 0, 20, 30]


def test_a_chunk_gap_counts_once_whatever_it_holds() -> None:
    found = samples.chunk_gaps(gaps_of(stream([50, 80, 100], tokens=[3, 3, 1])))
    assert (found.value_ns / 1e6).tolist() == [20, 30]
    assert found.n == 2


@given(st.lists(st.integers(1, 5), min_size=2, max_size=20))
def test_all_readings_of_itl_have_one_sample_a_token_after_the_first_chunk(
    tokens: list[int],
) -> None:
    found = gaps_of(stream([50 + 10 * i for i in range(len(tokens))], tokens=tokens))
    expected = sum(tokens) - tokens[0]
    assert samples.spread_evenly(found).n == expected
    assert samples.zeros_then_gap(found).n == expected
