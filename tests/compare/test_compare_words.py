"""What a comparison says: the sentence, the spans, and no claim that chance may explain."""

from __future__ import annotations

import pytest
from compared_runs import run, side
from hypothesis import given
from hypothesis import strategies as st

from legato.compare import words
from legato.compare.change import Change, corrected
from legato.compare.comparison import compare
from legato.compare.estimate import Figure
from legato.compare.span import Span, text


def change(figure: Figure, a: float, b: float, ratio: Span) -> Change:
    return corrected([Change(figure, a, b, Span(b - a), ratio, 0.0001, "streams")])[0]


def test_the_documents_own_example_reads_as_it_should() -> None:
    tail = change(Figure("itl", "p99"), 100, 29, Span(0.29, 0.26, 0.32))
    spread = change(Figure("itl", "std"), 10, 2.887, Span(12**-0.5, 10**-0.5, 14**-0.5))
    assert words.moved(tail) == "p99 ITL fell 71 % [68, 74]"
    assert words.moved(spread) == "variance fell 12.0 × [10.0, 14.0]"


def test_from_twice_as_much_on_a_factor_is_told() -> None:
    found = change(Figure("itl", "p50"), 10, 31, Span(3.1, 2.9, 3.3))
    assert words.moved(found) == "p50 ITL rose 3.10 × [2.90, 3.30]"


def test_shares_change_by_points() -> None:
    made = Change(Figure("error"), 0, 0.05, Span(0.05, 0.02, 0.08), None, 0.001, "streams")
    assert words.moved(made) == "failures rose 5 points [2, 8]"


def test_a_difference_that_is_not_shown_is_not_told_as_a_move() -> None:
    (found,) = compare(side("A", run(1)), [side("B", run(2))])
    assert words.verdict(found) == "no difference shown"
    assert words.headline(found).startswith("no difference in p50 ITL shown: ")


@pytest.mark.parametrize(
    ("gap_ms", "primary", "verdict"),
    [
        (12, Figure("itl", "p50"), "worse"),
        (8, Figure("itl", "p50"), "better"),
        (12, Figure("tps.stream"), "worse"),
        (8, Figure("tps.stream"), "better"),
        (8, Figure("ttft", "p999"), "unknown"),
    ],
)
def test_better_and_worse_follow_the_primary_figures_good_side(
    gap_ms: float, primary: Figure, verdict: str
) -> None:
    (found,) = compare(side("A", run(1)), [side("B", run(2, gap_ms=gap_ms))], primary=primary)
    assert words.verdict(found) == verdict


def test_one_run_a_side_says_that_between_run_variance_is_unknown() -> None:
    (one,) = compare(side("A", run(1)), [side("B", run(2))])
    (several,) = compare(side("A", run(1), run(2)), [side("B", run(3))])
    assert "unknown" in words.notes(one)[0]
    assert words.notes(several)[0] == "runs are the unit: 2 against 1"
    assert "vary as much as the other" in words.notes(several)[1]


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (Span(71.2, 68.1, 74.4), "71 [68, 74]"),
        (Span(0.6012, 0.3699, 0.8399), "0.60 [0.37, 0.84]"),
        (Span(-0.2, -0.8, 0.57), "−0.2 [−0.8, 0.6]"),
        (Span(0.0, 0.0, 0.0), "0.00 [0.00, 0.00]"),
        (Span(-0.01, -5.0, 8.0), "0 [−5, 8]"),
        (Span(4384.2), "4,384"),
        (Span(1.0, None, None), "1.00"),
    ],
)
def test_a_span_has_as_many_digits_as_its_width_is_worth(span: Span, said: str) -> None:
    assert text(span) == said


@given(
    st.floats(-1e6, 1e6), st.floats(0, 1e6, exclude_min=True), st.floats(0, 1e6, exclude_min=True)
)
def test_a_span_never_shows_its_value_outside_its_ends(
    value: float, below: float, above: float
) -> None:
    said = text(Span(value, value - below, value + above)).replace("−", "-").replace(",", " ")
    middle, low, high = (float(part.strip(" []").replace(" ", "")) for part in _parts(said))
    assert low <= middle <= high


def _parts(said: str) -> list[str]:
    value, _, ends = said.partition(" [")
    # Thousands and the ends are both parted by a comma: only the ends' has a space after it.
    low, _, high = ends.rstrip("]").partition("  ")
    return [value, low, high]
