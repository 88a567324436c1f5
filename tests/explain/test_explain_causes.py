"""What a pattern adds to its gaps is found again, with the coefficient the pattern names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paced import closed_loop, open_loop

from legato.explain.attribution import Attribution, attribute
from legato.explain.part import CAUSES, CONTEXT, Part
from legato.metronome.pattern import Pattern
from legato.recording import Recording, concatenate

US = 1e3
MS = 1e6
PROMPTS = (10, 50, 200)

# What each pattern costs: cause -> ns a unit
ALONE = {
    "position": (Pattern(per_position_us=50), {"position": 50 * US}),
    "context": (Pattern(per_context_us=20), {"context": 20 * US}),
    "load": (Pattern(per_stream_us=200), {"in_flight": 200 * US}),
    "starts": (Pattern(interference_ms=30), {"starts": 30 * MS}),
}
MIXED = Pattern(
    per_position_us=20, per_context_us=10, per_stream_us=200, interference_ms=12, draw="lognormal"
)
MIXED_COSTS = {
    "position": 20 * US,
    "context": 10 * US,
    "in_flight": 200 * US,
    "starts": 12 * MS,
}


def explained(recording: Recording) -> Attribution:
    found = attribute(recording)
    assert found is not None
    return found


def parts(found: Attribution) -> dict[str, Part]:
    return {part.cause: part for part in found.parts}


def assert_costs(found: Attribution, cause: str, cost_ns: float, slack: float = 1.0) -> None:
    """The true cost lies in the interval, or within a thousandth where there is no noise."""
    part = parts(found)[cause]
    assert part.effect_ns is not None
    assert part.units is not None
    assert part.half_width_ns is not None
    off_ns = abs(part.effect_ns - cost_ns) * part.units
    assert off_ns <= slack * part.half_width_ns + 1e-3 * abs(cost_ns) * part.units


@pytest.mark.parametrize("name", ALONE)
def test_a_cause_alone_is_found_to_the_microsecond_and_no_other_with_it(name: str) -> None:
    pattern, costs = ALONE[name]
    found = explained(open_loop(pattern, rate=8, requests=60, prompts=PROMPTS))
    for cause, cost_ns in costs.items():
        assert_costs(found, cause, cost_ns)
    for cause, part in parts(found).items():
        if cause not in costs and cause != "step" and part.mean_ns is not None:
            assert abs(part.mean_ns) < 1 * US, cause
    assert parts(found)["step"].effect_ns == pytest.approx(10 * MS, rel=1e-3)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("events_per_write", [1, 3])
def test_causes_that_come_together_are_told_apart(seed: int, events_per_write: int) -> None:
    pattern = replace(MIXED, seed=seed, events_per_write=events_per_write)
    found = explained(open_loop(pattern, rate=6, requests=150, prompts=PROMPTS, seed=seed))
    for cause, cost_ns in MIXED_COSTS.items():
        # One true cost in twenty lies outside its interval: twice the interval is a clear miss.
        assert_costs(found, cause, cost_ns, slack=2.0)
        assert parts(found)[cause].is_clear


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    runs, inside = 30, dict.fromkeys(MIXED_COSTS, 0)
    for seed in range(runs):
        pattern = replace(MIXED, seed=seed, tokens=50)
        found = explained(open_loop(pattern, rate=10, requests=80, prompts=PROMPTS, seed=seed))
        for cause, cost_ns in MIXED_COSTS.items():
            part = parts(found)[cause]
            assert part.effect_ns is not None
            assert part.half_width_ns is not None
            off_ns = abs(part.effect_ns - cost_ns) * (part.units or 0)
            inside[cause] += off_ns <= part.half_width_ns
    # 95 of 100 are expected; fewer than 24 of 30 happens once in 4,000 times.
    assert all(count >= 24 for count in inside.values()), inside


def test_prompts_of_one_length_leave_position_and_context_together() -> None:
    found = explained(closed_loop(Pattern(per_context_us=50), slots=6, requests=40))
    assert parts(found)[CONTEXT].mean_ns is None
    assert_costs(found, "position", 50 * US)


def test_a_load_that_hardly_varies_tells_nothing_about_load() -> None:
    found = explained(closed_loop(Pattern(per_stream_us=300), slots=8, requests=160))
    assert parts(found)["in_flight"].mean_ns is None
    # What eight streams cost is then part of every step.
    assert parts(found)["step"].effect_ns == pytest.approx(10 * MS + 7 * 300 * US, rel=0.01)


def test_recordings_at_several_loads_tell_what_load_costs() -> None:
    levels = [
        closed_loop(Pattern(per_stream_us=300, tokens=60), slots=slots, requests=6 * slots)
        for slots in (1, 4, 8)
    ]
    assert_costs(explained(concatenate(_in_sequence(levels))), "in_flight", 300 * US)


def test_long_gaps_do_not_look_as_if_starts_had_made_them() -> None:
    # Starts fall into long gaps more often than into short ones: counting them there would
    # find 5 ms or more a start.
    pattern = Pattern(draw="lognormal", spread=0.8, stall_ms=300, stall_chance=0.002)
    found = explained(open_loop(pattern, rate=20, requests=200))
    starts = parts(found)["starts"]
    assert starts.effect_ns is not None
    assert abs(starts.effect_ns) < 1.5 * MS


def test_stalls_have_the_time_they_took() -> None:
    found = explained(
        closed_loop(Pattern(stall_ms=500, stall_at=40, stall_every=5), slots=6, requests=60)
    )
    stalls = parts(found)["stalls"]
    assert found.facts.stalls == 12
    assert found.facts.shared_stalls == 0
    assert stalls.mean_ns == pytest.approx(12 * 500 * MS / found.gaps, rel=0.01)
    assert stalls.tail_share == pytest.approx(1.0, abs=0.01)


def test_stalls_of_all_streams_at_once_are_known_as_shared() -> None:
    pattern = Pattern(stall_ms=500, stall_at=40, stall_every=20, stall_scope="all")
    found = explained(closed_loop(pattern, slots=6, requests=60))
    assert found.facts.shared_stalls == found.facts.stalls > 0


def test_bursts_move_time_and_make_the_slowest_gaps() -> None:
    found = explained(closed_loop(Pattern(events_per_write=4), slots=6, requests=40))
    bursts = parts(found)["bursts"]
    # The three chunks that came with the first token had no wait.
    assert bursts.mean_ns == pytest.approx(-3 * 10 * MS / 99, rel=1e-6)
    assert bursts.tail_share == pytest.approx(1.0)
    assert found.facts.held_ns == pytest.approx(15 * MS)
    assert parts(found)["step"].mean_ns == pytest.approx(10 * MS)


def test_a_chunk_of_several_tokens_costs_what_its_step_costs() -> None:
    found = explained(closed_loop(Pattern(tokens_per_event=3, tokens=99), slots=6, requests=40))
    assert parts(found)["step"].effect_ns == pytest.approx(30 * MS)
    assert found.mean_ns == pytest.approx(10 * MS)


def test_streams_with_retransmits_are_held_against_the_others() -> None:
    whole = closed_loop(Pattern(stall_ms=80, stall_at=50, stall_every=4), slots=6, requests=60)
    number = whole.ints("stream_id")
    streams = [
        replace(stream, retransmits=int((n + 1) % 4 == 0))
        for stream, n in zip(whole, number, strict=True)
    ]
    retransmits = parts(explained(Recording.from_streams(streams)))["retransmits"]
    assert retransmits.mean_ns == pytest.approx(15 * 80 * MS / (60 * 99), rel=0.01)
    assert retransmits.is_clear


def test_a_late_client_moves_time_between_gaps_and_its_reach_is_told() -> None:
    streams = []
    for stream in closed_loop(Pattern(), slots=6, requests=40):
        arrival_ns = np.asarray(stream.arrival_ns)
        # Every fourth chunk waited unread until the next one had come.
        late = np.arange(len(arrival_ns)) % 4 == 3
        late[-1] = False
        before_ns = arrival_ns.copy()
        arrival_ns[:-1][late[:-1]] = before_ns[1:][late[:-1]]
        merged = late | np.roll(late, 1)
        streams.append(
            replace(
                stream,
                arrival_ns=arrival_ns,
                early_ns=np.where(late, 10 * 1_000_000, 0),
                read_index=np.arange(len(late)) - np.cumsum(np.roll(late, 1)),
                segments=np.where(merged, 2, 1),
            )
        )
    found = explained(Recording.from_streams(streams))
    assert found.facts.merged_share == pytest.approx(0.5, abs=0.02)
    assert parts(found)["client"].tail_share == pytest.approx(1.0, abs=0.01)
    assert parts(found)["step"].mean_ns == pytest.approx(10 * MS, rel=1e-3)


def test_a_server_that_is_held_up_and_catches_up_does_not_blur_the_causes() -> None:
    pattern = Pattern(interference_ms=12, per_position_us=30, draw="lognormal", spread=0.1)
    streams = []
    for stream in open_loop(pattern, rate=8, requests=100):
        at_ns = np.asarray(stream.arrival_ns) + (stream.sent_ns or 0)
        # Every 400 ms nothing is sent for 45 ms; then all that was due, 20 µs apart.
        into_ns = at_ns % (400 * 1_000_000)
        held = into_ns < 45 * 1_000_000
        queued = np.cumsum(held) * 20_000
        at_ns = np.where(held, at_ns - into_ns + 45 * 1_000_000 + queued % 1_000_000, at_ns)
        arrival_ns = np.maximum.accumulate(at_ns - (stream.sent_ns or 0))
        streams.append(replace(stream, arrival_ns=arrival_ns))
    found = explained(Recording.from_streams(streams))
    assert_costs(found, "starts", 12 * MS, slack=2.0)
    assert_costs(found, "position", 30 * US, slack=2.0)
    assert found.facts.burst_share > 0.02


def test_too_few_gaps_are_not_explained() -> None:
    assert attribute(closed_loop(Pattern(tokens=10), slots=2, requests=4)) is None
    assert attribute(Recording.from_streams([])) is None


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 100),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([1, 3]),
    st.sampled_from([0.0, 0.01]),
)
def test_the_parts_add_up_to_the_mean_gap(
    seed: int, events_per_write: int, tokens_per_event: int, stall_chance: float
) -> None:
    pattern = replace(
        MIXED,
        seed=seed,
        tokens=40,
        events_per_write=events_per_write,
        tokens_per_event=tokens_per_event,
        stall_ms=300 if stall_chance else 0,
        stall_chance=stall_chance,
    )
    found = explained(open_loop(pattern, rate=8, requests=30, prompts=PROMPTS, seed=seed))
    assert [part.cause for part in found.parts] == list(CAUSES)
    total_ns = sum(part.mean_ns or 0.0 for part in found.parts)
    assert total_ns == pytest.approx(found.mean_ns, rel=1e-9)
    if found.tail and found.tail.shares:
        assert sum(found.tail.shares.values()) == pytest.approx(1.0, abs=1e-6)


def _in_sequence(recordings: list[Recording]) -> list[Recording]:
    """The same runs one after the other, as runs of one machine are."""
    moved, start_ns = [], 0
    for recording in recordings:
        streams = [
            replace(
                stream,
                scheduled_ns=stream.scheduled_ns + start_ns,
                sent_ns=(stream.sent_ns or 0) + start_ns,
                ended_ns=stream.ended_ns + start_ns,
            )
            for stream in recording
        ]
        moved.append(Recording.from_streams(streams))
        start_ns += 600 * 1_000_000_000
    return moved
