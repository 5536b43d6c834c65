"""Reading a response never fails: what is wrong with it is in its error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twospeed.records.errors import ProtocolBroken
from twospeed.wire.dialects import dialect_names, read_response
from twospeed.wire.http_response import ResponseReader
from twospeed.wire.json_values import NotJsonError, decode, get_float, get_int, get_str
from twospeed.wire.reading import StreamReading

CHUNK = b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}\n\n'
FINISH = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign\n in</title></head></html>"


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, b'{"error":{"message":"too long","code":400}}', "too long"),
        (404, b'{"error":"model \'x\' not found"}', "model 'x' not found"),
        (404, b'{"detail":"Not Found"}', "Not Found"),
        (422, b'{"detail":[{"msg":"Field required","loc":["body"]}]}', "Field required"),
        (503, b'{"detail":{"msg":"busy","type":"service"}}', "busy"),
        (400, b'{"message":"bad"}', "bad"),
        (400, b'data: {"error":{"message":"in a stream"}}\n\n', "in a stream"),
        (502, PAGE, "a web page titled 'Sign in'"),
        (500, b"Internal\nServer Error " + b"x" * 500, "Internal Server Error " + "x" * 178),
        (500, b"", "status 500 with an empty body"),
        (500, b"[]", "[]"),
    ],
)
def test_a_refusal_says_why(wire, status, body, message):
    reading = wire.read("openai_chat", body, status=status, content_type="text/x")
    assert (reading.error.kind, reading.error.http_status) == ("http", status)
    assert reading.error.message == message
    assert reading.text == []


def test_a_redirect_names_its_target(wire):
    raw = b"HTTP/1.1 307 X\r\nLocation: /v1/\r\nContent-Length: 0\r\n\r\n"
    reading = read_response("openai_chat", wire.reader([(1, raw)]))
    assert reading.error.message == "redirected to /v1/"


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "text/event-stream", "x/y"])
def test_a_web_page_with_status_200_is_named(wire, content_type):
    reading = wire.read("openai_chat", b"\n" + PAGE, content_type=content_type)
    assert reading.error.kind == "protocol"
    assert "a web page titled 'Sign in'" in reading.error.message


@pytest.mark.parametrize("content_type", ["text/event-stream", "application/json", ""])
@pytest.mark.parametrize("pad", [b"", b"\xef\xbb\xbf", b"\r\n \n" * 500])
def test_the_form_is_seen_from_the_body(wire, content_type, pad):
    body = b'{"choices": [\n{"message": {"content": "a"}, "finish_reason": "stop"}]}\n'
    pieces = [pad[:9], pad[9:], body[:20], body[20:]]
    reading = wire.read("openai_chat", *pieces, content_type=content_type)
    assert [(event.text, event.at_ns) for event in reading.text] == [("a", 4_000)]
    assert reading.error is None
    reading = wire.read("openai_chat", CHUNK, FINISH + DONE, content_type=content_type)
    assert [(event.text, event.at_ns) for event in reading.text] == [("a", 1_000)]
    assert reading.error is None


def test_lines_are_seen_without_their_content_type(wire):
    body = b'{"response":"a","done":false}\n{"response":"b","done":true}\n'
    reading = wire.read("ollama_native", body[:31], body[31:], content_type="application/json")
    assert [(event.text, event.at_ns) for event in reading.text] == [("a", 1_000), ("b", 2_000)]


def test_broken_events_are_counted_and_the_rest_is_read(wire):
    broken = b'data: {"choices":[{"delta":\n\ndata: 7\n\n'
    reading = wire.read("openai_chat", CHUNK, broken, CHUNK, FINISH + DONE)
    assert [event.at_ns for event in reading.text] == [1_000, 3_000]
    assert reading.error.kind == "protocol"
    assert reading.error.message == (
        '2 of 5 events are not JSON objects; the first: \'{"choices":[{"delta":\''
    )
    assert (reading.finish_reason, reading.done) == ("stop", True)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"", "stream", "empty"),
        (b"hello there", "protocol", "hello there"),
        (b'{"object":"list","data":[]}', "protocol", "no text"),
        (b"[1, 2]", "protocol", "[1, 2]"),
        (b'{"choices":[', "stream", "ended before it was complete"),
        (b'{"error":{"message":"late"}}', "stream", "late"),
    ],
)
def test_a_body_that_is_no_answer(wire, body, kind, words):
    reading = wire.read("openai_chat", body, content_type="application/json")
    assert reading.error.kind == kind
    assert words in reading.error.message


CUT = "the stream ended before it was complete"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (CHUNK + FINISH + DONE, None),
        (CHUNK + FINISH, None),
        (CHUNK + DONE, None),
        (CHUNK + FINISH + DONE[:-2], None),
        (CHUNK + FINISH[:-2], None),
        (CHUNK, CUT),
        (CHUNK + FINISH[:30], CUT),
        (CHUNK + FINISH + CHUNK[:40], CUT),
        (b": ping\n\n", CUT),
    ],
)
def test_whether_a_stream_is_whole(wire, body, error):
    reading = wire.read("openai_chat", body)
    assert (reading.error and reading.error.message) == error


def test_a_finished_stream_whose_connection_breaks_is_whole_only_with_its_end_mark(wire):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n"
    for body, kind in ((CHUNK + FINISH + DONE, None), (CHUNK + FINISH, "stream")):
        raw = head + b"\r\n%x\r\n%s\r\n" % (len(body), body)
        reader = wire.reader([(1, raw)])
        assert reader.premature
        reading = read_response("openai_chat", reader)
        assert (reading.error and reading.error.kind) == kind
        assert [event.text for event in reading.text] == ["a"]


def test_a_connection_that_closed_before_an_answer(wire):
    for raw in (b"", b"HTTP/1.1 200"):
        error = read_response("openai_chat", wire.reader([(1, raw)])).error
        assert (error.kind, error.http_status) == ("stream", None)
        assert "before an answer" in error.message


def test_broken_http_is_told_beside_what_came_before(wire):
    reader = ResponseReader()
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n"
    reader.feed(head + b"\r\n%x\r\n%s\r\n" % (len(CHUNK), CHUNK), 5)
    with pytest.raises(ProtocolBroken):
        reader.feed(b"zz\r\n", 6)
    reading = read_response("openai_chat", reader)
    assert [event.at_ns for event in reading.text] == [5]
    assert (reading.error.kind, reading.error.message) == ("protocol", reader.broken)


def test_stamps_of_the_response(wire):
    raw = wire.response(CHUNK + FINISH)
    split = raw.index(b"data")
    reads = [(1, raw[:4]), (2, raw[4:split]), (3, raw[split:])]
    reading = read_response("openai_chat", wire.reader(reads))
    assert (reading.first_byte_ns, reading.headers_ns, reading.end_ns) == (1, 2, 3)


def test_what_python_and_javascript_servers_write(wire):
    chunk = (
        b'data: {"choices":[{"delta":{"content":"\\ud83d"}}],"usage":{"a":NaN,"b":2},'
        b'"timings":{"x":Infinity}}\n\n'
    )
    reading = wire.read("openai_chat", chunk, FINISH)
    assert [event.text for event in reading.text] == ["?"]
    assert (reading.usage, reading.timings) == ({"a": None, "b": 2}, {"x": None})
    assert reading.error is None


def test_values_of_the_wrong_type_are_nothing():
    value = {"s": 5, "i": True, "f": "1", "whole": 3.0, "part": 3.5, "big": 10**400}
    assert get_str(value, "s") == ""
    assert [get_int(value, key) for key in ("i", "f", "whole", "part")] == [None, None, 3, None]
    assert [get_float(value, key) for key in ("i", "f", "part", "big")] == [None, None, 3.5, None]
    with pytest.raises(NotJsonError):
        decode("[" * 10**5)


def test_a_deeply_nested_event_is_a_broken_one(wire):
    bomb = b"data: " + b'{"choices":' * 20_000 + b"\n\n"
    reading = wire.read("openai_chat", CHUNK, bomb, FINISH)
    assert reading.error.kind == "protocol"
    assert reading.finish_reason == "stop"


@settings(max_examples=200)
@given(data=st.binary(max_size=300), dialect=st.sampled_from(dialect_names()))
def test_random_bytes_are_a_reading_or_not_http(wire, data, dialect):
    reader = ResponseReader()
    try:
        reader.feed(data, 1)
    except ProtocolBroken as error:
        assert "\n" not in str(error)  # noqa: PT017 - most examples raise, not all
    reader.end_of_input(2)
    assert read_response(dialect, reader).error is not None
    for content_type in ("text/event-stream", "application/x-ndjson", "application/json"):
        assert isinstance(wire.read(dialect, data, content_type=content_type), StreamReading)


KEYS = [
    "choices", "delta", "message", "content", "text", "reasoning", "reasoning_content",
    "thinking", "tool_calls", "function", "name", "arguments", "function_call", "usage",
    "timings", "metrics", "stats", "prompt_progress", "processed", "total", "cache", "error",
    "detail", "finish_reason", "model", "type", "response", "output", "item", "summary", "stop",
    "done", "done_reason", "stop_reason", "content_block", "result", "input", "partial_json",
    "progress", "load_time_seconds", "incomplete_details", "reason", "status", "refusal",
    "model_instance_id", "tool", "truncated",
]  # fmt: skip
TYPES = [
    "text", "thinking", "error", "ping", "message_start", "message_delta", "content_block_start",
    "content_block_delta", "content_block_stop", "message_stop", "text_delta",
    "response.completed", "response.failed", "response.output_text.delta",
    "response.output_item.added", "function_call", "reasoning", "chat.end", "message.delta",
    "reasoning.delta", "tool_call.arguments", "model_load.end", "prompt_processing.progress",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("a \n\u2028é", max_size=4)
    | st.sampled_from(TYPES),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=300)
@given(
    events=st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8), max_size=4),
    dialect=st.sampled_from(dialect_names()),
)
def test_json_of_the_wrong_types_is_still_a_reading(wire, events, dialect):
    bodies = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    reading = wire.read(dialect, *bodies)
    assert all(event.text and event.kind for event in reading.text)
    assert all(isinstance(p.processed, int) and isinstance(p.total, int) for p in reading.progress)
    assert isinstance(reading.usage, dict | None)
    assert isinstance(reading.timings, dict | None)
    assert isinstance(reading.finish_reason, str | None)
    for event in events:
        whole = json.dumps(event).encode()
        assert isinstance(wire.read(dialect, whole, content_type="application/json"), StreamReading)
