"""ITL against position, context and streams in flight, and its histogram."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from made_streams import recording, steady, stream

from legato.metrics import samples
from legato.metrics.breakdown import by_doubling, by_half_doubling, histogram_ms
from legato.metrics.samples import Samples
from legato.metrics.summary import summarise


def made(values_ms: list[float], weights: list[int] | None = None) -> Samples:
    n = len(values_ms)
    return samples.sort(
        np.asarray(values_ms) * 1e6,
        np.asarray(weights or [1] * n, np.int64),
        np.arange(n) % 7,
        np.arange(n),
    )


def test_bins_double_and_hold_their_lower_edge() -> None:
    rows = by_doubling(made([10.0] * 5), np.array([1, 2, 3, 4, 9]))
    assert [(row["from"], row["to"], row["n"]) for row in rows] == [
        (1, 2, 1),
        (2, 4, 2),
        (4, 8, 1),
        (8, 16, 1),
    ]


def test_streams_in_flight_have_finer_bins() -> None:
    rows = by_half_doubling(made([10.0] * 3), np.array([2, 3, 6]))
    assert [(row["from"], row["to"]) for row in rows] == [(2, 3), (3, 4), (6, 8)]


def test_samples_without_a_key_are_left_out() -> None:
    assert by_doubling(made([10.0] * 3), np.array([0, 0, 0])) == []


def test_a_bin_withholds_quantiles_it_cannot_support() -> None:
    rows = by_doubling(made([10.0] * 19 + [20.0] * 25), np.array([1] * 19 + [2] * 25))
    assert [row["p50"] for row in rows] == [None, 20.0]


def test_itl_growing_with_position_shows() -> None:
    arrivals = np.cumsum([50] + [10] * 15 + [30] * 16).tolist()
    rows = summarise(recording(*[stream(arrivals) for _ in range(10)]))["by_position"]
    by_start = {row["from"]: row["p50"] for row in rows}
    assert by_start[8] == 10.0
    assert by_start[16] == 30.0


def test_context_counts_the_prompt() -> None:
    rows = summarise(recording(*steady(5, n_tokens=6, prompt_tokens=100)))["by_context"]
    assert [(row["from"], row["n"]) for row in rows] == [(64, 25)]


def test_without_a_prompt_length_there_is_no_context() -> None:
    assert summarise(recording(*steady(5)))["by_context"] == []


def test_itl_is_told_apart_by_the_streams_open_at_the_time() -> None:
    # One stream alone at 10 ms a token, then five at once at 40 ms.
    alone = [stream([10.0 * (i + 1) for i in range(30)], start_ms=2000 * j) for j in range(6)]
    busy = [stream([40.0 * (i + 1) for i in range(30)], start_ms=20_000) for _ in range(5)]
    rows = summarise(recording(*alone, *busy))["by_in_flight"]
    assert [(row["from"], row["to"], row["p50"]) for row in rows] == [(1, 2, 10.0), (4, 6, 40.0)]


@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.integers(1, 4)), min_size=1, max_size=50),
)
def test_every_token_gap_is_in_one_bin_of_the_histogram(pairs: list[tuple[float, int]]) -> None:
    found = histogram_ms(made([v for v, _ in pairs], [w for _, w in pairs]))
    assert sum(found["counts"]) == sum(w for _, w in pairs)
    assert len(found["edges"]) == len(found["counts"]) + 1
    assert found["edges"] == sorted(found["edges"])
    values = [v for v, _ in pairs]
    assert found["edges"][0] <= min(values) * (1 + 1e-12)
    assert found["edges"][-1] >= max(values) * (1 - 1e-12)


def test_a_histogram_puts_values_where_its_edges_say() -> None:
    found = histogram_ms(made([1.0] * 3 + [100.0] * 2))
    assert found["counts"][0] == 3
    assert found["counts"][-1] == 2
    assert sum(found["counts"]) == 5
