from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.report.figures import (
    at_most_ms,
    between,
    in_one_unit,
    ms,
    percent,
    significant,
    within,
)


@pytest.mark.parametrize(
    ("time_ms", "shown"),
    [
        (0, "0 ms"),
        (10.0, "10.0 ms"),
        (9.999, "10.0 ms"),
        (123.4, "123 ms"),
        (999.4, "999 ms"),
        (999.6, "1.00 s"),
        (61_234, "61.2 s"),
        (1_234_567, "1,230 s"),
        (0.24, "0.240 ms"),
        (0.024, "24.0 µs"),
        (None, "–"),
    ],
)
def test_a_time_has_three_digits_and_its_unit(time_ms: float | None, shown: str) -> None:
    assert ms(time_ms) == shown


@given(st.floats(1e-4, 1e9))
def test_three_digits_are_within_half_a_percent_and_never_an_exponent(number: float) -> None:
    shown = significant(number)
    assert "e" not in shown
    assert abs(float(shown.replace(",", "")) - number) <= 0.00501 * number


@given(st.floats(1e-3, 1e6))
def test_an_upper_bound_is_never_rounded_below_its_figure(time_ms: float) -> None:
    bound = float(at_most_ms(time_ms).removesuffix(" ms").replace(",", ""))
    assert time_ms * (1 - 1e-6) <= bound <= time_ms * 1.11


@pytest.mark.parametrize(
    ("time_ms", "shown"),
    [
        (0.0, "0.001 ms"),
        (0.0004, "0.001 ms"),
        (0.02, "0.02 ms"),
        (0.0201, "0.021 ms"),
        (5.0, "5 ms"),
    ],
)
def test_an_upper_bound_has_no_more_digits_than_it_needs(time_ms: float, shown: str) -> None:
    assert at_most_ms(time_ms) == shown


@pytest.mark.parametrize(
    ("low", "high", "around", "shown"),
    [
        (9.9, 10.2, 10.0, "9.90–10.2"),
        (9.999, 10.001, 10.0, "±0.001 ms"),
        (9.9999, 10.0001, 10.0, "±0.001 ms"),
        (1270.0, 1270.0001, 1270.0, "±0.001 s"),
        (0.0, 0.0, 0.0, ""),
        (990.0, 1020.0, 1010.0, "0.990–1.02"),
    ],
)
def test_an_interval_is_in_the_unit_of_its_figure(
    low: float, high: float, around: float, shown: str
) -> None:
    assert within(low, high, around) == shown


def test_an_interval_is_as_wide_as_the_error_of_its_figure() -> None:
    assert within(9.999, 10.001, 10.0, error_ms=0.0035) == "±0.004 ms"
    assert within(26.0, 27.0, 26.8, error_ms=21.0) == "5.80–47.8"


@given(st.floats(1e-3, 1e5), st.floats(0, 0.004), st.floats(0, 0.1))
def test_a_reach_is_never_rounded_down(around: float, share: float, error: float) -> None:
    shown = within(around * (1 - share), around, around, error)
    if shown.startswith("±"):
        size = {"µs": 0.001, "ms": 1.0, "s": 1000.0}[shown.partition(" ")[2]]
        reach_ms = float(shown[1:].partition(" ")[0]) * size
        assert reach_ms >= max(around * share, error) * (1 - 1e-5)


@pytest.mark.parametrize(
    ("times_ms", "shown"),
    [
        ([0.0408, 0.191], ["0.0408 ms", "0.191 ms"]),
        ([0.0, 0.0433, 0.188], ["0 ms", "0.0433 ms", "0.188 ms"]),
        ([0.004, 0.02], ["4.00 µs", "20.0 µs"]),
        ([10.0, 1500.0], ["10.0 ms", "1,500 ms"]),
        ([200.0, 1500.0], ["0.200 s", "1.50 s"]),
        ([], []),
    ],
)
def test_times_on_one_line_have_one_unit(times_ms: list[float], shown: list[str]) -> None:
    assert in_one_unit(times_ms) == shown


def test_a_range_is_one_figure_where_its_ends_read_alike() -> None:
    assert between(28.64, 30.0) == "28.6–30.0 ms"
    assert between(10.001, 10.002) == "10.0 ms"


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0 %"), (0.002, "0.2 %"), (0.00001, "<0.01 %"), (0.99999, ">99.9 %"), (1, "100 %")],
)
def test_a_share_that_is_not_nothing_or_all_never_reads_so(share: float, shown: str) -> None:
    assert percent(share) == shown
