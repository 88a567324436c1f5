"""Gaps and stream times are exact integers, whatever the stream holds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from made_streams import chunks_of, gaps_of, recording, stream

from legato.metrics.gaps import first_chunk_ns, gaps, stream_times, token_chunks
from legato.recording import CONTENT, DONE, FINISH, REASONING, ROLE, TOOL, USAGE, Stream

KINDS = st.sampled_from([ROLE, CONTENT, REASONING, TOOL, FINISH, USAGE, DONE])


@st.composite
def any_stream(draw: st.DrawFn) -> Stream:
    chunks = draw(
        st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 5), KINDS), max_size=30)
    )
    arrivals = sorted(arrival for arrival, _, _ in chunks)
    return stream(
        [0.0] * len(chunks),
        tokens=[tokens for _, tokens, _ in chunks],
        kind=[kind for _, _, kind in chunks],
        arrival_ns=arrivals,
    )


@given(st.lists(any_stream(), min_size=1, max_size=5))
def test_end_to_end_is_the_first_token_plus_every_gap_to_the_nanosecond(
    streams: list[Stream],
) -> None:
    chunks = chunks_of(*streams)
    found, times = gaps(chunks), stream_times(chunks)
    for row, ttft, e2e in zip(times.stream, times.ttft_ns, times.e2e_ns, strict=True):
        assert e2e == ttft + found.gap_ns[found.stream == row].sum()


@given(st.lists(any_stream(), min_size=1, max_size=5))
def test_every_token_but_those_of_the_first_chunk_has_a_gap(streams: list[Stream]) -> None:
    chunks = chunks_of(*streams)
    found, times = gaps(chunks), stream_times(chunks)
    for row, tokens, first in zip(times.stream, times.tokens, times.first_tokens, strict=True):
        assert found.tokens[found.stream == row].sum() == tokens - first


def test_only_chunks_that_hold_tokens_make_gaps() -> None:
    found = gaps_of(
        stream(
            [5, 50, 60, 65, 70, 90, 91],
            tokens=[0, 1, 1, 0, 1, 0, 0],
            kind=[ROLE, CONTENT, CONTENT, CONTENT, CONTENT, USAGE, DONE],
        )
    )
    assert found.gap_ns.tolist() == [10_000_000, 10_000_000]


def test_reasoning_and_tool_tokens_are_tokens() -> None:
    found = gaps_of(stream([50, 60, 75], kind=[REASONING, TOOL, CONTENT]))
    assert found.gap_ns.tolist() == [10_000_000, 15_000_000]


def test_no_gap_reaches_from_one_stream_into_the_next() -> None:
    found = gaps_of(stream([50, 60]), stream([], status="http_error"), stream([40, 70]))
    assert found.stream.tolist() == [0, 2]
    assert found.gap_ns.tolist() == [10_000_000, 30_000_000]


def test_tokens_before_a_chunk_are_counted_within_its_stream() -> None:
    chunks = chunks_of(stream([1, 2, 3], tokens=[2, 3, 1]), stream([1, 2], tokens=[4, 1]))
    assert chunks.before_tokens.tolist() == [0, 2, 5, 0, 4]


def test_a_mask_chooses_streams() -> None:
    made = recording(stream([50, 60]), stream([70, 80]))
    assert token_chunks(made, np.array([False, True])).arrival_ns.tolist() == [
        70_000_000,
        80_000_000,
    ]


def test_the_first_chunk_of_any_kind_counts_for_the_time_to_any_chunk() -> None:
    made = recording(stream([5, 50], tokens=[0, 1], kind=[ROLE, CONTENT]), stream([]))
    assert first_chunk_ns(made).tolist() == [5_000_000, -1]
