"""Time moved between gaps, not added: chunks that came together, because they were sent together
(bursts) or because the client read late (client)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.explain.clusters import clusters, half_width
from legato.explain.part import BURSTS, CLIENT, Part
from legato.explain.reads import Reads
from legato.metrics.gaps import Floats, Gaps, TokenChunks


@dataclass(frozen=True, slots=True)
class Moved:
    """Per gap, in ns: how much longer it is than an even share of its read's wait."""

    bursts_ns: Floats
    client_ns: Floats
    merged_share: float  # of gaps: came in one read with other chunks because it was late
    held_ns: float  # mean time by which sending together held tokens back, were they made evenly


def moved(found: Reads, rest_ns: Floats, chunks: TokenChunks, gaps: Gaps) -> Moved:
    """`rest_ns`: what the fit left of each read, of which bursts have what is left of the last
    read of an answer: it was sent because the answer ended, with fewer chunks or earlier."""
    whose = found.of_gap
    known = whose >= 0
    even_ns = found.wait_ns - np.where(found.flushed, rest_ns, 0.0)
    # Chunks that came with the first token: no wait, where others have the usual one.
    off_ns = gaps.gap_ns - float(even_ns.sum()) / float(found.chunks.sum())
    off_ns[known] = gaps.gap_ns[known] - (even_ns / found.chunks)[whose[known]]
    late = chunks.segments[gaps.chunk] > 1
    together = ~known
    together[known] = (found.chunks > 1)[whose[known]]
    return Moved(
        bursts_ns=np.where(late, 0.0, off_ns),
        client_ns=np.where(late, off_ns, 0.0),
        merged_share=float(np.count_nonzero(late & together)) / len(gaps),
        held_ns=_held_ns(found),
    )


def moved_parts(found: Moved, chunks: TokenChunks, gaps: Gaps) -> dict[str, Part]:
    bursts = _mean(BURSTS, found.bursts_ns, gaps)
    client = _mean(CLIENT, found.client_ns, gaps)
    assert client.mean_ns is not None
    reach_ns = (client.half_width_ns or 0.0) + _unsure_ns(chunks, gaps)
    return {BURSTS: bursts, CLIENT: Part(CLIENT, client.mean_ns, reach_ns)}


def _unsure_ns(chunks: TokenChunks, gaps: Gaps) -> float:
    """By how much the mean gap may be off because arrivals are intervals. Along a stream the
    uncertainties of all but its first and last arrival cancel."""
    first = np.flatnonzero(chunks.opens)
    last = np.append(first[1:], len(chunks)) - 1
    worst_ns = max(int(chunks.early_ns[first].sum()), int(chunks.early_ns[last].sum()))
    return worst_ns / int(gaps.tokens.sum())


def _held_ns(found: Reads) -> float:
    """Of n chunks sent together after a wait, the j-th would have come (n − j) n-ths of it
    earlier: on average the wait × (n − 1) ÷ 2n."""
    sent_together = found.alone & (found.chunks > 1)
    size = found.chunks[sent_together]
    held_ns = found.wait_ns[sent_together] * (size - 1) / 2
    return float(held_ns.sum()) / float(found.chunks.sum())


def _mean(cause: str, value_ns: Floats, gaps: Gaps) -> Part:
    """What is moved within a stream cancels, so whole streams are what varies."""
    tokens = int(gaps.tokens.sum())
    mean_ns = float(value_ns.sum()) / tokens
    first, row = np.unique(gaps.stream, return_index=True, return_inverse=True)[1:]
    off_ns = np.bincount(row, value_ns) - mean_ns * np.bincount(row, gaps.tokens)
    within = clusters(gaps.stream[first], gaps.at_ns[first])
    return Part(cause, mean_ns, half_width(off_ns / tokens, within))
