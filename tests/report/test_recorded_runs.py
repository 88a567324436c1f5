"""From a recording through the real summary to the words and the page."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from legato.metrics.summary import summarise
from legato.recording import CONTENT, HAS_CHOICES, Recording, Stream
from legato.report.terminal import render
from legato.report.words import verdict_words

MS = 1_000_000
START_NS = 1_700_000_000_000_000_000


def stream(
    number: int, *, per_read: int = 1, per_event: int = 1, read_late: bool = False
) -> Stream:
    """96 tokens, 10 ms apart on average: `per_event` in a chunk, `per_read` chunks in a read,
    which came in one segment or, when read late, in one segment each."""
    chunks = 96 // per_event
    reads = [chunk // per_read for chunk in range(chunks)]
    period_ns = 10 * MS * per_event * per_read
    last = [(chunk + 1) % per_read == 0 for chunk in range(chunks)]
    early = [0 if at_end or not read_late else 5 * MS for at_end in last]
    sent_ns = START_NS + number * 20 * MS
    arrival = [50 * MS + read * period_ns for read in reads]
    return Stream(
        number,
        sent_ns,
        sent_ns + arrival[-1] + MS,
        "ok",
        sent_ns=sent_ns,
        first_byte_ns=sent_ns + MS,
        token_source="chunk_usage",
        arrival_ns=arrival,
        lag_ns=[30_000] * chunks,
        early_ns=early,
        read_index=reads,
        segments=[per_read if read_late else 1] * chunks,
        tokens=[per_event] * chunks,
        kind=[CONTENT] * chunks,
        flags=[HAS_CHOICES] * chunks,
    )


def words(**shape: int | bool) -> list[str]:
    streams = [stream(number, **shape) for number in range(40)]  # type: ignore[arg-type]
    summary = summarise(Recording.from_streams(streams))
    render(summary, Console(file=io.StringIO(), width=80))
    return verdict_words(summary)


def test_a_recording_of_even_tokens_is_smooth() -> None:
    assert words()[0] == "smooth"


def test_four_events_in_one_segment_are_a_burst() -> None:
    assert words(per_read=4)[0] == "bursty: 4 tokens at a time, several events in one segment"


def test_three_tokens_in_one_event_are_a_burst() -> None:
    assert words(per_event=3)[0] == "bursty: 3 tokens at a time, inside one event"


@pytest.mark.parametrize("per_read", [2, 4])
def test_the_same_chunks_read_late_are_neither_a_burst_nor_smooth(per_read: int) -> None:
    said = words(per_read=per_read, read_late=True)
    assert not any("bursty" in sentence for sentence in said)
    assert "smooth" not in said


def test_no_stream_at_all_is_nothing_measured() -> None:
    summary = summarise(Recording.from_streams([]))
    assert verdict_words(summary) == ["nothing was measured: no request was completed"]
