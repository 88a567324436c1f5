"""What an answer is made of: patterns, pace and score, without sockets or clocks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metronome_client import body_of, parsed, sse_data

from legato import recording
from legato.errors import UsageError
from legato.metronome import truth
from legato.metronome.ask import ask_of
from legato.metronome.lateness import Lateness
from legato.metronome.note import END, GO, Note
from legato.metronome.pace import Room, first_token_ns, gap_before
from legato.metronome.pattern import Pattern, fields, replaced
from legato.metronome.payload import Voice
from legato.metronome.request import BadRequest
from legato.metronome.score import score

MS = 1_000_000


def notes_of(
    pattern: Pattern, number: int = 0, room: Room | None = None, **body: Any
) -> list[Note]:
    ask = ask_of("chat", json.dumps(body_of(**body)).encode(), pattern)
    voice = Voice(ask, "run", number, 0)
    return list(score(ask, voice, number, room or Room(1), keep_alive=True))


def gaps_of(
    pattern: Pattern, number: int = 0, prompt_tokens: int = 0, tokens: int = 200
) -> list[int]:
    gap = gap_before(pattern, number, prompt_tokens, Room(open_streams=1))
    return [gap(position) for position in range(1, tokens)]


def wire(notes: list[Note]) -> bytes:
    return b"".join(note.data for note in notes)


# --- patterns


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gap_ms": -1}, "gap_ms is -1; it must be from 0"),
        ({"gap_ms": "10"}, "gap_ms is '10'; it must be a number"),
        ({"gap_ms": float("nan")}, "gap_ms is nan; it must be a number"),
        ({"tokens": 0}, "tokens is 0; it must be from 1"),
        ({"tokens": 1.5}, "tokens is 1.5; it must be a whole number"),
        ({"role_early": 1}, "role_early is 1; it must be true or false"),
        ({"draw": "poisson"}, "draw is 'poisson'; it must be one of constant, normal"),
        ({"fault": "fire"}, "fault is 'fire'; it must be one of none"),
        ({"fault_status": 200}, "fault_status is 200; it must be from 400 to 599"),
        ({"stall_ms": 5}, "stall_ms needs stall_at or stall_chance"),
        ({"stall_at": 5}, "need stall_ms"),
        ({"tempo": 1}, "the metronome has no field 'tempo'"),
    ],
)
def test_a_wrong_pattern_is_told_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as problem:
        replaced(Pattern(), changes)
    assert words in str(problem.value)


def test_every_field_of_a_pattern_is_described() -> None:
    assert all(item.metadata["about"] for item in fields())


def test_the_log_names_kinds_as_the_recording_does() -> None:
    assert truth.KINDS == recording.KINDS


# --- pace


def test_constant_gaps_are_all_the_same() -> None:
    assert set(gaps_of(Pattern(gap_ms=2.5))) == {2_500_000}


@pytest.mark.parametrize("draw", ["normal", "lognormal", "gamma"])
def test_drawn_gaps_keep_the_mean_and_the_spread(draw: str) -> None:
    gaps = gaps_of(Pattern(gap_ms=10, draw=draw, spread=0.3), tokens=20_000)
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    # Ten standard errors of a seeded draw: fixed figures, not chance.
    assert mean == pytest.approx(10 * MS, rel=0.03)
    assert deviation == pytest.approx(3 * MS, rel=0.1)
    assert min(gaps) >= 0


def test_drawn_gaps_depend_on_the_seed_and_the_stream_only() -> None:
    pattern = Pattern(draw="gamma")
    assert gaps_of(pattern, number=3) == gaps_of(pattern, number=3)
    assert gaps_of(pattern, number=3) != gaps_of(pattern, number=4)
    assert gaps_of(pattern, number=3) != gaps_of(Pattern(draw="gamma", seed=2), number=3)


def test_gaps_grow_with_position_context_and_open_streams() -> None:
    by_position = gaps_of(Pattern(per_position_us=2))
    assert [gap - 10 * MS for gap in by_position[:3]] == [2_000, 4_000, 6_000]
    by_context = gaps_of(Pattern(per_context_us=1), prompt_tokens=500)
    assert [gap - 10 * MS for gap in by_context[:2]] == [501_000, 502_000]
    room = Room(open_streams=1)
    gap = gap_before(Pattern(per_stream_us=100), 0, 0, room)
    alone = gap(1)
    room.open_streams = 11
    assert (alone, gap(2)) == (10 * MS, 11 * MS)


def test_a_stall_comes_at_its_token_in_its_streams() -> None:
    pattern = Pattern(stall_ms=500, stall_at=7, stall_every=2)
    assert [at for at, gap in enumerate(gaps_of(pattern, number=1), 1) if gap > 10 * MS] == [7]
    assert gaps_of(pattern, number=1)[6] == 510 * MS
    assert set(gaps_of(pattern, number=0)) == {10 * MS}


def test_a_stall_of_all_holds_up_the_room_and_not_one_gap() -> None:
    room = Room(open_streams=3)
    gap = gap_before(Pattern(stall_ms=500, stall_at=2, stall_scope="all"), 0, 0, room)
    assert (gap(1), room.held_ns) == (10 * MS, 0)
    assert (gap(2), room.held_ns) == (10 * MS, 500 * MS)


def test_random_stalls_come_as_often_as_their_chance() -> None:
    gaps = gaps_of(Pattern(stall_ms=100, stall_chance=0.05), tokens=4_001)
    assert 150 < sum(gap > 100 * MS for gap in gaps) < 250


def test_the_first_token_waits_for_the_prompt_and_the_cold_start() -> None:
    pattern = Pattern(first_token_ms=20, per_prompt_token_ms=0.5, cold_ms=1000)
    assert first_token_ns(pattern, 0, 100) == 1070 * MS
    assert first_token_ns(pattern, 1, 100) == 70 * MS
    spread = Pattern(first_token_ms=20, first_token_spread_ms=10)
    delays = [first_token_ns(spread, number, 0) for number in range(50)]
    assert min(delays) >= 20 * MS
    assert max(delays) <= 30 * MS
    assert len(set(delays)) == 50


# --- score


def test_an_answer_is_head_role_and_first_token_then_tokens_then_the_ending() -> None:
    notes = notes_of(Pattern(tokens=4, first_token_ms=30))
    assert [note.wait_ns for note in notes] == [30 * MS, 10 * MS, 10 * MS, 10 * MS]
    kinds = [[truth.KINDS[kind] for kind, _ in note.events] for note in notes]
    assert kinds == [["role", "content"], ["content"], ["content"], ["content", "finish", "done"]]
    assert [note.action for note in notes] == [GO, GO, GO, END]


def test_k_tokens_in_an_event_come_every_k_gaps() -> None:
    notes = notes_of(Pattern(tokens=8, tokens_per_event=3))
    tokens = [[count for kind, count in note.events if kind == truth.CONTENT] for note in notes]
    assert tokens == [[3], [3], [2]]
    assert [note.wait_ns for note in notes[1:]] == [30 * MS, 30 * MS]


def test_k_events_in_a_write_come_every_k_gaps() -> None:
    notes = notes_of(Pattern(tokens=8, events_per_write=4))
    contents = [sum(kind == truth.CONTENT for kind, _ in note.events) for note in notes]
    assert contents == [4, 4]
    assert notes[1].wait_ns == 40 * MS


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("api", ["chat", "text"])
def test_the_short_way_to_an_event_says_what_the_long_one_does(api: str, continuous: bool) -> None:
    options = {"include_usage": True, "continuous_usage_stats": continuous}
    body = json.dumps(body_of(stream_options=options, prompt="a b c")).encode()
    voice = Voice(ask_of(api, body, Pattern()), "run", 5, 0)
    short = voice.one_token()
    for at in (0, 1, 50, 2000):
        assert short(at) == voice.tokens(truth.CONTENT, at, 1)


def test_an_early_role_comes_at_once_and_the_first_token_keeps_its_delay() -> None:
    notes = notes_of(Pattern(tokens=2, role_early=True, first_token_ms=500))
    assert [note.wait_ns for note in notes[:2]] == [0, 500 * MS]
    assert notes[0].events == ((truth.ROLE, 0),)


def test_late_usage_and_late_done_are_writes_of_their_own() -> None:
    pattern = Pattern(tokens=2, usage_late_ms=300, done_late_ms=200)
    notes = notes_of(pattern, stream_options={"include_usage": True})
    assert [note.wait_ns for note in notes[-2:]] == [300 * MS, 200 * MS]
    assert [note.events for note in notes[-2:]] == [((truth.USAGE, 0),), ((truth.DONE, 0),)]


def test_the_finish_reason_can_come_with_the_last_token() -> None:
    reply = parsed(wire(notes_of(Pattern(tokens=3, finish_with_last=True))))
    last = reply.chunks[-1]["choices"][0]
    assert (last["finish_reason"], bool(last["delta"]["content"])) == ("stop", True)


def test_reasoning_content_and_tool_call_follow_each_other() -> None:
    notes = notes_of(Pattern(tokens=9, reasoning_tokens=4, tool_tokens=3, tokens_per_event=3))
    kinds = [(truth.KINDS[kind], size) for note in notes for kind, size in note.events]
    assert kinds == [
        ("role", 0), ("reasoning", 3), ("reasoning", 1), ("content", 2), ("tool", 3),
        ("finish", 0), ("done", 0),
    ]  # fmt: skip
    reply = parsed(wire(notes))
    calls = [
        chunk["choices"][0]["delta"]["tool_calls"][0]
        for chunk in reply.chunks
        if "tool_calls" in chunk["choices"][0]["delta"]
    ]
    assert calls[0]["function"]["name"] == "play"
    assert json.loads("".join(call["function"]["arguments"] for call in calls))["text"]
    assert len(reply.deltas("reasoning_content")) == 2
    assert reply.chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_the_length_is_the_shorter_of_the_patterns_and_the_requests() -> None:
    def length(**body: Any) -> tuple[int, str]:
        ask = ask_of("chat", json.dumps(body_of(**body)).encode(), Pattern(tokens=10))
        return ask.tokens, ask.finish_reason

    assert length() == (10, "stop")
    assert length(max_tokens=4) == (4, "length")
    assert length(max_tokens=50) == (10, "stop")
    assert length(max_completion_tokens=50, ignore_eos=True) == (50, "length")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "gpt"}, 404),
        ({"messages": []}, 400),
        ({"messages": "hello"}, 400),
        ({"max_tokens": 0}, 400),
        ({"max_tokens": "many"}, 400),
        ({"n": 2}, 400),
        ({"metronome": {"gap_ms": -5}}, 400),
        ({"metronome": [1]}, 400),
        ({"stream_options": 3}, 400),
    ],
)
def test_what_cannot_be_served_is_refused(body: dict[str, Any], status: int) -> None:
    with pytest.raises(BadRequest) as problem:
        ask_of("chat", json.dumps(body_of(**body)).encode(), Pattern())
    assert problem.value.status == status


# --- the wire's styles

styles = st.fixed_dictionaries(
    {
        "tokens": st.integers(1, 12),
        "tokens_per_event": st.integers(1, 4),
        "events_per_write": st.integers(1, 4),
        "reasoning_tokens": st.integers(0, 6),
        "tool_tokens": st.integers(0, 6),
        "line_ending": st.sampled_from(["lf", "crlf"]),
        "comments": st.booleans(),
        "framing": st.sampled_from(["chunked", "close"]),
        "chunk_extensions": st.booleans(),
        "trailers": st.booleans(),
        "terminators": st.booleans(),
        "split": st.sampled_from(["none", "writes", "chunks"]),
        "role_early": st.booleans(),
        "finish_with_last": st.booleans(),
        "usage_late_ms": st.sampled_from([0.0, 5.0]),
        "done_late_ms": st.sampled_from([0.0, 5.0]),
        "fault": st.sampled_from(["none", "trickle", "no_done", "garbage_event"]),
    }
)


def unchunked(data: bytes) -> bytes:
    """The body in the beginning of a chunked response, as far as it is there."""
    body = b""
    while match := re.match(rb"([0-9a-f]+)(;[^\r]*)?\r\n", data):
        size = int(match[1], 16)
        if size == 0:
            break
        body += data[match.end() : match.end() + size]
        data = data[match.end() + size + 2 :]
    return body


def events_so_far(data: bytes) -> int:
    head, _, rest = data.partition(b"\r\n\r\n")
    body = unchunked(rest) if b"chunked" in head else rest
    # The bytes of a line ending may be apart: a lone \r at the very end ends nothing yet.
    return len(sse_data(body.removesuffix(b"\r")))


@settings(max_examples=150, deadline=None)
@given(styles, st.integers(0, 2**16))
def test_in_every_style_the_bytes_say_the_same_and_each_write_completes_what_it_claims(
    style: dict[str, Any], cuts: int
) -> None:
    usage: dict[str, Any] = {"stream_options": {"include_usage": True}}
    notes = notes_of(Pattern(**style), room=Room(open_streams=1, cuts=cuts), **usage)
    sent, claimed = b"", 0
    for note in notes:
        sent += note.data
        claimed += len(note.events)
        assert events_so_far(sent) == claimed
    plain = {"tokens", "reasoning_tokens", "tool_tokens", "finish_with_last"}
    same = {name: value for name, value in style.items() if name in plain}
    expected = parsed(wire(notes_of(Pattern(**same), **usage)))
    good = [data for data in parsed(sent).data if '"garbage"' not in data]
    if style["fault"] == "no_done":
        good.append("[DONE]")
    assert text_of(good) == text_of(expected.data)
    assert good[-1] == "[DONE]"


def text_of(data: list[str]) -> str:
    """All texts of an answer in order, however they lie in events."""
    texts = re.findall(
        r'"(?:content|reasoning_content|arguments)":"((?:[^"\\]|\\.)*)"', "".join(data)
    )
    return "".join(texts)


def test_events_are_cut_at_every_possible_byte() -> None:
    notes = notes_of(Pattern(tokens=600, split="writes"))
    sizes = [(len(first.data), len(second.data)) for first, second in pairs(notes)]
    usual = sum(sizes[100])
    cuts = {first for first, second in sizes if first + second == usual}
    assert cuts == set(range(1, usual))


def pairs(notes: list[Note]) -> Iterator[tuple[Note, Note]]:
    body = notes[1:-1]  # without the head and the end of the body
    return zip(body[::2], body[1::2], strict=True)


def test_every_write_looks_like_the_end_and_only_the_last_is() -> None:
    notes = notes_of(Pattern(tokens=20, terminators=True))
    assert all(note.data.endswith(b"0\r\n\r\n") for note in notes)
    assert parsed(wire(notes)).data[-1] == "[DONE]"


# --- lateness


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=200))
def test_lateness_quantiles_are_within_a_bin_of_the_truth(late: list[int]) -> None:
    histogram = Lateness()
    for value in late:
        histogram.add(value)
    assert histogram.summary()["max"] == max(late) / 1000
    for share in (0.5, 0.99):
        exact = sorted(late)[max(0, -int(-share * len(late) // 1) - 1)]
        found = histogram.quantile_us(share)
        assert found is not None
        if exact < 1 << 27:
            assert 0 <= round(found * 1000) - exact <= 1024


def test_lateness_before_the_first_write_is_unknown() -> None:
    assert Lateness().summary() == {"p50": None, "p99": None, "max": None}
