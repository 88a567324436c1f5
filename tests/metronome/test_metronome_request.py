"""The request side: one request at a time out of whatever bytes come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.metronome.request import MAX_BODY_BYTES, MAX_HEAD_BYTES, BadRequest, RequestParser

WITH_LENGTH = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: 1\r\n\r\n"
)
WITHOUT_BODY = b"GET /e HTTP/1.1\r\nConnection: close\r\n\r\n"


@given(st.lists(st.integers(1, len(WITH_LENGTH + CHUNKED + WITHOUT_BODY)), max_size=20))
def test_requests_come_out_the_same_however_their_bytes_are_split(cuts: list[int]) -> None:
    data = WITH_LENGTH + CHUNKED + WITHOUT_BODY
    edges = [0, *sorted(set(cuts)), len(data)]
    parser, requests = RequestParser(), []
    for start, end in pairwise(edges):
        parser.feed(data[start:end])
        while request := parser.take():
            requests.append(request)
    assert [(r.method, r.path, r.body, r.keep_alive) for r in requests] == [
        ("POST", "/a", b"hello", True),
        ("POST", "/d", b"hello", True),
        ("GET", "/e", b"", False),
    ]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"HELLO\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", 413),
        (b"GET /" + b"x" * MAX_HEAD_BYTES, 431),
    ],
)
def test_what_is_not_http_is_refused_with_a_status(data: bytes, status: int) -> None:
    parser = RequestParser()
    parser.feed(data)
    with pytest.raises(BadRequest) as problem:
        parser.take()
    assert problem.value.status == status


def test_http_1_0_closes_unless_it_asks_otherwise() -> None:
    parser = RequestParser()
    parser.feed(b"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    first, second = parser.take(), parser.take()
    assert first is not None
    assert second is not None
    assert (first.keep_alive, second.keep_alive) == (False, True)


def test_a_client_that_waits_to_be_asked_for_its_body_is_noticed() -> None:
    parser = RequestParser()
    parser.feed(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert parser.take() is None
    assert parser.wants_continue
