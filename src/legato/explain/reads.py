"""Token gaps gathered by the arrival that ended them.

Chunks that came in one read, or so close that they must have been sent together, are one arrival:
the first of them has the wait, the others none to speak of. What explains a wait acts on the
arrival, so causes are fitted there and then shared out. It is called a read, as most are one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legato.metrics.gaps import Gaps, Mask, TokenChunks
from legato.recording import Ints

# Below this share of the usual gap two chunks came together: a server that was held up and then
# caught up writes what was due at once, in writes of their own.
TOGETHER_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Reads:
    """The reads of each stream that hold token chunks, but for its first; and, for each gap, the
    read that it belongs to."""

    stream: Ints
    begin_ns: Ints  # arrival of the read before, epoch
    end_ns: Ints
    chunks: Ints  # token chunks in the read
    tokens: Ints
    chunk_position: Ints  # sum over its chunks of the tokens of the answer before each
    alone: Mask  # one segment: what it holds was sent together, none of it waited for the client
    last: Mask  # of its stream
    flushed: Mask  # the last of a stream whose chunks come in bursts: sent because the answer ended
    of_gap: Ints  # per gap its read; −1 for the chunks that came with the first token
    opens_read: Mask  # per gap: its chunk is the first of its read

    def __len__(self) -> int:
        return len(self.stream)

    @property
    def wait_ns(self) -> Ints:
        return self.end_ns - self.begin_ns


def reads(chunks: TokenChunks, gaps: Gaps) -> Reads:
    """Gather; a read's arrival is that of its last token chunk."""
    new = np.ones(len(chunks), dtype=bool)
    near = np.zeros(len(chunks), dtype=bool)
    near[gaps.chunk] = gaps.gap_ns < TOGETHER_SHARE * _usual_ns(gaps.gap_ns)
    same_read = chunks.read_index[1:] == chunks.read_index[:-1]
    new[1:] = chunks.opens[1:] | ~(same_read | near[1:])
    group = np.cumsum(new) - 1
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(chunks)) - 1 if len(first) else first
    counted = np.flatnonzero(~chunks.opens[first]) if len(first) else first
    number = np.full(len(first), -1, dtype=np.int64)
    number[counted] = np.arange(len(counted))
    size = last - first + 1
    tokens = _total(chunks.tokens, first)
    position = _total(chunks.before_tokens, first)
    bursts = np.zeros(int(chunks.stream.max(initial=-1)) + 1, dtype=bool)
    bursts[chunks.stream[first[(size > 1) & (chunks.segments[last] == 1)]]] = True
    ends_stream = np.append(chunks.opens[first[1:]], True) if len(first) else new
    return Reads(
        stream=chunks.stream[first[counted]],
        begin_ns=chunks.at_ns[last[counted - 1]],
        end_ns=chunks.at_ns[last[counted]],
        chunks=size[counted],
        tokens=tokens[counted],
        chunk_position=position[counted],
        alone=chunks.segments[last[counted]] <= 1,
        last=ends_stream[counted],
        flushed=(ends_stream & bursts[chunks.stream[first]])[counted],
        of_gap=number[group[gaps.chunk]],
        opens_read=new[gaps.chunk],
    )


def _usual_ns(gap_ns: Ints) -> float:
    """The gap in which the middle of all waiting time lies: chunks that come together, however
    many, do not pull it down as they would a median."""
    ordered = np.sort(gap_ns)
    upto = np.cumsum(ordered)
    if not len(ordered):
        return 0.0
    return float(ordered[min(np.searchsorted(upto, upto[-1] / 2), len(ordered) - 1)])


def _total(values: Ints, first: Ints) -> Ints:
    return np.asarray(np.add.reduceat(values, first) if len(first) else values, dtype=np.int64)
