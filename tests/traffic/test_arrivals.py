from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.errors import UsageError
from legato.traffic.arrivals import Arrivals, Span, parse_rate

S = 1_000_000_000


def test_a_constant_rate_is_constant() -> None:
    offsets = Arrivals(parse_rate("500", None)).offsets_ns(1000)
    assert offsets == [number * 2_000_000 for number in range(1000)]


def test_a_duration_ends_the_schedule() -> None:
    assert len(Arrivals(parse_rate("10", 3.0)).offsets_ns()) == 30


def test_a_ramp_sends_more_as_it_goes() -> None:
    # 0 to 10 a second over 10 s: t²/2 expected by t, so the k-th leaves at √(2k)
    offsets = Arrivals(parse_rate("0:10", 10.0)).offsets_ns()
    assert offsets == [round(math.sqrt(2 * k) * S) for k in range(50)]


def test_a_ramp_may_fall() -> None:
    offsets = np.array(Arrivals(parse_rate("10:0", 10.0)).offsets_ns())
    assert len(offsets) == 50
    assert (np.diff(offsets, 2) > 0).all()


def test_steps_follow_each_other_without_a_seam() -> None:
    offsets = Arrivals(parse_rate("5@2, 10@3s", None)).offsets_ns()
    assert offsets[:10] == [k * S // 5 for k in range(10)]
    assert offsets[10:] == [2 * S + k * S // 10 for k in range(30)]


@pytest.mark.parametrize(
    ("spacing", "burstiness", "shape"), [("poisson", 1.0, 1.0), ("gamma", 0.25, 0.25)]
)
def test_random_spacing_has_the_distribution_it_names(
    spacing: str, burstiness: float, shape: float
) -> None:
    offsets = Arrivals(parse_rate("500", None), spacing, burstiness, seed=7).offsets_ns(20_000)
    gaps_s = np.diff(np.array([0, *offsets])) / S
    reference = np.random.default_rng(1).gamma(shape, 1 / (500 * shape), 20_000)
    # Two-sample Kolmogorov–Smirnov at 0.1 %: the limit for these sizes is 1.95 · √(2/n).
    assert _distance(gaps_s, reference) < 1.95 * math.sqrt(2 / 20_000)
    assert abs(gaps_s.std() / gaps_s.mean() - 1 / math.sqrt(shape)) < 0.1


def test_the_wrong_distribution_would_be_found() -> None:
    offsets = Arrivals(parse_rate("500", None), "poisson", seed=7).offsets_ns(20_000)
    gaps_s = np.diff(np.array([0, *offsets])) / S
    other = np.random.default_rng(1).gamma(0.9, 1 / (500 * 0.9), 20_000)
    assert _distance(gaps_s, other) > 1.95 * math.sqrt(2 / 20_000)


def test_a_seed_gives_the_same_schedule_and_another_seed_another() -> None:
    one, again, other = (
        Arrivals(parse_rate("50", None), "poisson", seed=seed).offsets_ns(100) for seed in (1, 1, 2)
    )
    assert one == again
    assert one != other


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            Span,
            st.floats(0.01, 20),
            st.floats(0.01, 200),
            st.floats(0, 200),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["constant", "poisson", "gamma"]),
)
def test_any_shape_is_in_order_and_inside_its_time(spans: list[Span], spacing: str) -> None:
    arrivals = Arrivals(tuple(spans), spacing, 0.5, seed=3)
    offsets = arrivals.offsets_ns()
    assert offsets == sorted(offsets)
    length_s = sum(span.seconds for span in spans)
    assert all(0 <= offset <= length_s * S + 1 for offset in offsets)
    if spacing == "constant":
        assert abs(len(offsets) - arrivals.expected) <= 1 + 1e-6


@pytest.mark.parametrize(
    ("text", "duration_s"),
    [
        ("0", None),
        ("-1", None),
        ("x", None),
        ("nan", None),
        ("1:5", None),
        ("0:0", 5.0),
        ("5@", None),
        ("5@0", None),
        ("@5", None),
        ("5@5", 3.0),
        ("5@inf", None),
    ],
)
def test_a_rate_that_is_none_is_refused(text: str, duration_s: float | None) -> None:
    with pytest.raises(UsageError):
        parse_rate(text, duration_s)


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    """Kolmogorov–Smirnov distance of two samples."""
    at = np.sort(np.concatenate([one, other]))
    shares = [np.searchsorted(np.sort(x), at, "right") / len(x) for x in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())
