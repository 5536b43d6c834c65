"""Newline-delimited JSON: only LF ends a line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twospeed.wire.ndjson import NdjsonDecoder, NdjsonLine
from twospeed.wire.reading import Segment

STREAM = '{"a":1}\r\n\n  {"b":"x\u2028y\u0085"}\n{"c":"ü"}'
EXPECTED = ['{"a":1}', '{"b":"x\u2028y\u0085"}', '{"c":"ü"}']


def decode(pieces: list[bytes]) -> list[NdjsonLine]:
    decoder = NdjsonDecoder()
    lines = []
    for number, piece in enumerate(pieces):
        lines += decoder.feed(Segment(at_ns=10 + number, data=piece, read=number))
    return lines + decoder.end()


@given(cuts=st.lists(st.integers(0, 60), max_size=20))
def test_any_cutting_gives_the_same_lines(wire, cuts):
    raw = STREAM.encode()
    for reads in (wire.cut(raw, cuts), wire.cut(raw, range(len(raw)))):
        lines = decode([data for _, data in reads])
        assert [line.data for line in lines] == EXPECTED
        assert [line.at_ns for line in lines] == sorted(line.at_ns for line in lines)


def test_a_line_carries_the_stamp_of_its_line_feed():
    lines = decode([b'{"a"', b":1}", b'\n{"b":', b"2}"])
    assert [(line.data, line.at_ns, line.read) for line in lines] == [
        ('{"a":1}', 12, 2),
        ('{"b":2}', 13, 3),
    ]


def test_nothing_is_no_line():
    assert NdjsonDecoder().end() == []
    assert decode([b"\n \r\n"]) == []


SEGMENTS = [
    b'{"a":1}\n',
    b'{"a":1}\r\n',
    b"\n",
    b" \n",
    b'{"a"',
    b":1}",
    b'{"b":2}\n{"c":3}\n',
    b"x",
]


@given(segments=st.lists(st.sampled_from(SEGMENTS), max_size=12))
def test_a_lone_line_need_not_be_fed(segments):
    decoder, lines = NdjsonDecoder(), []
    for number, data in enumerate(segments):
        raw = decoder.lone_event(data)
        if raw is None:
            lines += decoder.feed(Segment(at_ns=10 + number, data=data, read=number))
        elif raw.strip():
            lines.append(NdjsonLine(at_ns=10 + number, read=number, raw=raw.strip()))
    assert lines + decoder.end() == decode(segments)
    assert NdjsonDecoder().lone_event(b"{}\n") == b"{}"
