"""Simulated recordings of known speed for the tests of compare."""

from __future__ import annotations

from typing import Any

import numpy as np

from legato.compare.comparison import Side
from legato.recording import CONTENT, HAS_CHOICES, Recording, Stream

EPOCH_NS = 1_700_000_000_000_000_000
SLOTS = 10


def run(
    seed: int,
    *,
    gap_ms: float = 10.0,
    streams: int = 100,
    tokens: int = 50,
    spread: float = 0.3,
    failed: int = 0,
    chunk_tokens: int = 1,
    meta: dict[str, Any] | None = None,
    **fields: Any,
) -> Recording:
    """A closed loop of ten slots with lognormal gaps; the last `failed` streams were cut."""
    rng = np.random.default_rng(seed)
    free_ns = [0] * SLOTS
    made = []
    for number in range(streams):
        slot = number % SLOTS
        gaps_ns = gap_ms * 1e6 * rng.lognormal(0, spread, tokens)
        arrival_ns = np.cumsum(np.round(gaps_ns)).astype(np.int64)
        sent_ns = EPOCH_NS + free_ns[slot]
        free_ns[slot] += int(arrival_ns[-1])
        status = "aborted" if number >= streams - failed else "ok"
        values: dict[str, Any] = {
            "stream_id": number,
            "scheduled_ns": sent_ns,
            "sent_ns": sent_ns,
            "ended_ns": sent_ns + int(arrival_ns[-1]),
            "status": status,
            "prompt_tokens": 256,
            "token_source": "chunk_usage",
            "arrival_ns": arrival_ns,
            "lag_ns": np.full(tokens, 5_000),
            "early_ns": np.zeros(tokens, np.int64),
            "read_index": np.arange(tokens),
            "segments": np.ones(tokens, np.int64),
            "tokens": np.full(tokens, chunk_tokens),
            "kind": np.full(tokens, CONTENT),
            "flags": np.full(tokens, HAS_CHOICES),
        }
        made.append(Stream(**(values | fields)))
    settings = {"mode": "closed", "api": "chat", "concurrency": SLOTS, "model": "m"}
    return Recording.from_streams(made, {"settings": settings, **(meta or {})})


def side(letter: str, *runs: Recording) -> Side:
    names = tuple(f"{letter.lower()}-{number}" for number in range(1, len(runs) + 1))
    return Side(letter, names, runs)
