from __future__ import annotations

from dataclasses import replace

import pytest

from legato.calibrate.command import parse_levels, profile_of
from legato.calibrate.level import Figures, Level
from legato.errors import UsageError

GOOD = Figures(
    level=Level(200, 100.0),
    gaps=1000,
    kernel_us={"p50": 0.5, "p99": 20.0, "max": 300.0},
    user_us={"p50": 10.0, "p99": 2000.0, "max": 9000.0},
    truth_width_us={"p50": 6.0, "p99": 40.0, "max": 900.0},
    inside_share=1.0,
    exact_share=0.99,
    merged_share=0.01,
    contained_share=1.0,
    failed_streams=0,
    lost_events=0,
    ttft_error_us=3.0,
    cpu_us_per_event=14.0,
    cpu_share=0.3,
)


def test_levels_are_run_in_the_order_of_their_load() -> None:
    levels = parse_levels("200x100, 1x50,1000×20")
    assert levels == [Level(1, 50.0), Level(200, 100.0), Level(1000, 20.0)]


@pytest.mark.parametrize("text", ["", "200", "x100", "0x10", "10x0", "axb", "10x10,", "-1x5"])
def test_a_level_that_is_none_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="STREAMSxTOKENS_A_SECOND"):
        parse_levels(text)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({}, None),
        ({"exact_share": 0.97}, None),
        ({"exact_share": 0.969}, "exact"),
        ({"contained_share": 0.99}, None),
        ({"contained_share": 0.98}, "hold the truth"),
        ({"contained_share": None}, None),
        ({"lost_events": 1}, "lost"),
        ({"failed_streams": 1}, "failed"),
        ({"kernel_us": {"p50": 5.0, "p99": 50.0, "max": 1e4}}, None),
        ({"kernel_us": {"p50": 5.1, "p99": 50.0, "max": 1e4}}, "p50"),
        ({"kernel_us": {"p50": 5.0, "p99": 50.1, "max": 1e4}}, "p99"),
    ],
)
def test_each_limit_of_trust_has_two_sides(
    change: dict[str, object], complaint: str | None
) -> None:
    complaints = replace(GOOD, **change).complaints  # type: ignore[arg-type]
    assert len(complaints) == (complaint is not None)
    assert all((complaint or "") in found for found in complaints)


def test_the_floor_is_the_worst_trusted_error_and_the_limit_ends_at_the_first_failure() -> None:
    low = replace(GOOD, level=Level(1, 100.0), kernel_us={"p50": 2.0, "p99": 9.0, "max": 9.0})
    bad = replace(GOOD, level=Level(500, 100.0), exact_share=0.5)
    high = replace(GOOD, level=Level(1000, 100.0))
    profile = profile_of([low, GOOD, bad, high], tls=False)
    assert profile["floor_us"] == {"p50": 2.0, "p99": 20.0}
    assert profile["limit"] == {"events_per_s": 20_000.0}


def test_a_machine_without_a_trusted_level_has_no_floor() -> None:
    profile = profile_of([replace(GOOD, lost_events=3)], tls=True)
    assert profile["limit"] is None
    assert profile["floor_us"] == {"p50": None, "p99": None}
