from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.report.figures import at_most_ms, ms, percent, significant, within


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
        (9.999, 10.001, 10.0, "±0.001"),
        (0.0, 0.0, 0.0, ""),
        (990.0, 1020.0, 1010.0, "0.990–1.02"),
    ],
)
def test_an_interval_is_in_the_unit_of_its_figure(
    low: float, high: float, around: float, shown: str
) -> None:
    assert within(low, high, around) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0 %"), (0.002, "0.2 %"), (0.00001, "<0.01 %"), (0.99999, ">99.9 %"), (1, "100 %")],
)
def test_a_share_that_is_not_nothing_or_all_never_reads_so(share: float, shown: str) -> None:
    assert percent(share) == shown
