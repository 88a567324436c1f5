"""How evenly the text arrives: stalls, bursts, and whether a reader would have had to wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from legato.metrics.gaps import Floats, Gaps, Mask, TokenChunks
from legato.metrics.samples import NS_PER_MS
from legato.recording import Ints

STALL_FLOOR_NS = 100_000_000
STALL_MEDIANS = 5

FIRST_TOKEN_DEADLINE_NS = 1_000_000_000
TOKEN_DEADLINE_NS = 100_000_000


def smoothness(chunks: TokenChunks, gaps: Gaps) -> dict[str, Any]:
    """The summary's `smoothness`; null where there is no gap to judge."""
    stalls = stalled(gaps)
    total_ns = int(gaps.gap_ns.sum())
    streams = int(np.count_nonzero(chunks.opens))
    known = len(gaps) > 0
    return {
        "stall_count": int(np.count_nonzero(stalls)),
        "stall_ratio": int(gaps.gap_ns[stalls].sum()) / total_ns if total_ns > 0 else None,
        "streams_with_stalls": len(np.unique(gaps.stream[stalls])),
        "fluidity_index": fluidity_index(chunks),
        "burst_share": burst_share(chunks, gaps) if known else None,
        "cv": _mean_cv(gaps) if known else None,
        "reader_wait_ms": reader_wait_ns(chunks) / streams / NS_PER_MS if streams else None,
    }


def stalled(gaps: Gaps) -> Mask:
    """Gaps longer than 100 ms and than five times the median gap of their stream."""
    stalls = np.asarray(gaps.gap_ns > STALL_FLOOR_NS, dtype=bool)
    # The median is needed only of streams that have a gap past the floor.
    suspect = np.flatnonzero(np.isin(gaps.stream, np.unique(gaps.stream[stalls])))
    median_ns = _median_of_stream(gaps.stream[suspect], gaps.gap_ns[suspect])
    stalls[suspect] &= gaps.gap_ns[suspect] > STALL_MEDIANS * median_ns
    return stalls


def burst_share(chunks: TokenChunks, gaps: Gaps) -> float:
    """Share of token gaps that took no time because the server or the network sent the tokens
    together: inside one event, or in one segment with the previous chunk."""
    inside_event = int((gaps.tokens - 1).sum())
    here, before = gaps.chunk, gaps.chunk - 1
    one_segment = (chunks.read_index[here] == chunks.read_index[before]) & (
        chunks.segments[here] == 1
    )
    return (inside_event + int(np.count_nonzero(one_segment))) / int(gaps.tokens.sum())


def fluidity_index(chunks: TokenChunks) -> float | None:
    """Deadlines met ÷ deadlines set, as etalon counts them: one for the first token, one for
    each later token, and for a late token every deadline that passed while it was awaited."""
    if not len(chunks):
        return None
    late_ns = _late_ns(chunks, np.full(len(chunks), FIRST_TOKEN_DEADLINE_NS))
    late = late_ns > 0
    met = int(chunks.tokens.sum()) - int(np.count_nonzero(late))
    missed = int((late_ns[late] // TOKEN_DEADLINE_NS + 1).sum())
    return met / (met + missed)


def reader_wait_ns(chunks: TokenChunks) -> int:
    """Time spent with nothing left to read by readers who start at the first token and take one
    token each `TOKEN_DEADLINE_NS`; of all streams together."""
    return int(_late_ns(chunks, chunks.arrival_ns).sum())


def _late_ns(chunks: TokenChunks, first_deadline_ns: Ints) -> Ints:
    """How long after its deadline each chunk came; 0 when in time.

    What comes early is slack for later tokens; after a late token the deadlines start anew from
    it. So token i's deadline is D·i + max(first deadline, arrival_j − D·j of earlier tokens j):
    a running maximum. Within a chunk only the first token can be late.
    """
    ahead_ns = chunks.arrival_ns - chunks.before_tokens * TOKEN_DEADLINE_NS
    previous_ns = np.concatenate([np.zeros(min(len(chunks), 1), np.int64), ahead_ns[:-1]])
    base_ns = _running_max(np.where(chunks.opens, first_deadline_ns, previous_ns), chunks.opens)
    return np.asarray(np.maximum(ahead_ns - base_ns, 0), dtype=np.int64)


def _running_max(values: Ints, opens: Mask) -> Ints:
    """Inclusive running maximum that starts anew where `opens`."""
    if not len(values):
        return values
    # Lifting each stream above all earlier ones makes one pass over all streams enough.
    lift = (np.cumsum(opens) - 1) * (int(values.max()) - int(values.min()) + 1)
    return np.asarray(np.maximum.accumulate(values + lift) - lift, dtype=np.int64)


def _median_of_stream(stream: Ints, gap_ns: Ints) -> Floats:
    """For each gap, the median gap of its stream; streams come one after another."""
    starts = _starts(stream)
    lengths = np.diff(np.append(starts, len(stream)))
    ordered = gap_ns[np.lexsort((gap_ns, stream))]
    middle = starts + (lengths - 1) // 2
    median = (ordered[middle] + ordered[starts + lengths // 2]) / 2
    return np.asarray(np.repeat(median, lengths), dtype=np.float64)


def _mean_cv(gaps: Gaps) -> float | None:
    """Standard deviation ÷ mean of the gaps of a stream, averaged over streams."""
    starts = _starts(gaps.stream)
    lengths = np.diff(np.append(starts, len(gaps)))
    means = np.add.reduceat(gaps.gap_ns, starts) / lengths
    squares = np.add.reduceat((gaps.gap_ns - np.repeat(means, lengths)) ** 2, starts)
    usable = (lengths > 1) & (means > 0)
    if not usable.any():
        return None
    return float(np.mean(np.sqrt(squares[usable] / lengths[usable]) / means[usable]))


def _starts(stream: Ints) -> Ints:
    changes = np.flatnonzero(stream[1:] != stream[:-1]) + 1
    return np.concatenate([np.zeros(min(len(stream), 1), np.int64), changes])
