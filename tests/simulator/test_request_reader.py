from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.simulator.request_reader import BadRequestError, RequestReader

POST = b"POST /v1/x?a=b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /y HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n"
)
GET = b"GET /z HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"


def read_all(pieces) -> list:
    reader, found = RequestReader(), []
    for piece in pieces:
        reader.feed(piece)
        while (request := reader.next_request()) is not None:
            found.append(request)
    return found


@given(st.lists(st.integers(0, 500)))
def test_any_cutting_gives_the_same_requests(cuts):
    raw = POST + CHUNKED + GET + POST
    edges = sorted({0, len(raw), *(cut % len(raw) for cut in cuts)})
    found = read_all(raw[a:b] for a, b in pairwise(edges))
    assert [(r.method, r.path, r.body) for r in found] == [
        ("POST", "/v1/x", b"hello"),
        ("POST", "/y", b"abcde"),
        ("GET", "/z", b""),
        ("POST", "/v1/x", b"hello"),
    ]


def test_closing_is_as_each_version_has_it():
    [kept, also_kept] = read_all([POST, GET])
    assert not kept.wants_close
    assert also_kept.http10
    assert not also_kept.wants_close
    [closed] = read_all([b"GET / HTTP/1.0\r\n\r\n"])
    assert closed.wants_close
    [told] = read_all([b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n"])
    assert told.wants_close


def test_an_absolute_target_is_cut_to_its_path():
    [request] = read_all([b"GET http://127.0.0.1:1/v1/models?x HTTP/1.1\r\nHost: h\r\n\r\n"])
    assert request.path == "/v1/models"


def test_it_asks_for_a_body_that_waits():
    reader = RequestReader()
    reader.feed(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
    assert reader.next_request() is None
    assert reader.wants_continue
    reader.feed(b"abc")
    assert reader.next_request().body == b"abc"
    assert not reader.wants_continue


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000, 431),
    ],
)
def test_what_is_no_request_is_refused(raw, status):
    with pytest.raises(BadRequestError) as refused:
        read_all([raw])
    assert refused.value.status == status
