"""Kernel stamps become monotonic time where the wall clock was steady, and only there."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.stamps import Anchor
from legato.wire.clock import STEP_NS, Clock

MS = 1_000_000
SECOND = 1_000_000_000
OFFSET = 1_700_000_000 * SECOND


def clock_of(*anchors: tuple[int, int, int]) -> Clock:
    """Anchors as (at, offset beyond OFFSET, width)."""
    clock = Clock()
    for at_ns, offset_ns, width_ns in anchors:
        clock.add(Anchor(at_ns, OFFSET + offset_ns, width_ns))
    return clock


def convert(clock: Clock, *pairs: tuple[int, int]) -> tuple[list[int], list[bool]]:
    """(stamp, read) pairs through the clock."""
    stamps = np.asarray([stamp for stamp, _ in pairs], np.int64)
    reads = np.asarray([read for _, read in pairs], np.int64)
    arrived, holds = clock.monotonic(stamps, reads)
    return arrived.tolist(), holds.tolist()


def test_a_stamp_between_agreeing_anchors_is_moved_by_their_offset() -> None:
    clock = clock_of((0, 0, 50), (SECOND, 0, 50))
    assert convert(clock, (OFFSET + 500, 700)) == ([500], [True])
    assert clock.steps == 0


def test_the_tightest_of_the_anchors_that_agree_gives_the_offset() -> None:
    clock = clock_of((0, 300, 400), (SECOND, 10, 20), (2 * SECOND, -200, 900))
    assert convert(clock, (OFFSET + 10_010, 20_000)) == ([10_000], [True])
    assert clock.width_ns == 20


def test_a_missing_stamp_gives_the_time_of_the_read() -> None:
    assert convert(clock_of((0, 0, 50)), (0, 700)) == ([700], [False])


def test_a_stamp_later_than_its_read_does_not_hold() -> None:
    clock = clock_of((0, 0, 50))
    assert convert(clock, (OFFSET + 700 + STEP_NS + 1, 700)) == ([700], [False])


def test_without_an_anchor_no_stamp_holds() -> None:
    assert convert(Clock(), (OFFSET + 500, 700)) == ([700], [False])


@settings(deadline=None)
@given(step_ns=st.one_of(st.integers(-(10**12), -20_000), st.integers(20_000, 10**12)))
def test_stamps_around_a_step_of_the_wall_clock_fall_back_and_the_others_hold(
    step_ns: int,
) -> None:
    clock = clock_of(
        (0, 0, 50), (100 * MS, 0, 50), (200 * MS, step_ns, 50), (300 * MS, step_ns, 50)
    )
    before = (OFFSET + 49 * MS, 50 * MS)
    inside = (OFFSET + 149 * MS, 150 * MS)
    inside_stepped = (OFFSET + step_ns + 159 * MS, 160 * MS)
    after = (OFFSET + step_ns + 249 * MS, 250 * MS)
    arrived, holds = convert(clock, before, inside, inside_stepped, after)
    assert clock.steps == 1
    assert holds == [True, False, False, True]
    assert arrived == [49 * MS, 150 * MS, 160 * MS, 249 * MS]


def test_anchors_that_differ_by_less_than_their_own_error_are_no_step() -> None:
    clock = clock_of((0, 0, 2_000), (SECOND, 6_000, 2_000))
    assert clock.steps == 0


def test_a_step_back_to_an_earlier_offset_is_a_step_too() -> None:
    clock = clock_of((0, 0, 50), (SECOND, MS, 50), (2 * SECOND, 0, 50))
    assert clock.steps == 2


def test_a_wide_anchor_cannot_hide_a_step_nor_vouch_for_the_time_around_it() -> None:
    clock = clock_of((0, 0, 50), (100 * MS, 4 * MS, 10 * MS), (200 * MS, 5 * MS, 50))
    assert clock.steps == 1
    _, holds = convert(clock, (OFFSET + 50 * MS, 51 * MS), (OFFSET + 150 * MS, 156 * MS))
    assert holds == [False, False]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 10**10), st.integers(-100, 100), st.integers(100, 1000)),
        min_size=1,
        max_size=20,
    )
)
def test_anchors_that_are_right_within_their_width_are_never_taken_for_steps(
    anchors: list[tuple[int, int, int]],
) -> None:
    assert clock_of(*sorted(anchors)).steps == 0
