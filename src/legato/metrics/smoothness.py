"""How evenly the text arrives: stalls, bursts, and whether a reader would have had to wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from legato.metrics.gaps import Floats, Gaps, Mask, TokenChunks
from legato.metrics.samples import NS_PER_MS
from legato.recording import Ints

STALL_FLOOR_NS = 100_000_000
STALL_MEDIANS = 5
# A moment is shared when at least this share of the streams that were decoding stalled in it.
SHARED_STALL = 0.8
SLOW_MEDIANS = 2  # a slow gap is over this many times the median gap

FIRST_TOKEN_DEADLINE_NS = 1_000_000_000
TOKEN_DEADLINE_NS = 100_000_000


def smoothness(chunks: TokenChunks, gaps: Gaps) -> dict[str, Any]:
    """The summary's `smoothness`; null where there is no gap to judge."""
    stalls = stalled(gaps)
    moments, shared = stall_moments(gaps, stalls)
    slow_share, slow_gap_ms = _slow(gaps)
    total_ns = int(gaps.gap_ns.sum())
    streams = int(np.count_nonzero(chunks.opens))
    known = len(gaps) > 0
    return {
        "stall_count": int(np.count_nonzero(stalls)),
        "stall_ratio": int(gaps.gap_ns[stalls].sum()) / total_ns if total_ns > 0 else None,
        "streams_with_stalls": len(np.unique(gaps.stream[stalls])),
        "stall_moments": moments,
        "shared_stall_share": shared,
        "slow_share": slow_share,
        "slow_gap_ms": slow_gap_ms,
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


def stall_moments(gaps: Gaps, stalls: Mask) -> tuple[int, float | None]:
    """(fewest instants that lie inside every stall, share of stalls in shared ones).

    A server that pauses stalls all its streams at one moment; requests that stall each by
    itself need a moment each. With one stream decoding the two cannot be told apart.
    """
    if not stalls.any():
        return 0, None
    began_ns, ended_ns = np.sort(gaps.at_ns - gaps.gap_ns), np.sort(gaps.at_ns)
    moments = shared = 0
    for instant_ns, held in _instants(gaps.at_ns[stalls], gaps.gap_ns[stalls]):
        # Gaps that had begun and not ended: one for each stream between two of its tokens.
        decoding = int(np.searchsorted(began_ns, instant_ns, side="left")) - int(
            np.searchsorted(ended_ns, instant_ns, side="left")
        )
        moments += 1
        shared += held if held > 1 and held >= SHARED_STALL * decoding else 0
    return moments, shared / int(np.count_nonzero(stalls))


def _instants(ended_ns: Ints, gap_ns: Ints) -> list[tuple[int, int]]:
    """(instant, stalls that it lies in): each time the end of the first stall not yet covered."""
    order = np.argsort(ended_ns, kind="stable")
    ended_ns, began_ns = ended_ns[order], (ended_ns - gap_ns)[order]
    found: list[tuple[int, int]] = []
    for began, ended in zip(began_ns.tolist(), ended_ns.tolist(), strict=True):
        if found and began < found[-1][0]:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((ended, 1))
    return found


def _slow(gaps: Gaps) -> tuple[float | None, float | None]:
    """(share of chunk gaps over twice the median gap, the median of those in ms)."""
    if not len(gaps):
        return None, None
    slow = gaps.gap_ns > SLOW_MEDIANS * np.median(gaps.gap_ns)
    share = float(np.count_nonzero(slow) / len(gaps))
    return share, float(np.median(gaps.gap_ns[slow])) / NS_PER_MS if share else None


def burst_share(chunks: TokenChunks, gaps: Gaps) -> float:
    """Share of token gaps inside a group that the server or the network sent together: the
    tokens of one event, or of one segment."""
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
    late_ns = lateness_ns(chunks, np.full(len(chunks), FIRST_TOKEN_DEADLINE_NS))
    late = late_ns > 0
    met = int(chunks.tokens.sum()) - int(np.count_nonzero(late))
    missed = int((late_ns[late] // TOKEN_DEADLINE_NS + 1).sum())
    return met / (met + missed)


def reader_wait_ns(chunks: TokenChunks) -> int:
    """Time spent with nothing left to read by readers who start at the first token and take one
    token each `TOKEN_DEADLINE_NS`; of all streams together."""
    return int(lateness_ns(chunks, chunks.arrival_ns).sum())


def lateness_ns(chunks: TokenChunks, first_deadline_ns: Ints) -> Ints:
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
