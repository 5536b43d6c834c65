"""Several requests in one text: side by side, one after the other, and one told of twice."""

from __future__ import annotations

import pytest
from line_samples import OLLAMA_GIN, SERVER_2024, SERVER_2026, TEXTGEN, TIMINGS_V1
from told_by_logs import told

from twospeed.records.request_record import RequestRecord, ServerTimes
from twospeed.sources.logs.company import MOST_BESIDE, Span, beside
from twospeed.sources.logs.reading import read_text


def request(number: int, prefill_s: float, decode_s: float) -> RequestRecord:
    times = ServerTimes(told_by="test", prefill_s=prefill_s, decode_s=decode_s)
    return RequestRecord(number=number, server=times)


def test_a_prompt_disturbs_the_answer_beside_it_by_the_clock():
    requests = [request(1, 1.0, 9.0), request(2, 2.0, 4.0)]
    spans = [Span(1, 20, 100.0, 110.0), Span(5, 15, 104.0, 110.0)]
    first, second = beside(requests, spans)
    assert (first.other_requests, second.other_requests) == (1, 1)
    assert first.signs is not None
    assert first.signs.disturbed_s == pytest.approx(2.0)
    assert second.signs is None or second.signs.disturbed_s is None


def test_the_part_of_a_prompt_that_fell_into_the_own_prompt_does_not_count():
    requests = [request(1, 3.0, 7.0), request(2, 2.0, 4.0)]
    first, _ = beside(requests, [Span(1, 20, 100.0, 110.0), Span(5, 30, 102.0, 112.0)])
    assert first.signs is not None
    assert first.signs.disturbed_s == pytest.approx(1.0)


def test_without_a_clock_the_order_of_lines_decides():
    requests = [request(1, 1.0, 9.0), request(2, 2.0, 4.0)]
    first, second = beside(requests, [Span(1, 20), Span(5, 15)])
    assert first.signs is not None
    assert first.signs.disturbed_s == 2.0
    assert second.signs is None


def test_requests_that_follow_each_other_have_no_company():
    requests = [request(1, 1.0, 2.0), request(2, 1.0, 2.0)]
    assert [one.other_requests for one in beside(requests, [Span(1, 5), Span(6, 9)])] == [0, 0]


def test_what_a_log_does_not_show_stays_unknown():
    assert [one.other_requests for one in beside([request(1, 1.0, 2.0)], [None])] == [None]


def test_a_log_that_never_ends_its_requests_is_read_in_time():
    count = 5000
    requests = [request(number, 1.0, 2.0) for number in range(count)]
    spans = [Span(number, 10**6) for number in range(count)]
    most = max(one.other_requests or 0 for one in beside(requests, spans))
    assert MOST_BESIDE <= most < count


def test_lines_of_two_slots_are_told_apart():
    other = SERVER_2026.replace("id  2 | task 71", "id  0 | task 90").replace("id  2", "id  0")
    other = other.replace("5000 tokens", "2500 tokens").replace("   201 tokens", "   101 tokens")
    mixed = "\n".join(
        line
        for pair in zip(SERVER_2026.splitlines(), other.splitlines(), strict=True)
        for line in pair
    )
    records = read_text(mixed).records
    assert [one.signs.slot for one in records if one.signs] == [2, 0]
    assert [one.server.prefill_tokens for one in records if one.server] == [5000, 2500]
    assert [one.counts.output_tokens for one in records] == [201, 101]
    assert [one.other_requests for one in records] == [1, 1]


def test_times_below_two_headers_go_to_the_request_that_was_named():
    other = SERVER_2024.replace("id  0 | task 3", "id  1 | task 4").replace("1400.50", "2800.75")
    head, tail = SERVER_2024.split("slot print_timing")
    other_head, other_tail = other.split("slot print_timing")
    mixed = f"{head}{other_head}slot print_timing{other_tail}slot print_timing{tail}"
    prefills = {
        one.signs.slot: one.server.prefill_s
        for one in read_text(mixed).records
        if one.signs and one.server
    }
    assert prefills == {0: 1.4005, 1: 2.80075}


def test_a_request_without_times_is_none_and_does_not_disturb():
    cancelled = SERVER_2026.splitlines(keepends=True)
    text = "".join([*cancelled[:4], cancelled[-1]]).replace("task 71", "task 70") + SERVER_2026
    assert told(read_text(text)) == told(read_text(SERVER_2026))


def test_a_block_below_another_program_is_the_same_request():
    textgen = TEXTGEN.replace("100 tokens", "301 tokens").replace("25.00 seconds", "50.30 seconds")
    content = read_text(TIMINGS_V1 + textgen)
    assert told(content) == ((640, None, 250, 301, 5.0005, 45.00075, 300, 50.20025),)
    assert content.end_to_end == 0


def test_an_access_line_below_the_slots_of_its_child_is_the_same_request():
    access = OLLAMA_GIN.splitlines()[0].replace("14.250125s", "8.101234s")
    content = read_text(SERVER_2026 + access)
    assert told(content) == told(read_text(SERVER_2026))
    assert content.end_to_end == 0


def test_a_second_access_line_is_another_request():
    access = OLLAMA_GIN.splitlines()[0].replace("14.250125s", "8.101234s")
    assert len(read_text(f"{SERVER_2026}{access}\n{access}\n").records) == 2


def test_an_answer_and_the_log_of_its_server_tell_of_one_request():
    answer = (
        '{"choices": [], "usage": {"prompt_tokens": 5600, "completion_tokens": 201}, "timings": '
        '{"prompt_n": 5000, "prompt_ms": 4000.0, "predicted_n": 201, "predicted_ms": 4000.25, '
        '"cache_n": 600}}\n'
    )
    assert len(read_text(answer).records) == 1
    assert told(read_text(SERVER_2026 + answer)) == told(read_text(SERVER_2026))


def test_requests_are_numbered_and_know_their_first_line():
    later = SERVER_2026.replace("task 71", "task 72")
    assert [one.line for one in read_text(f"\n{SERVER_2026}{later}").records] == [3, 15]
