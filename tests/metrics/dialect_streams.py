"""Streams small enough to work a tool's figures out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from legato.metrics.dialects import all_dialects
from legato.recording import (
    CONTENT,
    DONE,
    EMPTY,
    FINISH,
    HAS_CHOICES,
    HAS_FINISH,
    HAS_USAGE,
    ROLE,
    USAGE,
    Recording,
    Stream,
)

MS = 1_000_000

_FLAGS = {
    ROLE: HAS_CHOICES | EMPTY,
    FINISH: HAS_CHOICES | HAS_FINISH,
    USAGE: HAS_USAGE,
    DONE: 0,
}

# (ms from the send, kind, tokens, flags beside those of the kind)
Event = tuple[float, int, int] | tuple[float, int, int, int]

# The stream most tests use. Five tokens in three chunks; the role chunk is early, finish,
# usage and [DONE] are late; the response ends at 152 ms.
EXAMPLE: list[Event] = [
    (20, ROLE, 0),
    (50, CONTENT, 1),
    (80, CONTENT, 3),
    (90, CONTENT, 1),
    (95, FINISH, 0),
    (145, USAGE, 0),
    (150, DONE, 0),
]


def stream(events: Sequence[Event], *, ended_ms: float, sent_ms: float = 0, **more: Any) -> Stream:
    """A stream with a tokenizer's counts: each chunk re-encodes to the tokens it holds."""
    tokens = [event[2] for event in events]
    zeros = [0] * len(events)
    sent_ns = round(sent_ms * MS)
    values: dict[str, Any] = {
        "stream_id": 0,
        "status": "ok",
        "scheduled_ns": sent_ns,
        "sent_ns": sent_ns,
        "ended_ns": sent_ns + round(ended_ms * MS),
        "output_tokens": sum(tokens),
        "text_tokens": sum(tokens),
        "retokens": tokens,
        "arrival_ns": [round(event[0] * MS) for event in events],
        "tokens": tokens,
        "kind": [event[1] for event in events],
        "flags": [_FLAGS.get(event[1], HAS_CHOICES) | sum(event[3:]) for event in events],
        "lag_ns": zeros,
        "early_ns": zeros,
        "read_index": list(range(len(events))),
        "segments": [1] * len(events),
    }
    return Stream(**(values | more))


def example(**more: Any) -> Stream:
    return stream(EXAMPLE, ended_ms=152, **more)


def dialect(name: str, *streams: Stream, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    return all_dialects(Recording.from_streams(streams, meta))[name]


def ramp() -> list[Stream]:
    """Ten answers of two tokens 10 ms apart, the first after 10, 20, … 100 ms."""
    return [
        stream(
            [
                (t, CONTENT, 1),
                (t + 10, CONTENT, 1, HAS_FINISH),
                (t + 10, USAGE, 0),
                (t + 10, DONE, 0),
            ],
            ended_ms=t + 10,
        )
        for t in range(10, 101, 10)
    ]
