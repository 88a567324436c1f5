"""Stalls, bursts and the reader's buffer, on streams worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_streams import chunks_of, stream

from legato.metrics.gaps import gaps
from legato.metrics.smoothness import (
    burst_share,
    fluidity_index,
    reader_wait_ns,
    smoothness,
    stall_moments,
    stalled,
)
from legato.recording import Stream


def of(*streams: Stream) -> dict[str, float]:
    chunks = chunks_of(*streams)
    return smoothness(chunks, gaps(chunks))


def running(*gaps_ms: float, first_ms: float = 50.0) -> Stream:
    arrivals = [first_ms]
    for gap in gaps_ms:
        arrivals.append(arrivals[-1] + gap)
    return stream(arrivals)


@pytest.mark.parametrize(("gap_ms", "stalls"), [(100, 0), (100.001, 1)])
def test_a_stall_is_longer_than_100_ms(gap_ms: float, stalls: int) -> None:
    assert of(running(10, 10, gap_ms, 10, 10))["stall_count"] == stalls


@pytest.mark.parametrize(("gap_ms", "stalls"), [(200, 0), (200.001, 1)])
def test_a_stall_is_longer_than_five_times_the_median_of_its_own_stream(
    gap_ms: float, stalls: int
) -> None:
    fast = running(10, 10, 10)
    assert of(fast, running(40, 40, gap_ms, 40, 40))["stall_count"] == stalls


def test_the_median_of_an_even_number_of_gaps_is_the_middle_of_two() -> None:
    # Median of 30, 30, 60, 225 is 45: the threshold is 225.
    chunks = chunks_of(running(30, 225, 30, 60))
    assert stalled(gaps(chunks)).tolist() == [False] * 4


def test_stalls_are_counted_with_their_streams_and_their_share_of_the_time() -> None:
    found = of(running(10, 400, 10, 10, 10, 560), running(10, 10, 10), running(10, 10, 10, 200, 10))
    assert found["stall_count"] == 3
    assert found["streams_with_stalls"] == 2
    assert found["stall_ratio"] == pytest.approx((400 + 560 + 200) / (1000 + 30 + 240))


def test_four_events_in_one_segment_give_a_burst_share_of_three_quarters() -> None:
    arrivals = [50 + 40 * (i // 4) for i in range(4 * 50)]
    chunks = chunks_of(stream(arrivals, reads=[i // 4 for i in range(4 * 50)]))
    assert burst_share(chunks, gaps(chunks)) == pytest.approx(0.75, abs=0.01)


def test_chunks_written_apart_and_read_late_are_no_burst() -> None:
    arrivals = [50 + 40 * (i // 4) for i in range(40)]
    chunks = chunks_of(stream(arrivals, reads=[i // 4 for i in range(40)], segments=[4] * 40))
    assert burst_share(chunks, gaps(chunks)) == 0


def test_tokens_inside_one_event_are_a_burst() -> None:
    found = of(stream([50, 80, 110], tokens=[3, 3, 3]))
    assert found["burst_share"] == pytest.approx(4 / 6)


def test_a_stream_in_time_is_wholly_fluid() -> None:
    assert of(running(100, 100, 100, first_ms=1000))["fluidity_index"] == 1


def test_early_tokens_are_slack_for_a_later_one() -> None:
    # Due at 1000, 1100, … 1400 ms; the last comes at 1400.
    assert of(running(100, 100, 100, 1050))["fluidity_index"] == 1
    # 1 ms later it has missed one of five deadlines.
    assert of(running(100, 100, 100, 1051))["fluidity_index"] == pytest.approx(4 / 5)


def test_a_late_token_misses_every_deadline_that_passed_and_starts_them_anew() -> None:
    # The second is due at 1100 ms and comes at 1350: those of 1100, 1200 and 1300 are missed.
    # The third, 100 ms after it, is in time.
    assert of(running(350, 100, first_ms=1000))["fluidity_index"] == pytest.approx(2 / 5)


def test_a_late_first_token_misses_deadlines_too() -> None:
    # Late by 150 ms: two deadlines missed, then one met.
    assert of(running(100, first_ms=1150))["fluidity_index"] == pytest.approx(1 / 3)


def test_tokens_of_one_chunk_are_slack_for_the_next() -> None:
    assert fluidity_index(chunks_of(stream([1000, 1300, 1600], tokens=[3, 3, 3]))) == 1


def test_a_reader_waits_only_when_nothing_is_left_to_read() -> None:
    # Three tokens by 70 ms last until 350; the fourth comes at 500 and the fifth in time.
    chunks = chunks_of(stream([50, 60, 70, 500, 580]))
    assert reader_wait_ns(chunks) == 150_000_000


def test_the_wait_is_the_mean_over_streams() -> None:
    found = of(stream([50, 60, 70, 500, 580]), stream([50, 60]))
    assert found["reader_wait_ms"] == pytest.approx(75)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 700), st.integers(1, 4)), min_size=1, max_size=15),
        min_size=1,
        max_size=4,
    )
)
def test_fluidity_and_wait_equal_a_token_by_token_count(
    runs: list[list[tuple[int, int]]],
) -> None:
    streams, met, missed, waited = [], 0, 0, 0
    for steps in runs:
        arrivals, now, due, reads_at = [], 600, 1000, None
        for gap, tokens in steps:
            now += gap
            arrivals.append(now)
            reads_at = now if reads_at is None else reads_at
            for _ in range(tokens):
                late = now - due
                met += late <= 0
                missed += late // 100 + 1 if late > 0 else 0
                due = max(due, now) + 100
                waited += max(0, now - reads_at)
                reads_at = max(reads_at, now) + 100
        streams.append(stream(arrivals, tokens=[tokens for _, tokens in steps]))
    chunks = chunks_of(*streams)
    assert fluidity_index(chunks) == pytest.approx(met / (met + missed))
    assert reader_wait_ns(chunks) == waited * 1_000_000


def test_variation_is_taken_within_a_stream() -> None:
    # Two steady streams of different pace do not vary; 10 and 30 ms around 20 vary by half.
    assert of(running(10, 10, 10), running(50, 50, 50))["cv"] == 0
    assert of(running(10, 30, 10, 30))["cv"] == pytest.approx(0.5)


def test_without_a_gap_nothing_is_claimed() -> None:
    found = of(stream([50]))
    assert found["stall_ratio"] is None
    assert found["burst_share"] is None
    assert found["cv"] is None


def test_stalls_of_all_streams_at_one_time_are_one_shared_moment() -> None:
    paused = [running(10, 10, 300, 10, first_ms=50 + offset) for offset in range(5)]
    found = of(*paused)
    assert found["stall_count"] == 5
    assert found["stall_moments"] == 1
    assert found["shared_stall_share"] == 1


def test_a_stall_while_other_streams_go_on_is_shared_with_none() -> None:
    going_on = [running(*[10] * 40) for _ in range(4)]
    found = of(running(10, 10, 300, 10), *going_on)
    assert found["stall_moments"] == 1
    assert found["shared_stall_share"] == 0


def test_stalls_that_do_not_overlap_have_a_moment_each() -> None:
    found = of(running(10, 200, 10, 10, 10), running(10, 10, 10, 200, 10, first_ms=300))
    assert found["stall_moments"] == 2
    assert found["shared_stall_share"] == 0


def test_the_stall_of_the_only_stream_may_be_its_own() -> None:
    assert of(running(10, 10, 300, 10))["shared_stall_share"] == 0


def test_without_a_stall_there_is_no_moment() -> None:
    found = of(running(10, 10))
    assert found["stall_moments"] == 0
    assert found["shared_stall_share"] is None


@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.lists(st.integers(1, 400), min_size=1, max_size=12)),
        min_size=1,
        max_size=6,
    )
)
def test_no_two_moments_lie_in_one_stall_and_every_stall_holds_one(
    runs: list[tuple[int, list[int]]],
) -> None:
    chunks = chunks_of(*(running(*steps, first_ms=first) for first, steps in runs))
    found = gaps(chunks)
    stalls = stalled(found)
    spans = [
        (int(end - gap), int(end))
        for end, gap in zip(found.at_ns[stalls], found.gap_ns[stalls], strict=True)
    ]
    # The fewest instants that lie in every stall are as many as the most stalls of which no two
    # overlap: taken one after the other by their ends.
    apart, last = 0, -1
    for began, ended in sorted(spans, key=lambda span: span[1]):
        if began >= last:
            apart, last = apart + 1, ended
    moments, share = stall_moments(found, stalls)
    assert moments == apart
    assert (share is None) == (not spans)


def test_slow_gaps_are_those_over_twice_the_median_and_have_a_median_of_their_own() -> None:
    found = of(running(10, 10, 20, 40, 10, 42, 10, 10))
    assert found["slow_share"] == 2 / 8
    assert found["slow_gap_ms"] == 41
