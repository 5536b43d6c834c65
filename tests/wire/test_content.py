"""Compressed bodies: undone piece by piece, stamps kept, damage and bombs refused."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.records.errors import ProtocolBroken
from twospeed.wire.content import decoded_segments
from twospeed.wire.dialects import read_response

TEXT = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n' * 20


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODED = {
    "identity": TEXT,
    "": TEXT,
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:]) + b"\0\0",
    "deflate": zlib.compress(TEXT),
    "Deflate": raw_deflate(TEXT),
    "deflate, gzip": gzip.compress(zlib.compress(TEXT)),
}


def coded(coding: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Type: text/event-stream\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize("coding", CODED)
@given(cuts=st.lists(st.integers(0, 2000), max_size=30))
def test_any_cutting_decodes_to_the_same_bytes(wire, coding, cuts):
    raw = coded(coding, CODED[coding])
    for reads in (wire.cut(raw, cuts), wire.cut(raw, range(len(raw)))):
        segments = decoded_segments(wire.reader(reads))
        assert b"".join(segment.data for segment in segments) == TEXT
        assert [s.at_ns for s in segments] == sorted(s.at_ns for s in segments)


def test_a_flushed_piece_keeps_the_stamp_of_its_own_read(wire):
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(word) + packer.flush(zlib.Z_SYNC_FLUSH) for word in (b"one", b"two")]
    head = b"HTTP/1.0 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
    reader = wire.reader([(1, head), (20, pieces[0]), (30, pieces[1])])
    found = [(s.at_ns, s.read, s.data) for s in decoded_segments(reader)]
    assert found == [(20, 1, b"one"), (30, 2, b"two")]


@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", b"data: plain text"), ("deflate", b"\xff\xff"), ("br", b"\x0b"), ("zstd", b"(")],
)
def test_a_body_that_is_not_what_it_says_is_refused(wire, coding, body):
    reader = wire.reader([(1, coded(coding, body))])
    with pytest.raises(ProtocolBroken, match=coding):
        decoded_segments(reader)
    reading = read_response("openai_chat", reader)
    assert reading.error.kind == "protocol"


def test_text_before_the_damage_is_kept(wire):
    packer = zlib.compressobj(wbits=31)
    good = packer.compress(b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n')
    good += packer.flush(zlib.Z_SYNC_FLUSH)
    head, body = coded("gzip", good + b"\xff" * 50).split(b"\r\n\r\n", 1)
    reader = wire.reader([(1, head + b"\r\n\r\n" + body[: len(good)]), (2, body[len(good) :])])
    reading = read_response("openai_chat", reader)
    assert [event.text for event in reading.text] == ["hi"]
    assert (reading.error.kind, "gzip" in reading.error.message) == ("protocol", True)


def test_a_decompression_bomb_is_refused_at_the_bound(wire):
    reader = wire.reader([(1, coded("gzip", gzip.compress(b"\0" * 3 * 1024**2)))])
    with pytest.raises(ProtocolBroken, match="more than 2 MiB"):
        decoded_segments(reader, max_bytes=2 * 1024**2)
    assert sum(len(s.data) for s in decoded_segments(reader)) == 3 * 1024**2
