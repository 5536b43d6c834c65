"""Server-sent events: every line end, every cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.wire.reading import Segment
from twospeed.wire.sse import SseDecoder, SseEvent

STREAM = (
    "\ufeffevent: ping\n"
    "data: {}\n"
    "\n"
    ": keepalive 398/407\n"
    ":\n"
    "\n"
    "id: 7\n"
    "retry: 100\n"
    "data:no space\n"
    "data: two\n"
    "data:  spaces\n"
    "\n"
    "event: lonely\n"
    "\n"
    "data: a\u2028b\u0085c\x0bd\x0ce\x1cf\n"
    "\n"
    "data: Grüße 😀\n"
    "\n"
    "data\n"
    "\n"
    "unknown: x\n"
    "data: last, unended"
)
EXPECTED = [
    ("ping", "{}", None),
    (None, None, "keepalive 398/407"),
    (None, None, ""),
    (None, "no space\ntwo\n spaces", None),
    (None, "a\u2028b\u0085c\x0bd\x0ce\x1cf", None),
    (None, "Grüße 😀", None),
    (None, "last, unended", None),
]


def decode(pieces: list[bytes]) -> list[SseEvent]:
    decoder = SseDecoder()
    events = []
    for number, piece in enumerate(pieces):
        events += decoder.feed(Segment(at_ns=1000 + number, data=piece, read=number))
    return events + decoder.end()


def content(events: list[SseEvent]) -> list[tuple[str | None, str | None, str | None]]:
    return [(event.event, event.data, event.comment) for event in events]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@given(cuts=st.lists(st.integers(0, 400), max_size=40))
def test_any_line_end_and_any_cutting_give_the_same_events(wire, line_end, cuts):
    raw = STREAM.replace("\n", line_end).encode()
    for reads in (wire.cut(raw, cuts), wire.cut(raw, range(len(raw)))):
        events = decode([data for _, data in reads])
        assert content(events) == EXPECTED
        assert [event.at_ns for event in events] == sorted(event.at_ns for event in events)


@given(st.data())
def test_line_ends_may_be_mixed(data):
    *lines, last = STREAM.split("\n")
    raw, following = last, last
    previous_end = ""
    for line in reversed(lines):
        end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
        if end == "\r" and following == "" and previous_end == "\n":
            end = "\r\n"  # CR and LF side by side would be one line end
        raw, following, previous_end = line + end + raw, line, end
    assert content(decode([raw.encode()])) == EXPECTED


def test_an_event_carries_the_stamp_of_the_segment_that_completes_it():
    events = decode([b"data: on", b"e\n", b"\ndata: two\n\nda", b"ta: three\r", b"\n\r", b"\n"])
    assert [(event.data, event.at_ns, event.read) for event in events] == [
        ("one", 1002, 2),
        ("two", 1002, 2),
        ("three", 1004, 4),
    ]


def test_a_crlf_cut_in_two_is_one_line_end():
    assert content(decode([b"data: a\r", b"\n", b"data: b\r", b"\n\r", b"\n"])) == [
        (None, "a\nb", None)
    ]


def test_a_final_event_without_blank_line_comes_at_the_end_with_the_last_stamp():
    decoder = SseDecoder()
    assert decoder.feed(Segment(at_ns=5, data=b"data: x\n", read=0)) == []
    assert decoder.feed(Segment(at_ns=6, data=b"data: y", read=1)) == []
    assert [(e.data, e.at_ns, e.read) for e in decoder.end()] == [("x\ny", 6, 1)]
    assert decoder.end() == []


def test_nothing_fed_is_no_event():
    assert SseDecoder().end() == []
    assert decode([b"", b""]) == []


def test_a_split_character_does_no_harm():
    raw = "data: 日本語\n\n".encode()
    assert [e.data for e in decode([raw[:7], raw[7:8], raw[8:]])] == ["日本語"]


def test_invalid_utf_8_becomes_a_replacement_character():
    assert decode([b"data: a\xffb\n\n"])[0].data == "a\ufffdb"


def test_error_lines_outside_the_standard_are_seen():
    events = decode([b'data: 1\n{"error":"x"}\n\nerror: {"message":"y"}\n\n'])
    assert content(events) == [
        (None, '{"error":"x"}', None),
        (None, "1", None),
        ("error", '{"message":"y"}', None),
    ]


SEGMENTS = [
    b"data: a\n\n",
    b"data: a\rdata: b\n\n",
    b"data: a\r\n\r\n",
    b"data: a\n\r\n",
    b"data: \n\n",
    b"data: a\n",
    b"data:a\n\n",
    b"\n",
    b"a",
    b"\r",
    b"event: x\n",
    b": ping\n\n",
    b"data: a\n\ndata: b\n\n",
    "data: \u2028ü\n\n".encode(),
    b"\xef\xbb\xbf",
]


@given(segments=st.lists(st.sampled_from(SEGMENTS), max_size=12))
def test_a_lone_event_need_not_be_fed(segments):
    decoder, events = SseDecoder(), []
    for number, data in enumerate(segments):
        raw = decoder.lone_event(data)
        if raw is None:
            events += decoder.feed(Segment(at_ns=1000 + number, data=data, read=number))
        else:
            events.append(SseEvent(at_ns=1000 + number, read=number, raw=raw))
    assert events + decoder.end() == decode(segments)


def test_between_events_the_commonest_segment_is_a_lone_event():
    decoder = SseDecoder()
    assert decoder.lone_event(b"data: {}\n\n") is None, "a byte order mark may stand at the start"
    decoder.feed(Segment(at_ns=1, data=b"data: {}\n\n", read=0))
    assert decoder.lone_event(b"data: {}\n\n") == b"{}"
