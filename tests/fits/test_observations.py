"""Which timings are taken from a record, and how they are read off the arrivals."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from twospeed.fits.observations import (
    ClockDisagreement,
    RequestSpeeds,
    clock_disagreement,
    decode_points,
    prefill_points,
    request_speeds,
)
from twospeed.fits.phases import (
    client_decode,
    client_prefill,
    prompt_parts,
    server_decode,
    server_prefill,
)
from twospeed.records.request_record import (
    ClientTimes,
    RequestError,
    RequestRecord,
    ServerTimes,
    TextArrival,
    TokenCounts,
)

TTFT_S, ITL_S = 2.0, 0.1


def record(
    *,
    tokens: int = 33,
    per_event: int = 1,
    prompt: int | None = 1000,
    cached: int | None = 0,
    server: ServerTimes | None = None,
    client: dict[str, Any] | None = None,
    **more: Any,
) -> RequestRecord:
    """A request with ITL_S per token; an event comes with the last of its `per_event` tokens."""
    events = range(per_event - 1, tokens, per_event)
    arrivals = tuple(
        TextArrival(at_s=TTFT_S + ITL_S * last, kind="answer", chars=4, coalesced=False)
        for last in events
    )
    times = {"ttft_s": arrivals[0].at_s, "end_s": arrivals[-1].at_s + 0.01} | (client or {})
    fields: dict[str, Any] = {
        "number": 3,
        "step": "curve",
        "counts": TokenCounts(
            prompt_tokens=prompt, cached_prompt_tokens=cached, output_tokens=tokens
        ),
        "client": ClientTimes(**times),
        "server": server,
        "arrivals": arrivals,
        "finish_reason": "length",
    }
    return RequestRecord(**(fields | more))


TOLD = ServerTimes(
    told_by="timings", prefill_s=1.9, prefill_tokens=996, decode_s=3.1, decode_steps=32
)


def client_points(*records: RequestRecord, round_trip_s: float | None = None) -> list[Any]:
    return prefill_points(records, round_trip_s=round_trip_s, ignore_timings=False)


def test_the_server_is_believed_about_prefill_and_about_the_uncached_part():
    (point,) = client_points(record(server=TOLD))
    assert (point.prompt_tokens, point.cached_tokens, point.s) == (1000, 4, 1.9)
    assert (point.origin, point.record) == ("server", 3)


def test_the_clocks_of_the_server_can_be_left_unused():
    (point,) = prefill_points([record(server=TOLD)], round_trip_s=0.1, ignore_timings=True)
    assert (point.s, point.origin) == (pytest.approx(TTFT_S - 0.1), "client")
    (point,) = decode_points([record(server=TOLD)], ignore_timings=True)
    assert (point.per_token_s, point.origin) == (pytest.approx(ITL_S), "client")


def test_one_fit_never_mixes_the_clocks():
    records = [record(server=TOLD), record(server=TOLD), record()]
    assert {point.origin for point in client_points(*records)} == {"server"}
    assert {point.origin for point in client_points(*records[1:], record())} == {"client"}
    assert {point.origin for point in decode_points(records, ignore_timings=False)} == {"server"}


def test_our_clock_takes_the_round_trip_off():
    (point,) = client_points(record(), round_trip_s=0.25)
    assert point.s == pytest.approx(TTFT_S - 0.25)


@pytest.mark.parametrize("per_event", [1, 2, 4, 8])
def test_tokens_that_waited_for_their_chunk_count_as_decode(per_event: int):
    (point,) = client_points(record(tokens=64, per_event=per_event))
    assert point.s == pytest.approx(TTFT_S)


@pytest.mark.parametrize(
    "changes",
    [
        {"step": "warmup"},
        {"error": RequestError(kind="stream", message="cut")},
        {"other_requests": 1},
        {"client": {"ttft_is_upper_bound": True}},
        {"client": {"headers_s": 1.2}},
        {"client": {"ttft_s": None}},
        {"server": ServerTimes(told_by="x", queue_s=0.8)},
        {"server": ServerTimes(told_by="x", load_s=0.8)},
        {"prompt": None},
        {"prompt": 1000, "cached": 990},
        {"cached": None, "step": "reuse", "repeats": 2},
        {"cached": None, "repeats": 2},
        {"cached": None, "step": "user"},
    ],
    ids=str,
)
def test_a_timing_that_is_not_prefill_alone_is_left_out(changes: dict[str, Any]):
    assert client_points(record()) != []
    assert client_points(record(**changes)) == []


@pytest.mark.parametrize("headers_s", [0.02, 0.09, 1.95, 2.0])
def test_headers_at_once_or_with_the_first_text_show_no_queue(headers_s: float):
    assert client_points(record(client={"headers_s": headers_s})) != []


def test_reasoning_that_is_hidden_spoils_the_wait_but_not_the_stream():
    counts = TokenCounts(
        prompt_tokens=1000, cached_prompt_tokens=0, output_tokens=133, reasoning_tokens=100
    )
    hidden = record(tokens=33, counts=counts)
    assert client_points(hidden) == []
    (point,) = decode_points([hidden], ignore_timings=False)
    assert point.per_token_s == pytest.approx(ITL_S)
    assert point.depth_tokens == 1000 + 100 + 33 / 2


def test_reasoning_that_is_shown_is_decode_like_any_other():
    shown = record(tokens=33)
    arrivals = tuple(structs.replace(a, kind="reasoning") for a in shown.arrivals[:20])
    counts = structs.replace(shown.counts, reasoning_tokens=20)
    shown = structs.replace(shown, arrivals=arrivals + shown.arrivals[20:], counts=counts)
    (point,) = decode_points([shown], ignore_timings=False)
    assert point.per_token_s == pytest.approx(ITL_S)
    assert client_points(shown)[0].s == pytest.approx(TTFT_S)


def test_a_prompt_made_unique_counts_as_uncached_where_the_runtime_hides_it():
    assert prompt_parts(record(cached=None)) == (1000, 0)
    assert prompt_parts(record(cached=None, step="warmup")) == (1000, 0)
    assert prompt_parts(record(cached=None, step="user")) is None
    assert prompt_parts(record(cached=300)) == (700, 300)
    assert prompt_parts(record(cached=None, step="user", server=TOLD)) == (996, 4)


@pytest.mark.parametrize("per_event", [1, 2, 4, 8])
def test_decode_speed_does_not_depend_on_tokens_per_chunk(per_event: int):
    (point,) = decode_points([record(tokens=64, per_event=per_event)], ignore_timings=False)
    assert point.per_token_s == pytest.approx(ITL_S)
    assert point.steps == pytest.approx(64 - per_event)
    assert point.depth_tokens == 1032


def test_an_end_mark_is_a_step_without_text():
    spoken = record(tokens=32)  # 32 with text, and the mark
    counts = structs.replace(spoken.counts, output_tokens=33)
    client = structs.replace(spoken.client, finish_s=TTFT_S + 32 * ITL_S)
    marked = structs.replace(spoken, counts=counts, client=client, finish_reason="stop")
    decode = client_decode(marked)
    assert decode is not None
    assert decode.steps == pytest.approx(32)
    assert decode.s / decode.steps == pytest.approx(ITL_S)
    unseen = structs.replace(marked, client=structs.replace(client, finish_s=None))
    decode = client_decode(unseen)
    assert decode is not None
    assert (decode.steps, decode.s) == (pytest.approx(31), pytest.approx(31 * ITL_S))


def test_events_that_came_in_the_first_read_together_do_not_count_as_fast():
    late = record(tokens=33)
    stamp = late.arrivals[4].at_s
    first = [
        structs.replace(a, at_s=stamp, coalesced=i > 0) for i, a in enumerate(late.arrivals[:5])
    ]
    decode = client_decode(structs.replace(late, arrivals=(*first, *late.arrivals[5:])))
    assert decode is not None
    assert (decode.steps, decode.s) == (pytest.approx(28), pytest.approx(28 * ITL_S))


def test_a_stream_that_came_in_one_piece_shows_no_decode():
    whole = record(tokens=33)
    arrivals = tuple(
        structs.replace(a, at_s=5.0, coalesced=i > 0) for i, a in enumerate(whole.arrivals)
    )
    assert client_decode(structs.replace(whole, arrivals=arrivals)) is None


def test_words_cut_into_several_events_are_not_more_tokens():
    pieces = record(tokens=33)
    halves = [
        structs.replace(a, at_s=a.at_s + half * 1e-4) for a in pieces.arrivals for half in (0, 1)
    ]
    decode = client_decode(structs.replace(pieces, arrivals=tuple(halves)))
    assert decode is not None
    assert decode.s / decode.steps == pytest.approx(ITL_S, rel=0.01)


@pytest.mark.parametrize(("tokens", "seen"), [(8, False), (9, True)])
def test_few_steps_make_no_point(tokens: int, seen: bool):
    assert bool(decode_points([record(tokens=tokens)], ignore_timings=False)) == seen


def test_without_token_counts_there_is_no_decode():
    unknown = record(counts=TokenCounts(prompt_tokens=1000))
    assert client_decode(unknown) is None
    assert decode_points([unknown], ignore_timings=False) == []
    assert decode_points([record(prompt=None)], ignore_timings=False) == []  # no depth


def test_a_prefill_that_would_come_out_negative_is_unknown():
    assert client_prefill(record(), round_trip_s=3.0) is None


def test_the_clocks_are_compared_per_phase():
    found = clock_disagreement([record(server=TOLD)] * 3, round_trip_s=0.005)
    assert found.prefill_ratio == pytest.approx((TTFT_S - 0.005) / 1.9)
    assert found.prefill_excess_s == pytest.approx(0.095)
    assert found.decode_ratio == pytest.approx(ITL_S / (3.1 / 32))
    assert (found.prefill_pairs, found.decode_pairs) == (3, 3)


def test_one_clock_alone_cannot_disagree():
    assert clock_disagreement([record()], None) == ClockDisagreement()


def test_a_request_is_shown_by_the_clock_of_its_server():
    told = structs.replace(TOLD, queue_s=0.0, load_s=0.5, total_s=9.0)
    speeds = request_speeds(record(server=told))
    assert speeds.prefill_tps == pytest.approx(996 / 1.9)
    assert speeds.decode_tps == pytest.approx(32 / 3.1)
    assert (speeds.prefill_origin, speeds.decode_origin) == ("server", "server")
    assert (speeds.queue_s, speeds.load_s) == (0.0, 0.5)
    assert (speeds.ttft_s, speeds.total_s, speeds.total_origin) == (TTFT_S, 5.21, "client")


def test_a_request_is_shown_by_ours_when_the_server_tells_nothing():
    speeds = request_speeds(record(), round_trip_s=0.1)
    assert speeds.prefill_tps == pytest.approx(1000 / 1.9)
    assert speeds.decode_tps == pytest.approx(10)
    assert (speeds.prefill_origin, speeds.decode_origin) == ("client", "client")
    assert (speeds.queue_s, speeds.load_s) == (None, None)


def test_a_log_line_shows_the_servers_total():
    logged = RequestRecord(number=1, server=ServerTimes(told_by="log", prefill_s=2.0, total_s=3.0))
    assert request_speeds(logged) == RequestSpeeds(
        prefill_s=2.0, prefill_origin="server", total_s=3.0, total_origin="server"
    )


def test_prefill_of_an_unknown_part_has_seconds_but_no_speed():
    told = ServerTimes(told_by="eval_duration", prefill_s=0.2)
    speeds = request_speeds(record(cached=None, step="reuse", repeats=2, server=told))
    assert (speeds.prefill_s, speeds.prefill_tps) == (0.2, None)


def test_nothing_known_shows_nothing():
    assert request_speeds(RequestRecord(number=1)) == RequestSpeeds()


def test_counts_inside_the_events_outrank_every_estimate():
    # Four tokens were generated before the first text: three of them were no text yet.
    arrivals = tuple(
        TextArrival(at_s=at_s, kind="answer", chars=3, coalesced=False, output_tokens=count)
        for at_s, count in ((1.03, 4), (1.05, 6), (1.06, 7))
    )
    told = RequestRecord(
        number=1,
        step="curve",
        counts=TokenCounts(prompt_tokens=500, cached_prompt_tokens=0, output_tokens=8),
        client=ClientTimes(ttft_s=1.03, last_text_s=1.06, end_s=1.07),
        arrivals=arrivals,
        finish_reason="length",
    )
    decode = client_decode(told)
    assert decode is not None
    assert decode.steps == 3
    assert decode.s == pytest.approx(0.03)
    prefill = client_prefill(told, 0.0)
    assert prefill is not None
    assert prefill.s == pytest.approx(1.0)


def chunked(first_tokens: int) -> RequestRecord:
    """33 tokens of four letters each, four to an event after the first one; 10 ms per token."""
    counts = [first_tokens, *[4] * ((33 - first_tokens) // 4)]
    counts += [33 - sum(counts)] if sum(counts) < 33 else []
    done = [sum(counts[: index + 1]) for index in range(len(counts))]
    arrivals = tuple(
        TextArrival(at_s=1.0 + (n - 1) * 0.01, kind="answer", chars=4 * size, coalesced=False)
        for n, size in zip(done, counts, strict=True)
    )
    return RequestRecord(
        number=1,
        step="curve",
        counts=TokenCounts(prompt_tokens=500, cached_prompt_tokens=0, output_tokens=33),
        client=ClientTimes(ttft_s=arrivals[0].at_s, last_text_s=arrivals[-1].at_s),
        arrivals=arrivals,
        finish_reason="length",
    )


@pytest.mark.parametrize("first_tokens", [1, 4])
def test_the_first_of_several_tokens_may_come_alone_or_wait(first_tokens: int):
    told = chunked(first_tokens)
    prefill, decode = client_prefill(told, 0.0), client_decode(told)
    assert prefill is not None
    assert decode is not None
    assert prefill.s == pytest.approx(1.0, rel=0.005)
    assert decode.s / decode.steps == pytest.approx(0.01, rel=0.02)


def test_a_wait_that_is_mostly_decode_tells_no_prefill():
    told = structs.replace(
        chunked(4),
        client=ClientTimes(ttft_s=0.05, last_text_s=0.33),
    )
    assert client_prefill(told, 0.0) is None


@pytest.mark.parametrize("seconds", [0.0, 5e-324, 1e-300, 1e-10])
def test_less_than_any_clock_can_tell_is_no_measurement(seconds):
    told = ServerTimes(
        told_by="t", prefill_s=seconds, prefill_tokens=1000, decode_s=seconds, decode_steps=32
    )
    one = record(server=told)
    assert server_prefill(one) is None
    assert server_decode(one) is None
    assert request_speeds(one).decode_origin == "client"
