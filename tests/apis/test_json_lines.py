"""Lines of JSON, however the network cuts them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.wire import events
from legato.wire.events import EventTooLongError, JsonLines

DOCUMENTS = st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=8), max_size=3))


@given(DOCUMENTS, st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n"]), st.data())
def test_lines_are_the_same_however_they_are_cut(
    documents: list[dict[str, str]], end: bytes, data: st.DataObject
) -> None:
    lines = [json.dumps(document).encode() for document in documents]
    body = b"".join(line + end for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    splitter = JsonLines()
    found: list[bytes] = []
    for start, stop in zip([0, *cuts], [*cuts, len(body)], strict=True):
        piece = body[start:stop]
        found += splitter.feed(piece)
        last_line = body[:stop].removesuffix(b"\n").rpartition(b"\n")[2]
        assert splitter.ended == (piece.endswith(b"\n") and last_line.strip() != b"")
    assert found == lines
    assert splitter.finish() == []


def test_a_line_is_there_when_its_end_is() -> None:
    splitter = JsonLines()
    assert splitter.feed(b'{"a":') == []
    assert splitter.feed(b'1}\n{"b"') == [b'{"a":1}']
    assert not splitter.ended
    assert splitter.feed(b":2}") == []
    assert splitter.finish() == [b'{"b":2}']


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "MAX_EVENT_BYTES", 100)
    splitter = JsonLines()
    for _ in range(10):
        splitter.feed(b"0123456789")
    with pytest.raises(EventTooLongError):
        splitter.feed(b"0")
    assert splitter.feed(b"1\n") == [b"1"]
