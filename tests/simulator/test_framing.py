from __future__ import annotations

from twospeed.simulator.exchange import Reply, Write
from twospeed.simulator.framing import Framer, head_bytes, reply_bytes


def head(length: int | None) -> bytes:
    lines = [] if length is None else [f"Content-Length: {length}"]
    return head_bytes("1.1", 200, lines)


HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


def test_the_head_goes_out_once_with_the_first_write():
    framer = Framer(head, chunked=True)
    assert framer.frame(Write(0, "head")) == HEAD
    assert framer.frame(Write(0, "text", [b"abc"])) == b"3\r\nabc\r\n"


def test_each_piece_is_a_chunk_and_the_end_is_marked():
    framer = Framer(head, chunked=True)
    framed = framer.frame(Write(0, "finish", [b"a" * 16, b"b"], end=True))
    assert framed == HEAD + b"10\r\n" + b"a" * 16 + b"\r\n1\r\nb\r\n0\r\n\r\n"


def test_an_empty_piece_is_no_chunk_for_it_would_end_the_body():
    framer = Framer(head, chunked=True)
    assert framer.frame(Write(0, "text", [b""])) == HEAD


def test_without_chunks_the_body_is_plain():
    framer = Framer(head, chunked=False)
    assert framer.frame(Write(0, "text", [b"ab", b"c"])) == HEAD + b"abc"
    assert framer.frame(Write(0, "finish", [b"d"], end=True)) == b"d"


def test_a_whole_body_has_its_length():
    framer = Framer(head, chunked=True)
    framed = framer.frame(Write(0, "whole", [b"body"], end=True))
    assert framed == b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"


def test_replies_tell_their_length_unless_they_end_with_the_connection():
    assert reply_bytes(head, Reply(body=b"xy")).endswith(b"Content-Length: 2\r\n\r\nxy")
    assert reply_bytes(head, Reply(body=b"xy", sized=False)) == HEAD + b"xy"
