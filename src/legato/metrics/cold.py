"""First requests apart: fresh connections, connections that slept, the very first stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from legato.metrics import samples as sample
from legato.metrics.distribution import in_ms
from legato.metrics.gaps import Mask, StreamTimes, stream_times, token_chunks
from legato.recording import Recording

IDLE_NS = 1_000_000_000  # a kept connection that slept this long starts slowly again


def cold(recording: Recording, times: StreamTimes) -> dict[str, Any]:
    """TTFT on fresh connections (`n`, `ttft_ms`), after idle, on warm ones, and of the first."""
    reused = recording.ints("reused", 0)[times.stream] == 1
    slept = recording.ints("idle_before_ns", 0)[times.stream] >= IDLE_NS
    return {
        "n": int(np.count_nonzero(~reused)),
        "ttft_ms": _ttft_ms(times, ~reused),
        "after_idle_ttft_ms": _ttft_ms(times, reused & slept),
        "warm_ttft_ms": _ttft_ms(times, reused & ~slept),
        "first_stream_ttft_ms": _first_stream_ttft_ms(recording),
    }


def _ttft_ms(times: StreamTimes, mask: Mask) -> dict[str, Any]:
    # Few streams are cold, so these figures are given however few there are, with their n.
    part = sample.per_stream(
        times.ttft_ns[mask].astype(np.float64), times.stream[mask], times.stream[mask]
    )
    return {
        "n": part.n,
        "mean": in_ms(sample.mean(part)),
        "p50": in_ms(sample.quantile(part, 0.5)),
        "max": in_ms(float(part.value_ns[-1])) if part.n else None,
    }


def _first_stream_ttft_ms(recording: Recording) -> float | None:
    """TTFT of the stream sent first, warm-up included: what a cold target shows."""
    sent = recording.ints("sent_ns")
    was_sent = np.flatnonzero(sent >= 0)
    if not len(was_sent):
        return None
    first = np.zeros(len(recording), dtype=bool)
    first[was_sent[np.argmin(sent[was_sent])]] = True
    ttft_ns = stream_times(token_chunks(recording, first)).ttft_ns
    return in_ms(float(ttft_ns[0])) if len(ttft_ns) else None
