"""A response read while it arrives says the same as one read after its end."""

from __future__ import annotations

import gc
import gzip
import json
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twospeed.records.errors import ProtocolBroken
from twospeed.wire import ollama_native, openai_chat
from twospeed.wire.collecting import Message
from twospeed.wire.dialects import dialect_names, read_response, reading_of
from twospeed.wire.http_response import ResponseReader
from twospeed.wire.json_values import decode
from twospeed.wire.reading import StreamReading

CHUNK = b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}],"model":"m"}\n\n'
COUNTED = (
    b'data: {"choices":[{"delta":{"reasoning":"r"}}],"usage":{"completion_tokens":3,"x":1}}\n\n'
)
LINE = b'{"model":"m","message":{"role":"assistant","content":"a"},"done":false}\n'
PARTS = [
    CHUNK,
    COUNTED,
    LINE,
    b"data: " + LINE + b"\n",
    b'data: {"choices":[{"delta":{"role":"assistant"}}]}\r\n\r\n',
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n',
    b'event: error\ndata: {"choices":[{"delta":{"content":"x"}}]}\n\n',
    b'data: {"error":{"message":"gone"}}\n\n',
    b'data: {"choices":\ndata: [{"delta":{"content":"two lines"}}]}\n\n',
    b'{"message":{"content":"b"},"done":true,"done_reason":"stop","eval_count":4}\n',
    b"data: [DONE]\n\n",
    b"data: 7\n\n",
    b"data: {broken\n\n",
    b": ping\n\n",
    b"\n",
    b"   ",
    b"<html>",
    b'{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}',
    b"\xef\xbb\xbf",
    b"data: \xff\n\n",
]
BODIES = st.lists(st.sampled_from(PARTS), min_size=1, max_size=60).map(b"".join)
TYPES = ["text/event-stream", "application/x-ndjson", "application/json", "text/html", ""]


def responses(reads, advances):
    """The same reads into a reading that is made afterwards, and into one that advances."""
    late, early = ResponseReader(), ResponseReader()
    dialect, reads = reads
    reading = reading_of(dialect, early)
    at_ns = 0
    for number, (at_ns, data) in enumerate(reads):
        for reader in (late, early):
            try:
                reader.feed(data, at_ns)
            except ProtocolBroken:
                break
        if number in advances:
            reading.advance()
    for reader in (late, early):
        reader.end_of_input(at_ns + 1)
    return read_response(dialect, late), reading.finish()


@settings(max_examples=60)
@given(cuts=st.lists(st.integers(0, 4000), max_size=60), advances=st.sets(st.integers(0, 60)))
def test_every_capture_says_the_same_when_read_while_it_arrives(wire, capture, cuts, advances):
    whole, advanced = responses((capture.dialect, wire.cut(capture.raw, cuts)), advances)
    assert advanced == whole


@settings(max_examples=400)
@given(
    body=BODIES,
    kind=st.sampled_from(TYPES),
    coding=st.sampled_from(["", "gzip", "deflate"]),
    status=st.sampled_from([200, 200, 200, 500]),
    dialect=st.sampled_from(["openai_chat", "ollama_native", "llama_native", "openai_responses"]),
    cuts=st.lists(st.integers(0, 6000), max_size=50),
    advances=st.sets(st.integers(0, 50)),
    break_at=st.none() | st.integers(0, 3000),
)
def test_any_body_says_the_same_when_read_while_it_arrives(  # noqa: PLR0917
    wire, body, kind, coding, status, dialect, cuts, advances, break_at
):
    body = gzip.compress(body, mtime=0) if coding == "gzip" else body
    if break_at is not None:
        body = body[:break_at] + b"\xff\x00" + body[break_at:]
    raw = wire.response(body, kind, status)
    raw = raw.replace(b"\r\n", b"\r\nContent-Encoding: " + coding.encode() + b"\r\n", 1)
    whole, advanced = responses((dialect, wire.cut(raw, cuts)), advances)
    assert advanced == whole


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json", "text/html", ""])
@pytest.mark.parametrize(
    "pieces",
    [
        (b" \n", b'{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}'),
        (b"\xef\xbb", b'\xbf{"choices":[{"message":{"content":"whole"}}]}'),
        (b"<ht", b"ml><title>Sign in</title>"),
        (b"da", CHUNK[2:]),
        (b"", CHUNK),
        (LINE[:9], LINE[9:] + LINE),
    ],
)
def test_the_first_bytes_alone_decide_nothing(wire, kind, pieces):
    raw = wire.response(b"".join(pieces), kind)
    edge = len(raw) - len(pieces[1])
    for dialect in ("openai_chat", "ollama_native"):
        reads = [(1, raw[:edge]), (2, raw[edge:])]
        whole, advanced = responses((dialect, reads), {0, 1})
        assert advanced == whole


def test_a_stream_that_was_read_is_forgotten(wire):
    reader = ResponseReader()
    reading = reading_of("openai_chat", reader)
    raw = wire.response(CHUNK * 40)
    reader.feed(raw, 7)
    reading.advance()
    assert reader.segments == []
    assert len(reading.finish().text) == 40


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices":[{"message":{"content":"' + b"a" * 2000 + b'"},"finish_reason":"stop"}]}',
        b" \n" * 5000,
        b"<!doctype html>" + b"x" * 2000,
    ],
)
def test_what_must_be_seen_whole_is_looked_at_once(wire, body):
    reader = ResponseReader()
    reading = reading_of("openai_chat", reader)
    raw = wire.response(body, "application/json")
    reader.feed(raw[:-1], 1)
    reading.advance()
    reader.feed(raw[-1:], 2)
    reading.advance()
    assert [segment.data for segment in reader.segments] == [raw[-1:]]
    assert reading.finish() == read_response(
        "openai_chat", wire.reader([(1, raw[:-1]), (2, raw[-1:])])
    )


def test_a_complete_response_needs_no_garbage_collector(wire):
    gc.disable()
    try:
        reader = wire.reader([(1, wire.response(CHUNK))])
        read_response("openai_chat", reader)
        gone = weakref.ref(reader)
        del reader
        assert gone() is None
    finally:
        gc.enable()


ODD = st.sampled_from(
    [
        *(None, "", "a", "é", "\ud83d", "error", 0, 7, True, False, float("nan"), [], [1], {}),
        *([{"text": "x"}], [{"function": {"name": "f"}}], {"content": "b"}, {"name": "f"}),
        *({"completion_tokens": 5}, {"processed": 1, "total": 2}, {"message": "gone"}),
        [{"delta": {"content": "second"}}],
    ]
)
CHUNK_KEYS = (
    [
        *("choices", "model", "usage", "object", "type", "error"),
        *("timings", "metrics", "stats", "prompt_progress", "id"),
    ],
    ["delta", "message", "finish_reason", "index", "logprobs"],
    [
        *("content", "reasoning_content", "reasoning", "thinking"),
        *("refusal", "tool_calls", "function_call", "role"),
    ],
)
LINE_KEYS = (
    ["message", "model", "object", "type", "done", "response", "thinking", "error", "done_reason"],
    ["content", "thinking", "tool_calls", "role"],
)


@st.composite
def nearly_plain(draw, levels, keys):
    """A plain event with up to three members of it set to something odd, at any level."""
    patches = st.tuples(st.integers(0, len(keys) - 1), st.integers(0, 20), ODD)
    for level, key, value in draw(st.lists(patches, max_size=3)):
        levels[level][keys[level][key % len(keys[level])]] = value
    return levels[0]


@st.composite
def chunks(draw):
    delta = {"content": "a"}
    choice = {"delta": delta, "finish_reason": None}
    return draw(nearly_plain([{"choices": [choice], "model": "m"}, choice, delta], CHUNK_KEYS))


@st.composite
def lines(draw):
    said = {"role": "assistant", "content": "a"}
    return draw(nearly_plain([{"model": "m", "message": said, "done": False}, said], LINE_KEYS))


def both_ways(dialect, raw: bytes) -> tuple[StreamReading | None, StreamReading]:
    """What the quick way makes of an event, None when it declines, and what the full way does."""
    quick, full = StreamReading(), StreamReading()
    entered = dialect.read_plain(quick, raw, 5, 2)
    value = decode(raw.decode("utf-8", "replace"))
    dialect.read_event(full, Message(at_ns=5, read=2, value=value))
    assert entered or quick == StreamReading(), "a declined event leaves no trace"
    return (quick if entered else None), full


@settings(max_examples=1000)
@given(value=chunks())
def test_the_quick_way_reads_a_chunk_as_the_full_one_does(value):
    quick, full = both_ways(openai_chat, json.dumps(value).encode())
    assert quick in (None, full)


@settings(max_examples=600)
@given(value=lines())
def test_the_quick_way_reads_a_line_as_the_full_one_does(value):
    quick, full = both_ways(ollama_native, json.dumps(value).encode())
    assert quick in (None, full)


@pytest.mark.parametrize("raw", [CHUNK, COUNTED])
def test_the_commonest_chunks_take_the_quick_way(raw):
    quick, full = both_ways(openai_chat, raw[6:-2])
    assert quick == full
    assert len(full.text) == 1


def test_the_commonest_lines_take_the_quick_way():
    quick, full = both_ways(ollama_native, LINE)
    assert quick == full
    assert full.text[0].text == "a"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}',
        b'{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}',
        b'{"choices":[{"delta":{"content":"a","reasoning":"b"}}]}',
        b'{"choices":[{"delta":{"content":""}}]}',
        b'{"choices":[{"delta":{"content":"a"}}],"error":"x"}',
        b'{"choices":[{"delta":{"content":"a"}}],"timings":{"prompt_n":1}}',
        b'{"object":"error","choices":[{"delta":{"content":"a"}}]}',
        b'{"type":"error","choices":[{"delta":{"content":"a"}}]}',
        b'{"choices":[{"delta":{"reasoning":"a","refusal":"no"}}]}',
        b'{"choices":[{"delta":{"content":"a","function_call":{"name":"f"}}}]}',
        b'{"choices":[{"delta":{"content":"a","tool_calls":[{"function":{"name":"f"}}]}}]}',
    ],
)
def test_chunks_that_mean_more_than_text_are_declined(raw):
    assert both_ways(openai_chat, raw)[0] is None


@pytest.mark.parametrize(
    "raw",
    [
        b'{"message":{"content":"a"},"done":true}',
        b'{"message":{"content":"a","thinking":"b"}}',
        b'{"message":{"content":""},"done":false}',
        b'{"message":{"content":"a","tool_calls":[{"function":{"name":"f"}}]}}',
        b'{"message":{"content":"a"},"error":"gone"}',
        b'{"message":{"content":"a"},"type":"error"}',
        b'{"message":{"content":"a"},"object":"error"}',
        b'{"message":{"content":"a"},"response":"b"}',
        b'{"message":{"content":"a"},"thinking":"b"}',
    ],
)
def test_lines_that_mean_more_than_text_are_declined(raw):
    assert both_ways(ollama_native, raw)[0] is None


def test_only_dialects_are_listed():
    assert "response_reading" not in dialect_names()
    assert {"openai_chat", "ollama_native"} <= set(dialect_names())
