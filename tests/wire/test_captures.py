"""What real runtimes sent, read correctly however it is cut."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twospeed.records.errors import ProtocolBroken
from twospeed.wire.dialects import dialect_names, read_response
from twospeed.wire.http_response import ResponseReader
from twospeed.wire.reading import StreamReading


def test_every_capture_gives_the_same_whole_and_byte_by_byte(wire, capture):
    expected = wire.said(read_response(capture.dialect, wire.reader(capture.reads)))
    for cuts in ((), range(len(capture.raw))):
        reading = read_response(capture.dialect, wire.reader(wire.cut(capture.raw, cuts)))
        assert wire.said(reading) == expected
        assert wire.stamps(reading) == sorted(wire.stamps(reading))


@settings(max_examples=25)
@given(cuts=st.lists(st.integers(0, 4000), max_size=60))
def test_every_capture_gives_the_same_however_it_is_cut(wire, capture, cuts):
    expected = wire.said(read_response(capture.dialect, wire.reader(capture.reads)))
    reading = read_response(capture.dialect, wire.reader(wire.cut(capture.raw, cuts)))
    assert wire.said(reading) == expected
    assert wire.stamps(reading) == sorted(wire.stamps(reading))


# name: (text, arrivals in ms, finish reason and its ms, empty events, end mark seen)
STREAMS = {
    "lcpp_chat_stream_usage": (
        "I'm glad you're here", [2016.1, 2040.0, 2071.9, 2092.1, 2108.0, 2132.0],
        ("length", 2132.1), 1, True,
    ),
    "lcpp_chat_stream_progress": (
        "The quick brown", [2613.6, 2625.1, 2637.1], ("length", 2637.1), 1, True,
    ),
    "lcpp_completion_stream_prog": (
        " Item 1", [1534.0, 1562.0, 1594.0], ("limit", 1594.1), 0, True,
    ),
    "lcpp_v1completions_stream": (" Item 1", [43.2, 59.1, 73.5], ("length", 73.6), 0, True),
    "lcpp_messages_stream": ("I'm glad", [2618.7, 2641.7, 2664.2], ("max_tokens", 2664.3), 0, True),
    "lcpp_responses_stream": ("Hello, I", [177.2, 193.1, 206.8], ("completed", 207.1), 0, True),
    "mlx_chat_stream_usage": (
        "jum" * 5, [1253.6, 1256.2, 1262.4, 1270.3, 1277.8], ("length", 1277.9), 0, True,
    ),
    "tf_cb_stream0": (
        "azazazaz", [20614.9, 20621.2, 20626.0, 20631.6], ("length", 20631.6), 1, False,
    ),
    "tf_responses_stream": ("\x14" * 4, [75.9] * 4, ("completed", 78.7), 0, True),
    "vllm_permetrics_stream": (
        " brown" * 6, [18.6, 20.3, 22.3, 24.2, 26.2, 28.6], ("length", 28.6), 1, True,
    ),
    "vllm_messages_stream": ("pfu\ufffd\ufffd|", [27.3, 37.1], ("max_tokens", 37.1), 0, True),
    "vllm_responses_stream": (
        "\x14" * 4, [31.6, 32.0, 33.8], ("max_output_tokens", 48.9), 0, True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_a_real_stream_is_read_with_its_arrivals(captured, name):
    text, arrivals_ms, (reason, finish_ms), empty, done = STREAMS[name]
    reading, _ = captured(name)
    assert "".join(event.text for event in reading.text) == text
    assert {event.kind for event in reading.text} == {"answer"}
    assert [event.at_ns / 1e6 for event in reading.text] == arrivals_ms
    assert (reading.finish_reason, reading.finish_ns / 1e6) == (reason, finish_ms)
    assert (reading.empty_events, reading.done, reading.error) == (empty, done, None)


def test_an_early_role_chunk_is_not_the_first_token(captured):
    reading, reader = captured("tf_cb_stream0")
    assert reader.segments[0].at_ns < 50e6
    assert reading.text[0].at_ns == 20_614_900_000


def test_prefill_progress_is_kept_apart_from_text(captured):
    reading, _ = captured("lcpp_chat_stream_progress")
    progress = [(p.at_ns / 1e6, p.processed, p.total, p.cached) for p in reading.progress]
    assert progress == [(27.2, 3, 222, 3), (2613.3, 222, 222, 3)]
    assert reading.keepalives == [(2_033_100_000, "")]
    assert (reading.timings["cache_n"], reading.timings["prompt_n"]) == (3, 219)
    assert reading.usage["prompt_tokens_details"] == {"cached_tokens": 3}


def test_the_last_of_the_timings_per_token_counts(captured):
    reading, _ = captured("lcpp_completion_stream_prog")
    assert reading.timings["predicted_n"] == 3
    assert reading.usage == {
        "tokens_evaluated": 199,
        "tokens_predicted": 3,
        "tokens_cached": 201,
        "truncated": False,
    }


def test_keepalive_comments_of_mlx_are_kept_with_their_stamps(captured):
    reading, reader = captured("mlx_chat_stream_usage")
    assert reading.keepalives == [
        (1_195_500_000, "keepalive 398/407"),
        (1_227_600_000, "keepalive 406/407"),
        (1_239_700_000, "keepalive 407/407"),
    ]
    assert (reader.http_version, reader.complete) == ("1.0", True)


def test_per_request_metrics_of_vllm_are_its_timings(captured):
    reading, _ = captured("vllm_permetrics_stream")
    assert reading.timings["time_to_first_token_ms"] == pytest.approx(4.956216)
    assert reading.usage["completion_tokens"] == 6


def test_empty_tokens_and_running_usage_of_vllm(captured):
    reading, _ = captured("vllm_continuous")
    assert [event.text for event in reading.text] == [" Yo", "\ufffd(", "\ufffd\ufffdov"]
    assert reading.empty_events == 4
    assert reading.usage["completion_tokens"] == 6


def test_anthropic_usage_is_merged_later_over_earlier(captured):
    assert captured("vllm_messages_stream")[0].usage == {
        "input_tokens": 20,
        "output_tokens": 4,
        "cache_creation_input_tokens": 384,
        "cache_read_input_tokens": 0,
    }
    assert captured("lcpp_messages_stream")[0].usage == {
        "cache_read_input_tokens": 5,
        "input_tokens": 211,
        "output_tokens": 3,
    }


def test_an_answer_that_came_whole(captured):
    reading, _ = captured("lcpp_chat_nonstream")
    assert [(e.text, e.at_ns / 1e6) for e in reading.text] == [("I'm glad you", 55.0)]
    assert (reading.finish_reason, reading.done, reading.error) == ("length", True, None)
    assert reading.timings["cache_n"] == 223
    assert reading.usage["prompt_tokens_details"]["cached_tokens"] == 223


def test_an_aborted_stream_keeps_what_came(captured):
    reading, reader = captured("lcpp_abort_during_decode")
    assert reader.premature
    assert len(reading.text) == 10
    assert (reading.finish_reason, reading.done, reading.usage) == (None, False, None)
    assert reading.error.kind == "stream"
    assert "ended before it was complete" in reading.error.message


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("lcpp_err_too_long_stream", 400, "exceeds the available context size (4096 tokens)"),
        ("mlx_err_json", 400, "Invalid JSON in request body"),
    ],
)
def test_a_refusal_says_why(captured, name, status, words):
    error = captured(name)[0].error
    assert (error.kind, error.http_status) == ("http", status)
    assert words in error.message


def test_every_capture_cut_anywhere_never_claims_to_be_whole(wire, capture):
    whole = read_response(capture.dialect, wire.reader(capture.reads))
    said = [(event.kind, event.text) for event in whole.text]
    for length in range(0, len(capture.raw) - 1, 7):
        reader = wire.reader([(1, capture.raw[:length])])
        reading = read_response(capture.dialect, reader)
        found = [(event.kind, event.text) for event in reading.text]
        assert found == said[: len(found)]
        if not reading.done and not reader.complete:
            assert reading.error is not None, length


@settings(max_examples=60)
@given(data=st.data())
def test_a_mutated_capture_is_a_reading_or_not_http(wire, capture, data):
    raw = bytearray(capture.raw)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=8))
    reader = ResponseReader()
    try:
        for at_ns, piece in wire.cut(bytes(raw), data.draw(st.lists(st.integers(0, 4000)))):
            reader.feed(piece, at_ns)
    except ProtocolBroken as error:
        assert re.fullmatch(r"[^\n]{10,300}", str(error))  # noqa: PT017 - not raised by all
    reader.end_of_input(10**9)
    reading = read_response(data.draw(st.sampled_from(dialect_names())), reader)
    assert isinstance(reading, StreamReading)
    assert wire.stamps(reading) == sorted(wire.stamps(reading))
