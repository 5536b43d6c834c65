"""The HTTP layer: where a response begins and ends, whatever the cuts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.records.errors import ProtocolBroken
from twospeed.wire.http_response import MAX_HEADER_BYTES, ResponseReader

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n"
    b"5\r\nhello\r\n1;note=x\r\n \r\n5\r\nworld\r\n0\r\nX-Total-Time: 12\r\n\r\n"
)
COUNTED = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"
CLOSED = b"HTTP/1.0 200 OK\r\nServer: BaseHTTP/0.6\r\n\r\nhello world"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + CHUNKED


def body_of(reader: ResponseReader) -> bytes:
    return b"".join(segment.data for segment in reader.segments)


@pytest.mark.parametrize("raw", [CHUNKED, COUNTED, CLOSED, INTERIM])
@given(cuts=st.lists(st.integers(0, 400), max_size=30))
def test_any_cutting_gives_the_same_response(wire, raw, cuts):
    for reads in (wire.cut(raw, cuts), wire.cut(raw, range(len(raw)))):
        reader = wire.reader(reads)
        assert reader.complete
        assert not reader.premature
        assert (reader.status, body_of(reader)) == (200, b"hello world")
        stamps = [segment.at_ns for segment in reader.segments]
        assert stamps == sorted(stamps)
        assert reader.first_byte_ns <= reader.headers_ns <= stamps[0] <= stamps[-1] <= reader.end_ns


def test_a_chunked_body_is_complete_without_the_end_of_input(wire):
    reader = wire.reader([(1, CHUNKED)], closed=False)
    assert reader.complete
    assert reader.keep_alive
    assert reader.headers == {"transfer-encoding": "chunked", "content-type": "text/plain"}
    assert reader.bytes_seen == len(CHUNKED)


def test_http_1_0_body_ends_when_the_connection_does(wire):
    reader = wire.reader([(10, CLOSED)], closed=False)
    assert not reader.complete
    reader.end_of_input(99)
    assert reader.complete
    assert (reader.end_ns, reader.http_version, reader.keep_alive) == (99, "1.0", False)


def test_an_interim_answer_does_not_start_the_response(wire):
    early, late = b"HTTP/1.1 100 Continue\r\n\r\n", COUNTED
    reader = wire.reader([(10, early), (50, late)], closed=False)
    assert (reader.first_byte_ns, reader.headers_ns, reader.status) == (50, 50, 200)


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_ends_with_its_headers(wire, status):
    raw = f"HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n".encode()
    raw = raw.replace(b"Content-Length: 5\r\n", b"") if status == 204 else raw
    reader = wire.reader([(1, raw)], closed=False)
    assert reader.complete
    assert reader.segments == []


@pytest.mark.parametrize("raw", [CHUNKED, COUNTED])
def test_every_cut_short_of_the_end_is_premature(wire, raw):
    for length in range(1, len(raw)):
        reader = wire.reader([(1, raw[:length])])
        assert reader.premature, raw[:length]
        assert not reader.complete


def test_a_connection_that_dies_before_the_first_byte_says_so(wire):
    reader = wire.reader([])
    assert (reader.premature, reader.bytes_seen, reader.first_byte_ns) == (True, 0, None)


def test_the_end_is_parsed_and_not_recognised_by_a_suffix(wire):
    # Ends like a last chunk, and is the end of the headers.
    head = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n"
    )
    reader = wire.reader([(1, head), (2, b"7\r\n\r\n0\r\n\r\n\r\n")], closed=False)
    assert not reader.complete
    reader.feed(b"0\r\n\r\n", 3)
    assert reader.complete
    assert (body_of(reader), reader.end_ns) == (b"\r\n0\r\n\r\n", 3)


@pytest.mark.parametrize(
    "extra", [b"EXTRA", b"\r\n", b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno"]
)
@pytest.mark.parametrize("headers", [b"", b"Connection: close\r\n"])
def test_bytes_after_the_end_are_tolerated(wire, headers, extra):
    raw = COUNTED.replace(b"Content-Length", headers + b"Content-Length")
    for reads in ([(1, raw + extra)], [(1, raw), (2, extra), (3, extra)]):
        reader = wire.reader(reads)
        assert reader.complete
        assert (reader.status, body_of(reader), reader.end_ns) == (200, b"hello world", 1)
        assert reader.headers["content-length"] == "11"


def test_unasked_bytes_make_a_connection_unfit_for_reuse(wire):
    reader = wire.reader([(1, COUNTED)], closed=False)
    assert reader.keep_alive
    reader.feed(b"?", 2)
    assert not reader.keep_alive


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0-OpenSSH_9.2"),
        (b"RTSP/1.0 200 OK\r\n\r\n", "RTSP"),
        (b"\x15\x03\x01\x00\x02\x02\x16", "https://"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "101"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk size"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n", "Content-Length"),
    ],
)
def test_garbage_is_named_in_one_line(wire, raw, words):
    with pytest.raises(ProtocolBroken) as caught:
        wire.reader([(1, raw)])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_came_before_the_damage_is_kept(wire):
    reader = ResponseReader()
    reader.feed(CHUNKED[: CHUNKED.index(b"5\r\nworld")], 1)
    for _ in range(2):
        with pytest.raises(ProtocolBroken):
            reader.feed(b"zz\r\n", 2)
    reader.end_of_input(3)
    assert body_of(reader) == b"hello "
    assert reader.broken
    assert not reader.complete
    assert not reader.premature


@pytest.mark.parametrize("size", [1024, 10**6])
@pytest.mark.parametrize("closed", [b"", b"\r\n\r\n"])
def test_headers_are_bounded(wire, size, closed):
    head = b"HTTP/1.1 200 OK\r\nX: " + b"a" * (MAX_HEADER_BYTES + 1) + closed
    reads = [(1, head[at : at + size]) for at in range(0, len(head), size)]
    with pytest.raises(ProtocolBroken, match="256 KiB"):
        wire.reader(reads)


def test_endless_interim_answers_are_bounded(wire):
    with pytest.raises(ProtocolBroken, match="256 KiB"):
        wire.reader([(1, b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)] * 20)


def test_a_body_as_long_as_the_header_bound_is_no_header(wire):
    raw = b"HTTP/1.0 200 OK\r\n\r\n" + b"a" * (2 * MAX_HEADER_BYTES)
    assert len(body_of(wire.reader([(1, raw)]))) == 2 * MAX_HEADER_BYTES


def test_the_body_is_bounded():
    reader = ResponseReader(max_body_bytes=1024**2)
    reader.feed(b"HTTP/1.0 200 OK\r\n\r\n", 1)
    reader.feed(b"a" * 1024**2, 2)
    with pytest.raises(ProtocolBroken, match="1 MiB"):
        reader.feed(b"a", 3)


def test_repeated_headers_are_joined_and_reads_numbered(wire):
    head = b"HTTP/1.1 200 OK\r\nVia: a\r\nVIA: b\r\nTransfer-Encoding: chunked\r\n\r\n"
    reader = wire.reader([(1, head), (2, b"1\r\na\r\n1\r\nb\r\n"), (3, b"1\r\nc\r\n0\r\n\r\n")])
    assert reader.headers["via"] == "a, b"
    assert [(s.at_ns, s.read, s.data) for s in reader.segments] == [
        (2, 1, b"a"),
        (2, 1, b"b"),
        (3, 2, b"c"),
    ]
