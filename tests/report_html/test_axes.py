"""Log axes hold their data and have readable ticks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.report.html import axes

times_ms = st.floats(0, 1e6)


@given(times_ms, times_ms)
def test_a_domain_holds_both_ends_and_is_never_flat(one: float, other: float) -> None:
    low, high = axes.domain_ms(min(one, other), max(one, other))
    for time_ms in (one, other):
        assert low <= axes.drawn(time_ms) <= high * (1 + 1e-12)
    assert high / low >= axes.MIN_RATIO * 0.999


@given(times_ms, times_ms)
def test_ticks_are_few_ascending_and_inside(one: float, other: float) -> None:
    low, high = axes.domain_ms(min(one, other), max(one, other))
    ticks = axes.ticks(low, high)
    assert 1 <= len(ticks) <= 12
    assert ticks == sorted(set(ticks))
    assert all(low * (1 - 1e-6) <= tick <= high * (1 + 1e-6) for tick in ticks)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (9.0, 1100.0, [10, 20, 50, 100, 200, 500, 1000]),
        (9.4, 10.7, [9.4, 9.6, 9.8, 10.0, 10.2, 10.4, 10.6]),
        (0.01, 50.0, [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30]),
        (0.01, 100_000.0, [0.01, 0.1, 1, 10, 100, 1000, 10_000, 100_000]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert axes.ticks(low, high) == expected


def test_no_time_stands_at_the_floor_of_a_log_axis() -> None:
    assert axes.drawn(0.0) == axes.FLOOR_MS
    assert axes.domain_ms(0.0, 40.0)[0] == axes.FLOOR_MS
