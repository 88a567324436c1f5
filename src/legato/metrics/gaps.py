"""Token gaps and the times of a stream, as exact integers.

Everything that is said about latency starts from these arrays. They are pure functions of a
recording's columns: nothing is rounded, dropped for being odd, or read from a clock here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from legato.recording import CONTENT, REASONING, TOOL, Ints, Recording

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TokenChunks:
    """The token-bearing chunks of some streams, stream after stream in order of arrival."""

    stream: Ints  # row of the recording
    arrival_ns: Ints  # from the stream's send
    at_ns: Ints  # the same instant, epoch
    tokens: Ints
    before_tokens: Ints  # tokens of the stream that came in earlier chunks
    early_ns: Ints
    lag_ns: Ints
    read_index: Ints
    segments: Ints
    flags: Ints
    opens: Mask  # the first token chunk of its stream: it ends no gap

    def __len__(self) -> int:
        return len(self.stream)


@dataclass(frozen=True, slots=True)
class Gaps:
    """The time between each two consecutive token chunks of a stream."""

    chunk: Ints  # index into the token chunks: the chunk that ends the gap
    stream: Ints
    gap_ns: Ints
    tokens: Ints  # tokens of the chunk that ends the gap
    at_ns: Ints  # when the gap ended, epoch

    def __len__(self) -> int:
        return len(self.stream)


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """One entry for each stream that delivered a token. `e2e_ns` = `ttft_ns` + its gaps."""

    stream: Ints
    ttft_ns: Ints
    e2e_ns: Ints
    tokens: Ints
    first_tokens: Ints  # tokens of the first token chunk, which have no gap


def token_chunks(recording: Recording, streams: Mask) -> TokenChunks:
    """The chunks that hold tokens (content, reasoning, tool), of the streams in the mask."""
    kind = recording.kind
    bears = (recording.tokens > 0) & ((kind == CONTENT) | (kind == REASONING) | (kind == TOOL))
    chosen = np.flatnonzero(bears & streams[recording.stream_of_chunk])
    stream = recording.stream_of_chunk[chosen]
    arrival_ns = recording.arrival_ns[chosen]
    tokens = recording.tokens[chosen]
    opens = np.ones(len(stream), dtype=bool)
    opens[1:] = stream[1:] != stream[:-1]
    return TokenChunks(
        stream=stream,
        arrival_ns=arrival_ns,
        at_ns=arrival_ns + recording.ints("sent_ns", 0)[stream],
        tokens=tokens,
        before_tokens=_running_total(tokens, opens),
        early_ns=recording.early_ns[chosen],
        lag_ns=recording.lag_ns[chosen],
        read_index=recording.read_index[chosen],
        segments=recording.segments[chosen],
        flags=recording.flags[chosen],
        opens=opens,
    )


def gaps(chunks: TokenChunks) -> Gaps:
    """Consecutive differences of arrival within each stream."""
    later = np.flatnonzero(~chunks.opens)
    return Gaps(
        chunk=later,
        stream=chunks.stream[later],
        gap_ns=chunks.arrival_ns[later] - chunks.arrival_ns[later - 1],
        tokens=chunks.tokens[later],
        at_ns=chunks.at_ns[later],
    )


def stream_times(chunks: TokenChunks) -> StreamTimes:
    """First and last token of each stream, from its send."""
    first = np.flatnonzero(chunks.opens)
    last = np.append(first[1:], len(chunks)) - 1 if len(first) else first
    return StreamTimes(
        stream=chunks.stream[first],
        ttft_ns=chunks.arrival_ns[first],
        e2e_ns=chunks.arrival_ns[last],
        tokens=chunks.before_tokens[last] + chunks.tokens[last],
        first_tokens=chunks.tokens[first],
    )


def first_chunk_ns(recording: Recording) -> Ints:
    """Per stream the arrival of its first chunk of any kind, from its send; −1 without one."""
    first = recording.offsets[:-1]
    has_chunk = np.diff(recording.offsets) > 0
    arrival_ns = np.full(len(recording), -1, dtype=np.int64)
    arrival_ns[has_chunk] = recording.arrival_ns[first[has_chunk]]
    return arrival_ns


def _running_total(values: Ints, opens: Mask) -> Ints:
    """Exclusive running sum that starts anew where `opens`."""
    before = np.cumsum(values) - values
    starts = np.flatnonzero(opens)
    lengths = np.diff(np.append(starts, len(values)))
    return np.asarray(before - np.repeat(before[starts], lengths), dtype=np.int64)
