"""Recordings of a server that keeps the metronome's pace exactly: no socket, no clock, no error.

The pace is the metronome's own code, so a cause has the coefficient its pattern names.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from legato.metronome.pace import NS_PER_MS, Room, first_token_ns, gap_before
from legato.metronome.pattern import Pattern
from legato.recording import CONTENT, HAS_CHOICES, Recording, Stream

EPOCH_NS = 1_700_000_000_000_000_000


@dataclass(slots=True)
class Answer:
    number: int
    prompt_tokens: int
    sent_ns: int
    gap: Callable[[int], int]
    held_ns: int  # what the room had been held up by when this was last looked at
    arrivals_ns: list[int] = field(default_factory=list)


def closed_loop(
    pattern: Pattern,
    *,
    slots: int,
    requests: int,
    prompts: Sequence[int] = (20,),
    stagger_ms: float = 3.7,
    seed: int = 1,
) -> Recording:
    """Each slot sends its next request as soon as its answer has ended."""
    first_ns = [round(slot * stagger_ms * NS_PER_MS) for slot in range(slots)]
    return simulate(pattern, first_ns, requests, prompts, seed, reissue=True)


def open_loop(
    pattern: Pattern,
    *,
    rate: float,
    requests: int,
    prompts: Sequence[int] = (20,),
    seed: int = 1,
) -> Recording:
    """Poisson arrivals: the number of open streams goes up and down by itself."""
    draw, now, sends_ns = random.Random(seed), 0.0, []
    for _ in range(requests):
        now += draw.expovariate(rate)
        sends_ns.append(round(now * 1e9))
    return simulate(pattern, sends_ns, requests, prompts, seed, reissue=False)


def simulate(
    pattern: Pattern,
    sends_ns: Sequence[int],
    requests: int,
    prompts: Sequence[int],
    seed: int,
    *,
    reissue: bool,
) -> Recording:
    room, draw = Room(), random.Random(seed)
    # (when, order, what): a request to send (an index) or the next write of an answer
    events: list[tuple[int, int, Answer | None]] = [(t, i, None) for i, t in enumerate(sends_ns)]
    heapq.heapify(events)
    order, sent, streams = len(sends_ns), 0, []
    per_write = pattern.events_per_write * pattern.tokens_per_event
    while events:
        now_ns, _, answer = heapq.heappop(events)
        order += 1
        if answer is None:
            if sent == requests:
                continue
            prompt_tokens = draw.choice(prompts)
            room.open_streams += 1
            room.held_ns += round(pattern.interference_ms * NS_PER_MS)
            gap = gap_before(pattern, sent, prompt_tokens, room)
            answer = Answer(sent, prompt_tokens, now_ns, gap, room.held_ns)
            wait_ns = first_token_ns(pattern, sent, prompt_tokens)
            heapq.heappush(events, (now_ns + wait_ns, order, answer))
            sent += 1
            continue
        if answer.held_ns != room.held_ns:
            late_ns = room.held_ns - answer.held_ns
            answer.held_ns = room.held_ns
            heapq.heappush(events, (now_ns + late_ns, order, answer))
            continue
        position = len(answer.arrivals_ns)
        tokens = min(per_write, pattern.tokens - position)
        answer.arrivals_ns += [now_ns - answer.sent_ns] * tokens
        position += tokens
        if position < pattern.tokens:
            wait_ns = sum(answer.gap(p) for p in range(position - tokens + 1, position + 1))
            heapq.heappush(events, (now_ns + wait_ns, order, answer))
            continue
        room.open_streams -= 1
        streams.append(_stream(pattern, answer, now_ns))
        if reissue:
            heapq.heappush(events, (now_ns, order, None))
    return Recording.from_streams(streams)


def _stream(pattern: Pattern, answer: Answer, ended_ns: int) -> Stream:
    step = pattern.tokens_per_event
    arrivals_ns = answer.arrivals_ns[::step]
    count = len(arrivals_ns)
    values: dict[str, Any] = {
        "arrival_ns": arrivals_ns,
        "lag_ns": [5_000] * count,
        "early_ns": [0] * count,
        "read_index": [i // pattern.events_per_write for i in range(count)],
        "segments": [1] * count,
        "tokens": [min(step, pattern.tokens - i * step) for i in range(count)],
        "kind": [CONTENT] * count,
        "flags": [HAS_CHOICES] * count,
    }
    return Stream(
        stream_id=answer.number,
        scheduled_ns=EPOCH_NS + answer.sent_ns,
        sent_ns=EPOCH_NS + answer.sent_ns,
        ended_ns=EPOCH_NS + ended_ns,
        status="ok",
        prompt_tokens=answer.prompt_tokens,
        output_tokens=pattern.tokens,
        retransmits=0,
        token_source="token_ids",
        **values,
    )
