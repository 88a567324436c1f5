"""How many streams were open when, the steady window, and the throughput inside it.

Every slot counts here, warm-up included: a stream occupies the server whatever its phase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from legato.metrics.gaps import StreamTimes, TokenChunks
from legato.recording import Ints, Recording

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the run, epoch ns; empty when it ends before it starts."""

    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return max(0, self.end_ns - self.start_ns)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The sorted moments at which streams opened and closed."""

    opened_ns: Ints
    closed_ns: Ints

    def at(self, at_ns: Ints) -> Ints:
        """Streams open at each moment; one that closes at that very moment still counts."""
        opened = np.searchsorted(self.opened_ns, at_ns, side="right")
        closed = np.searchsorted(self.closed_ns, at_ns, side="left")
        return np.asarray(opened - closed, dtype=np.int64)

    def most(self) -> int:
        return int(self.at(self.opened_ns).max()) if len(self.opened_ns) else 0

    def first_reached_ns(self, streams: int) -> int | None:
        """When that many were first open together."""
        reached = np.flatnonzero(self.at(self.opened_ns) >= streams)
        return int(self.opened_ns[reached[0]]) if len(reached) else None

    def mean_in(self, window: Window) -> float:
        """The time-weighted mean of open streams in a window that is not empty."""
        start, end = window.start_ns, window.end_ns
        open_ns = (
            np.clip(self.closed_ns, start, end).sum() - np.clip(self.opened_ns, start, end).sum()
        )
        return float(open_ns) / window.length_ns


def occupancy(recording: Recording) -> Occupancy:
    sent = recording.ints("sent_ns")
    was_sent = sent >= 0
    return Occupancy(np.sort(sent[was_sent]), np.sort(recording.ints("ended_ns")[was_sent]))


def asked_concurrency(recording: Recording) -> int | None:
    settings = recording.meta.get("settings") or {}
    return settings.get("concurrency") if settings.get("mode") != "open" else None


def full_load(recording: Recording, occupied: Occupancy) -> Window | None:
    """From when the asked load was first on to when it could no longer be held."""
    if not len(occupied.opened_ns):
        return None
    asked = asked_concurrency(recording)
    start = occupied.first_reached_ns(asked) if asked else int(occupied.opened_ns[0])
    if start is None:
        return None
    drain = (recording.meta.get("load") or {}).get("drain_ns")
    # Without a note of it, the load was held until the last request was sent.
    return Window(start, int(occupied.opened_ns[-1]) if drain is None else int(drain))


def concurrency_reached(recording: Recording, occupied: Occupancy) -> float | None:
    """Closed loop: mean streams open while the asked number should have been; else none."""
    if asked_concurrency(recording) is None:
        return None
    window = full_load(recording, occupied)
    if window is None or window.length_ns == 0:
        return float(occupied.most())
    return occupied.mean_in(window)


def throughput(
    recording: Recording, occupied: Occupancy, chunks: TokenChunks, times: StreamTimes
) -> dict[str, Any]:
    """`tps`: tokens a second of a stream (median), of the system in the steady window, overall."""
    window = _steady_window(recording, occupied)
    system = None
    if window is not None and window.length_ns:
        inside = (chunks.at_ns >= window.start_ns) & (chunks.at_ns < window.end_ns)
        system = float(chunks.tokens[inside].sum()) * NS_PER_S / window.length_ns
    return {
        "stream": _stream_rate(times),
        "system": system,
        "system_window": window.length_ns / NS_PER_S if window is not None else None,
        "overall": _overall_rate(recording, chunks),
    }


def _steady_window(recording: Recording, occupied: Occupancy) -> Window | None:
    """The full load less the time in which warm-up streams were still open: their tokens are
    counted nowhere, so that time would read as slow."""
    window = full_load(recording, occupied)
    warm = recording.strings("phase") == "warmup"
    if window is None or not warm.any():
        return window
    warm_end = int(recording.ints("ended_ns")[warm].max())
    return Window(max(window.start_ns, warm_end), window.end_ns)


def _stream_rate(times: StreamTimes) -> float | None:
    decode_ns = times.e2e_ns - times.ttft_ns
    spans = decode_ns > 0
    if not spans.any():
        return None
    rate = (times.tokens - times.first_tokens)[spans] * NS_PER_S / decode_ns[spans]
    return float(np.median(rate))


def _overall_rate(recording: Recording, chunks: TokenChunks) -> float | None:
    if not len(chunks):
        return None
    start_ns = int(recording.ints("sent_ns")[np.unique(chunks.stream)].min())
    span_ns = int(chunks.at_ns.max()) - start_ns
    return float(chunks.tokens.sum()) * NS_PER_S / span_ns if span_ns > 0 else None


def throughput_of_parts(
    parts: Sequence[Recording], each: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """`system` and `overall` of several recordings: of runs that overlap, as a fleet's do, the
    rates add; of runs one after the other they average, weighted by their time."""
    spans = []
    for part in parts:
        sent = part.ints("sent_ns")
        sent = sent[sent >= 0]
        if len(sent):
            spans.append((int(sent.min()), int(part.ints("ended_ns").max())))
    spans.sort()
    together = any(later[0] < earlier[1] for earlier, later in pairwise(spans))
    known = [tps for tps in each if tps["system"] is not None and tps["system_window"]]
    window = sum(tps["system_window"] for tps in known)
    if len(known) < len(each):
        system = None
    elif together:
        system = sum(tps["system"] for tps in known)
    else:
        system = sum(tps["system"] * tps["system_window"] for tps in known) / window
    return {"system": system, "system_window": window or None}
