"""Hand-made streams and recordings for the tests of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legato.metrics.gaps import Gaps, TokenChunks, gaps, token_chunks
from legato.recording import CONTENT, HAS_CHOICES, Recording, Stream

MS = 1_000_000
EPOCH_NS = 1_700_000_000_000_000_000


def stream(
    arrivals_ms: Sequence[float],
    *,
    tokens: Sequence[int] | None = None,
    kind: Sequence[int] | None = None,
    early_ms: Sequence[float] | None = None,
    reads: Sequence[int] | None = None,
    segments: Sequence[int] | None = None,
    flags: Sequence[int] | None = None,
    start_ms: float = 0.0,
    end_ms: float | None = None,
    late_ms: float = 0.0,
    **fields: Any,
) -> Stream:
    """A stream sent `start_ms` into the run, `late_ms` after it was due; times from its send."""
    n = len(arrivals_ms)
    sent_ns = EPOCH_NS + round(start_ms * MS)
    last_ms = max(arrivals_ms, default=0.0) if end_ms is None else end_ms
    values: dict[str, Any] = {
        "stream_id": 0,
        "status": "ok",
        "scheduled_ns": sent_ns - round(late_ms * MS),
        "sent_ns": sent_ns,
        "ended_ns": sent_ns + round(last_ms * MS),
        "arrival_ns": [round(a * MS) for a in arrivals_ms],
        "lag_ns": [5_000] * n,
        "early_ns": [round(e * MS) for e in early_ms or [0] * n],
        "read_index": list(reads or range(n)),
        "segments": list(segments or [1] * n),
        "tokens": list(tokens if tokens is not None else [1] * n),
        "kind": list(kind or [CONTENT] * n),
        "flags": list(flags or [HAS_CHOICES] * n),
    }
    return Stream(**(values | fields))


def recording(*streams: Stream, **meta: Any) -> Recording:
    return Recording.from_streams(streams, meta)


def chunks_of(*streams: Stream) -> TokenChunks:
    made = recording(*streams)
    return token_chunks(made, np.ones(len(made), dtype=bool))


def gaps_of(*streams: Stream) -> Gaps:
    return gaps(chunks_of(*streams))


def steady(count: int, n_tokens: int = 30, gap_ms: float = 10.0, **fields: Any) -> list[Stream]:
    """Streams of one token a chunk at a constant gap, all sent together."""
    arrivals = [50 + gap_ms * i for i in range(n_tokens)]
    return [stream(arrivals, **fields) for _ in range(count)]
