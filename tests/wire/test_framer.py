"""The framer finds the end and the body of any HTTP/1.1 response, however its bytes are cut.

The oracles are `h11`, an HTTP parser that shares no code with ours, and the framer itself fed in
one piece.
"""

from __future__ import annotations

from dataclasses import dataclass

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from legato.wire.framer import MAX_HEAD_BYTES, MAX_LINE_BYTES, Framer, State

TERMINATORS = (b"0\r\n\r\n", b"\r\n0\r\n\r\n", b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"5\r\n")

payloads = st.lists(
    st.one_of(st.binary(min_size=1, max_size=40), st.sampled_from(TERMINATORS)), max_size=6
)
extensions = st.sampled_from([b"", b";a", b";a=b", b';pulse="0;1"', b" ", b";x=\t1"])
trailers = st.lists(st.sampled_from([b"X-Sum: 1", b"Expires: 0", b"X-Empty:"]), max_size=2)
interim = st.lists(
    st.sampled_from([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"]),
    max_size=2,
)


@dataclass(frozen=True)
class Response:
    wire: bytes
    body: bytes
    closes: bool  # the end of the connection ends it


@st.composite
def responses(draw: st.DrawFn) -> Response:
    pieces = draw(payloads)
    body = b"".join(pieces)
    kind = draw(st.sampled_from(["chunked", "length", "close", "empty"]))
    head = b"".join(draw(interim))
    if kind == "empty":
        return Response(head + b"HTTP/1.1 204 No Content\r\n\r\n", b"", False)
    head += b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    if kind == "close":
        return Response(head + b"\r\n" + body, body, True)
    if kind == "length":
        return Response(head + b"content-LENGTH:  %d \r\n\r\n" % len(body) + body, body, False)
    wire = head + b"Transfer-Encoding: Chunked\r\n\r\n"
    for piece in pieces:
        size = draw(st.sampled_from([b"%x", b"%X", b"0%x", b"00000%X"])) % len(piece)
        wire += size + draw(extensions) + b"\r\n" + piece + b"\r\n"
    last = draw(st.sampled_from([b"0", b"000"])) + draw(extensions)
    wire += last + b"\r\n" + b"".join(t + b"\r\n" for t in draw(trailers)) + b"\r\n"
    return Response(wire, body, False)


@dataclass(frozen=True)
class Framed:
    state: State
    error: str
    body: bytes
    consumed: int
    status: int | None


def frame(*pieces: bytes, eof: bool = False) -> Framed:
    """Feed the pieces one after the other, each at an odd place of a larger buffer."""
    spans: list[tuple[int, int]] = []
    framer = Framer(spans)
    body = bytearray()
    consumed = 0
    for piece in pieces:
        buffer = b"\n0\r\n" + piece + b"\r\n0\r\n\r\n"
        spans.clear()
        consumed += framer.feed(buffer, 4, 4 + len(piece)) - 4
        for start, end in spans:
            body += buffer[start:end]
    if eof:
        framer.eof()
    status = None if framer.head is None else framer.head.status
    return Framed(framer.state, framer.error, bytes(body), consumed, status)


def by_h11(response: Response) -> bytes:
    """The body as `h11` reads it; it must also find the response complete."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(response.wire)
    if response.closes:
        connection.receive_data(b"")
    body = b""
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        assert event is not h11.NEED_DATA
        if isinstance(event, h11.Data):
            body += bytes(event.data)
    return body


@settings(deadline=None)
@given(responses())
def test_a_response_is_done_exactly_at_its_last_byte_with_the_body_that_h11_finds(
    response: Response,
) -> None:
    framed = frame(response.wire, eof=response.closes)
    assert framed.state == State.DONE
    assert framed.consumed == len(response.wire)
    assert framed.body == response.body == by_h11(response)


@settings(deadline=None)
@given(responses())
def test_no_response_is_done_before_its_last_byte(response: Response) -> None:
    for cut in range(len(response.wire)):
        assert frame(response.wire[:cut]).state not in (State.DONE, State.BROKEN)


@settings(deadline=None)
@given(responses())
def test_a_response_cut_in_two_at_any_byte_is_framed_as_when_it_comes_whole(
    response: Response,
) -> None:
    whole = frame(response.wire, eof=response.closes)
    for cut in range(1, len(response.wire)):
        assert frame(response.wire[:cut], response.wire[cut:], eof=response.closes) == whole


@settings(deadline=None)
@given(responses())
def test_a_response_that_comes_byte_by_byte_is_framed_as_when_it_comes_whole(
    response: Response,
) -> None:
    pieces = [response.wire[i : i + 1] for i in range(len(response.wire))]
    assert frame(*pieces, eof=response.closes) == frame(response.wire, eof=response.closes)


@settings(deadline=None)
@given(
    st.binary(max_size=60),
    st.sampled_from([b"", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]),
    st.data(),
)
@example(b"\x00" * 8, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", None)
def test_garbage_breaks_or_waits_alike_wherever_it_is_cut(
    garbage: bytes, head: bytes, data: st.DataObject | None
) -> None:
    wire = head + garbage
    cut = data.draw(st.integers(0, len(wire))) if data else len(head) + 1
    whole, in_two = frame(wire), frame(wire[:cut], wire[cut:])
    assert (in_two.state, in_two.body) == (whole.state, whole.body)


@settings(deadline=None)
@given(responses().filter(lambda response: not response.closes), st.binary(min_size=1, max_size=9))
def test_bytes_after_the_end_are_left_unconsumed(response: Response, extra: bytes) -> None:
    framed = frame(response.wire + extra)
    assert framed.state == State.DONE
    assert framed.consumed == len(response.wire)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        (CHUNKED + b"-5\r\nhello\r\n", "bad chunk size"),
        (CHUNKED + b"+5\r\nhello\r\n", "bad chunk size"),
        (CHUNKED + b"0x5\r\nhello\r\n", "bad chunk size"),
        (CHUNKED + b"5_0\r\nhello\r\n", "bad chunk size"),
        (CHUNKED + b" 5\r\nhello\r\n", "bad chunk size"),
        (CHUNKED + b"\r\nhello\r\n", "bad chunk size"),
        (CHUNKED + b"g\r\n", "bad chunk size"),
        (CHUNKED + b"5 5\r\nhello\r\n", "bad chunk size"),
        (CHUNKED + b"1" * 16 + b"\r\n", "bad chunk size"),
        (CHUNKED + b"5\r\nhello!\r\n", "longer than its size"),
        (CHUNKED + b"5\r\nhelloXY", "longer than its size"),
        (CHUNKED + b"5\r\nhello\rX", "longer than its size"),
        (CHUNKED + b"5;" + b"x" * MAX_LINE_BYTES + b"\r\nhello\r\n", "never ends"),
        (CHUNKED + b"5" * (MAX_LINE_BYTES + 1), "never ends"),
        (CHUNKED + b"0\r\nX: " + b"x" * MAX_LINE_BYTES + b"\r\n\r\n", "never ends"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "bad Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0x10\r\n\r\n", "bad Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", "bad Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n", "bad Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", "bad Content-Length"),
        (b"HTTP/2 200\r\n\r\n", "not HTTP"),
        (b"SSH-2.0-OpenSSH\r\n", "not HTTP"),
        (b"HTTP/1.1 OK 200\r\n\r\n", "bad status line"),
        (b"HTTP/1.1 999 No\r\n\r\n", "bad status line"),
    ],
)
def test_what_is_not_http_is_broken_with_its_reason_whole_or_in_bytes(
    wire: bytes, reason: str
) -> None:
    for framed in (frame(wire), frame(*(wire[i : i + 1] for i in range(len(wire))))):
        assert framed.state == State.BROKEN
        assert reason in framed.error
        assert len(framed.error) < 100


def test_a_head_that_never_ends_is_broken_and_not_kept_for_ever() -> None:
    line = b"X-Filler: " + b"x" * 1000 + b"\r\n"
    pieces = [b"HTTP/1.1 200 OK\r\n", *[line] * (MAX_HEAD_BYTES // len(line) + 2)]
    framed = frame(*pieces)
    assert framed.state == State.BROKEN
    assert "head never ends" in framed.error


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\nContent-Length: 0\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: TE, Close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (CHUNKED + b"0\r\n\r\n", True),
        (CHUNKED + b"0\r\n", False),
    ],
)
def test_a_connection_is_kept_where_the_response_allows_it(head: bytes, kept: bool) -> None:
    framer = Framer()
    framer.feed(head, 0, len(head))
    assert framer.keeps_alive() is kept


def test_a_body_that_ends_with_the_connection_does_not_keep_it() -> None:
    framer = Framer()
    wire = b"HTTP/1.1 200 OK\r\n\r\nbody"
    framer.feed(wire, 0, len(wire))
    framer.eof()
    assert framer.state == State.DONE
    assert not framer.keeps_alive()


def test_the_end_of_the_connection_inside_a_delimited_body_does_not_complete_it() -> None:
    for wire in (CHUNKED + b"5\r\nhel", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", b"HTT"):
        assert frame(wire, eof=True).state not in (State.DONE, State.BROKEN)
