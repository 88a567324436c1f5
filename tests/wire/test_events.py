"""Server-sent events come out the same however the bytes were cut.

The oracle is the line-by-line reading of the WHATWG specification, written for clarity.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.wire import events
from legato.wire.events import EventTooLongError, ServerSentEvents

LINES = [
    b"data: one",
    b"data:two",
    b"data",
    b"data:",
    b"data:  spaced",
    b'data: {"a": "b\\n\\n"}',
    b"data: caf\xc3\xa9",
    b"datax: no",
    b" data: no",
    b": a comment",
    b"event: message",
    b"id: 7",
    b"retry: 10",
    b"0",
    b"",
    b"",
]
texts = st.lists(
    st.tuples(st.sampled_from(LINES), st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=14
).map(lambda lines: b"".join(line + end for line, end in lines))


def by_lines(text: bytes) -> list[bytes]:
    """Every event that a blank line completed."""
    found: list[bytes] = []
    data: list[bytes] = []
    for line in text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")[:-1]:
        if not line:
            joined = b"\n".join(data)
            found += [joined] if joined else []
            data = []
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
    return found


def split(*pieces: bytes) -> list[bytes]:
    splitter = ServerSentEvents()
    return [event for piece in pieces for event in splitter.feed(piece)]


@settings(deadline=None)
@given(texts)
def test_events_are_those_of_the_specification(text: bytes) -> None:
    assert split(text) == by_lines(text)


@settings(deadline=None)
@given(texts)
def test_a_text_cut_in_two_at_any_byte_gives_the_same_events(text: bytes) -> None:
    whole = split(text)
    for cut in range(len(text) + 1):
        assert split(text[:cut], text[cut:]) == whole


@settings(deadline=None)
@given(texts, st.data())
def test_a_text_cut_anywhere_any_number_of_times_gives_the_same_events(
    text: bytes, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert split(*pieces) == split(text)
    assert split(*(text[i : i + 1] for i in range(len(text)))) == split(text)


@settings(deadline=None)
@given(texts)
def test_an_event_comes_out_with_the_very_byte_that_completes_it(text: bytes) -> None:
    splitter = ServerSentEvents()
    found: list[bytes] = []
    for i in range(len(text)):
        found += splitter.feed(text[i : i + 1])
        # A CR may be half of a CRLF, but it ends its line at once.
        assert found == by_lines(text[: i + 1])


@settings(deadline=None)
@given(texts)
def test_the_end_of_the_body_completes_an_event_whose_blank_line_is_missing(text: bytes) -> None:
    splitter = ServerSentEvents()
    assert splitter.feed(text) + splitter.finish() == by_lines(text + b"\n\n")


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_what_was_fed_ends_with_an_event_only_if_nothing_follows_it(end: bytes) -> None:
    splitter = ServerSentEvents()
    assert not splitter.ended
    splitter.feed(b"data: x")
    assert not splitter.ended
    splitter.feed(end)
    assert splitter.ended
    splitter.feed(b"data: y" + end + b": a comment" + end)
    assert not splitter.ended
    splitter.feed(b"data: y" + end + b"data: z")
    assert not splitter.ended


def test_an_event_that_never_ends_is_refused_and_not_kept() -> None:
    splitter = ServerSentEvents()
    piece = b"x" * (8 * 1024 * 1024)
    for _ in range(events.MAX_EVENT_BYTES // len(piece)):
        splitter.feed(piece)
    with pytest.raises(EventTooLongError):
        splitter.feed(b"x")
    assert splitter.feed(b"data: y\n\n") == [b"y"]
