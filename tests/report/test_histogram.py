from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from legato.report.histogram import HEIGHT, histogram_lines


@given(
    counts=st.lists(st.integers(0, 10**6), min_size=1, max_size=200).filter(any),
    width=st.integers(12, 130),
)
def test_a_histogram_fits_and_shows_every_bin_that_holds_something(
    counts: list[int], width: int
) -> None:
    edges = [1.1**k for k in range(len(counts) + 1)]
    *rows, _ = histogram_lines(edges, counts, width)
    assert len(rows) == HEIGHT
    assert all(len(row) <= width for row in rows)
    if len(counts) <= width - 2:
        columns = max(1, min(4, (width - 2) // len(counts)))
        lowest = rows[-1].ljust(len(counts) * columns)
        shown = [lowest[index * columns] != " " for index in range(len(counts))]
        assert shown == [count > 0 for count in counts]


def test_the_tallest_bar_reaches_the_top_and_half_of_it_the_middle() -> None:
    rows = histogram_lines([1.0, 2.0, 4.0], [100, 50], 20)
    assert rows[:4] == ["████", "████", "████████", "████████"]


def test_labels_stand_under_their_edges() -> None:
    edges = [10.0**k for k in range(-2, 7)]
    *_, labels = histogram_lines(edges, [1] * 8, 48)
    assert labels == "0.0100 ms   10.0 ms     10,000 ms"
