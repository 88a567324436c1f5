"""What the fit leaves: retransmits, stalls, and what stays unexplained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.explain.clusters import half_width
from legato.explain.model import Model
from legato.explain.part import RETRANSMITS, STALLS, UNEXPLAINED, Part
from legato.metrics.gaps import Floats, Gaps, Mask
from legato.metrics.smoothness import stalled
from legato.recording import Ints, Recording


@dataclass(frozen=True, slots=True)
class Rest:
    """Per read, in ns; the three add up to what the fit left."""

    retransmits_ns: Floats
    stalls_ns: Floats
    unexplained_ns: Floats
    retransmitting: Mask | None  # per read: its stream had retransmits; none where unknown
    stalls: Mask
    shared: Mask  # stalls during which most other streams that were receiving stalled too


def rest(recording: Recording, fitted: Model, gaps: Gaps) -> Rest:
    found = fitted.reads
    # What is left of a flushed read is a matter of bursts.
    left_ns = np.where(found.flushed, 0.0, fitted.fitted.rest_ns)
    count = recording.ints("retransmits")[found.stream]
    retransmitting = None if (count < 0).any() else count > 0
    retransmits_ns = _of_retransmits(left_ns, found.chunks, retransmitting)
    stalls = np.zeros(len(found), dtype=bool)
    long = stalled(gaps) & gaps_open_reads(fitted)
    stalls[found.of_gap[long]] = True
    stalls_ns = np.where(stalls, left_ns - retransmits_ns, 0.0)
    return Rest(
        retransmits_ns,
        stalls_ns,
        left_ns - retransmits_ns - stalls_ns,
        retransmitting,
        stalls,
        _shared(fitted, stalls),
    )


def gaps_open_reads(fitted: Model) -> Mask:
    """Per gap: it is the wait of a read, not a chunk that came along."""
    return fitted.reads.opens_read & (fitted.reads.of_gap >= 0)


def rest_parts(fitted: Model, found: Rest) -> dict[str, Part]:
    retransmits = _mean(fitted, RETRANSMITS, found.retransmits_ns)
    if found.retransmitting is None or found.retransmitting.all():
        retransmits = Part(RETRANSMITS)
    elif not found.retransmitting.any():
        retransmits = Part(RETRANSMITS, 0.0, 0.0)
    return {
        RETRANSMITS: retransmits,
        STALLS: _mean(fitted, STALLS, found.stalls_ns),
        UNEXPLAINED: _mean(fitted, UNEXPLAINED, found.unexplained_ns),
    }


def _of_retransmits(left_ns: Floats, chunks: Ints, retransmitting: Mask | None) -> Floats:
    """A recording counts retransmits by the stream, so what streams with some have left over,
    beyond what the others have, is spread over their chunks."""
    if retransmitting is None or not retransmitting.any() or retransmitting.all():
        return np.zeros(len(left_ns))
    with_some, without = (
        float(left_ns[mask].sum()) / float(chunks[mask].sum())
        for mask in (retransmitting, ~retransmitting)
    )
    return np.where(retransmitting, (with_some - without) * chunks, 0.0)


def _shared(fitted: Model, stalls: Mask) -> Mask:
    """Whether, half way through a stall, at least half of the other waits then open were stalls."""
    begin_ns, end_ns = fitted.reads.begin_ns, fitted.reads.end_ns
    middle_ns = (begin_ns + end_ns)[stalls] // 2

    def open_others(mask: Mask) -> Floats:
        opened = np.searchsorted(np.sort(begin_ns[mask]), middle_ns, side="right")
        closed = np.searchsorted(np.sort(end_ns[mask]), middle_ns, side="left")
        return np.asarray(opened - closed - 1, dtype=np.float64)

    others, stalling = open_others(np.ones(len(stalls), dtype=bool)), open_others(stalls)
    shared = np.zeros(len(stalls), dtype=bool)
    shared[stalls] = (others > 0) & (stalling >= others / 2)
    return shared


def _mean(fitted: Model, cause: str, value_ns: Floats) -> Part:
    """A mean per token; its interval is that of the values, the fit taken as given."""
    mean_ns = float(value_ns.sum()) * fitted.per_token
    chunks = fitted.reads.chunks
    off_ns = value_ns - value_ns.sum() / chunks.sum() * chunks
    return Part(cause, mean_ns, half_width(off_ns * fitted.per_token, fitted.within))
