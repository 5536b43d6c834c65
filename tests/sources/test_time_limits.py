from __future__ import annotations

import pytest

from twospeed.sources.live.time_limits import Limits, Watch
from twospeed.wire.http_response import ResponseReader

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LIMITS = Limits(headers_s=10, first_text_s=20, gap_s=5, total_s=100)


class Exchange:
    """A reader and its watch, fed together."""

    def __init__(self):
        self.reader = ResponseReader()
        self.watch = Watch(LIMITS, 0.0)

    def feed(self, data: bytes, now_s: float) -> bool:
        self.reader.feed(data, int(now_s * 1e9))
        return self.watch.heard(self.reader, now_s)

    def body(self, data: bytes, now_s: float) -> bool:
        return self.feed(b"%x\r\n%s\r\n" % (len(data), data), now_s)


def test_headers_are_due_first():
    assert Exchange().watch.due() == (10, "headers")


@pytest.mark.parametrize(
    "sign_of_life",
    [
        b":\n\n",
        b": keepalive 10/20\n\n",
        b'data: {"choices":[{"delta":{"role":"assistant","content":null}}]}\n\n',
        b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n',
        b'data: {"prompt_progress":{"total":10,"processed":3}}\n\n',
    ],
)
def test_signs_of_life_before_the_first_text_start_its_wait_anew(sign_of_life: bytes):
    exchange = Exchange()
    exchange.feed(HEAD, 1)
    assert exchange.watch.due() == (21, "first text")
    exchange.body(sign_of_life, 15)
    assert exchange.watch.due() == (35, "first text")


@pytest.mark.parametrize(
    "text",
    [
        b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n',
        b'data: {"choices":[{"delta":{"reasoning_content": "x"}}]}\n\n',
        b'{"message":{"role":"assistant","content":"","thinking":"x"}}\n',
        b'{"model":"m","response":"x","done":false}\n',
        b'data: {"type":"response.output_text.delta","delta":"x"}\n\n',
        b'data: {"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}\n\n',
    ],
)
def test_a_ping_does_not_hide_a_stall_after_text(text: bytes):
    exchange = Exchange()
    exchange.feed(HEAD, 1)
    assert exchange.body(text, 30) is True
    assert exchange.watch.text_seen
    assert exchange.watch.due() == (35, "next text")
    assert exchange.body(b":\n\n", 34) is False
    assert exchange.watch.due() == (35, "next text")
    assert exchange.watch.waited_s("next text", 36) == 6
    exchange.body(b":\n\ndata: {}\n\n", 34.5)
    assert exchange.watch.due() == (39.5, "next text")


def test_the_whole_answer_is_bounded_too():
    exchange = Exchange()
    exchange.feed(HEAD, 1)
    exchange.body(b'data: {"content":"x"}\n\n', 97)
    assert exchange.watch.due() == (100, "whole answer")


def test_a_long_prompt_is_given_a_long_wait_unless_the_user_said_otherwise():
    assert Limits().for_request(100, 10).first_text_s == 300
    assert Limits().for_request(40_000, 10).first_text_s == 4000
    assert Limits().for_request(40_000, 10).total_s > 4000
    assert Limits(first_text_s=7).for_request(40_000, 10).first_text_s == 7
    asked = Limits().for_request(100, 50, probabilities=5000).response_bytes
    assert asked > 50 * 5000 * 120 > Limits().for_request(100, 50).response_bytes


def test_a_users_short_silence_bounds_the_whole_answer_too():
    limits = Limits(first_text_s=4, headers_s=4, gap_s=4).for_request(600, 40)
    assert limits.total_s == 3 * 4 + 40 * 4
    assert Limits().for_request(600, 64).total_s == 3 * 300 + 600


def test_the_bytes_of_an_answer_are_bounded_by_what_was_asked_for():
    assert 2**22 < Limits().for_request(600, 40).response_bytes < 2**23
    assert Limits().for_request(10**6, 10**6).response_bytes == 256 * 2**20
    assert Limits(response_bytes=1000).for_request(600, 40).response_bytes == 1000
