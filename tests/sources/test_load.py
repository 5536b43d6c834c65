"""Many requests at once: all are recorded, nothing else goes over the wire, failures end it."""

from __future__ import annotations

import asyncio
import gc
import resource

import pytest
from tiny_server import (
    CHAT,
    GOOD_STREAM,
    MISSING,
    MODELS,
    STREAM_END,
    Act,
    TinyServer,
    answer,
    delta,
    in_turn,
    models,
    stream,
    usage,
)

from twospeed.records.errors import UsageError
from twospeed.records.request_record import Probe
from twospeed.sources.live import load as load_module
from twospeed.sources.live.endpoint import Endpoint
from twospeed.sources.live.load import Load, allow_files, ready_load

PROBE = Probe(step="curve", prompt_tokens=60, output_tokens=4)
LLAMA = "Server: llama.cpp"


def sent(routes, *, act=None, **changes):
    """Records of a load on a scripted server, whether all was sent, and the server."""
    load = Load(**({"probe": PROBE} | changes))

    async def main():
        async with (
            TinyServer({MODELS: models("tiny"), **routes}) as server,
            await Endpoint.open(server.url) as endpoint,
        ):
            prepared = []
            ready = await ready_load(endpoint, load, prepared.append)
            if act is not None:
                await act(server)
            seen_before = len(server.requests)
            records = []
            complete = await ready.run(records.append)
            return records, complete, server, server.requests[seen_before:], prepared

    return asyncio.run(main())


def test_all_requests_are_recorded_once_and_counted_from_one():
    records, complete, server, requests, prepared = sent(
        {CHAT: GOOD_STREAM}, requests=20, concurrency=5
    )
    assert complete
    assert sorted(record.number for record in records) == list(range(1, 21))
    assert all(record.error is None for record in records)
    assert all(record.counts.output_tokens == 2 for record in records)
    assert len(server.asked(CHAT)) == len(requests) == 20
    assert prepared == list(range(1, 21)), "all prompts are written before the first is sent"
    assert server.connections == 5


def test_all_prompts_differ_from_their_first_words_on():
    _, _, server, *_ = sent({CHAT: GOOD_STREAM}, requests=8, concurrency=8)
    prompts = [request.json["messages"][0]["content"] for request in server.asked(CHAT)]
    assert len({prompt[:12] for prompt in prompts}) == 8


def test_a_text_of_the_users_own_is_sent_each_time():
    records, _, server, *_ = sent({CHAT: GOOD_STREAM}, requests=3, concurrency=2, prompt="Hello")
    prompts = [request.json["messages"][0]["content"] for request in server.asked(CHAT)]
    assert prompts == ["Hello"] * 3
    assert len(records) == 3


def test_connections_are_opened_before_anything_is_sent():
    open_before = []

    async def look(server):
        open_before.append(server.connections)

    records, *_ = sent({CHAT: GOOD_STREAM}, act=look, requests=6, concurrency=6)
    assert open_before == [6]
    opened = [record.client.connect_s for record in records]
    assert sum(connect_s is not None for connect_s in opened) == 5, "one was open already"


def test_no_more_connections_than_requests():
    _, _, server, *_ = sent({CHAT: GOOD_STREAM}, requests=2, concurrency=50)
    assert server.connections == 2


SLOTS = {
    "/props": answer({"total_slots": 4, "build_info": "b1"}, 200, LLAMA),
    "/slots": answer([{"is_processing": True}, {"is_processing": False}], 200, LLAMA),
}


def test_beside_others_only_the_requests_themselves_go_over_the_wire():
    records, _, _, requests, _ = sent({**SLOTS, CHAT: GOOD_STREAM}, requests=6, concurrency=3)
    assert {request.path for request in requests} == {CHAT}
    assert {record.other_requests for record in records} == {None}


def test_one_at_a_time_the_server_is_asked_what_else_it_does():
    records, _, server, *_ = sent({**SLOTS, CHAT: GOOD_STREAM}, requests=2)
    assert {record.other_requests for record in records} == {1}
    assert len(server.asked("/slots")) >= 4


def test_a_server_that_closes_after_every_stream_loses_no_request():
    script = [*GOOD_STREAM, Act.CLOSE]
    records, complete, *_ = sent({CHAT: script}, requests=60, concurrency=12)
    assert complete
    assert len(records) == 60
    assert [record.error for record in records if record.error] == []


def test_requests_under_dying_connections_are_sent_again_and_counted():
    records, *_ = sent({CHAT: in_turn(GOOD_STREAM, [Act.CLOSE], GOOD_STREAM)}, requests=3)
    assert [record.retries for record in records] == [0, 1, 0]
    assert [record.error for record in records] == [None] * 3


def test_single_failures_do_not_end_it():
    records, complete, *_ = sent(
        {CHAT: in_turn(MISSING, GOOD_STREAM, MISSING, GOOD_STREAM)}, requests=30
    )
    assert complete
    assert [record.number for record in records if record.error] == [1, 3]


def test_ten_failures_in_a_row_end_it():
    records, complete, server, *_ = sent({CHAT: MISSING}, requests=500)
    assert not complete
    assert len(records) == len(server.asked(CHAT)) == 10


def test_as_many_failures_as_connections_end_it():
    records, complete, *_ = sent({CHAT: MISSING}, requests=500, concurrency=30)
    assert not complete
    assert 30 <= len(records) < 60


def test_starts_are_spread(monkeypatch):
    monkeypatch.setattr(load_module, "SPREAD_S", 0.2)
    records, *_ = sent({CHAT: GOOD_STREAM}, requests=4, concurrency=4, start="spread")
    starts = sorted(record.started_at for record in records)
    assert starts[-1] > starts[0]
    assert [record.number for record in records] == [1, 2, 3, 4]


def test_a_whole_answer_has_no_time_to_first_token():
    body = {
        "choices": [{"message": {"content": "Once upon"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 60, "completion_tokens": 2},
    }
    (record,), *_ = sent({CHAT: answer(body)}, stream=False)
    assert record.error is None
    assert record.client.ttft_is_upper_bound
    assert not sent({CHAT: GOOD_STREAM})[0][0].client.ttft_is_upper_bound


def test_a_failure_of_who_listens_ends_the_load_and_is_passed_on():
    class FullDiskError(Exception):
        pass

    def refuse(_record):
        raise FullDiskError

    async def main():
        async with (
            TinyServer({MODELS: models("tiny"), CHAT: [*GOOD_STREAM[:2], Act.HANG]}) as server,
            await Endpoint.open(server.url) as endpoint,
        ):
            server.routes[CHAT] = in_turn(GOOD_STREAM, [Act.HANG])
            ready = await ready_load(endpoint, Load(probe=PROBE, requests=6, concurrency=3))
            with pytest.raises(FullDiskError):
                await ready.run(refuse)
            return len(asyncio.all_tasks()) - len(server._tasks)

    assert asyncio.run(main()) == 1, "no lane is left"
    assert gc.isenabled()


def test_cancelling_keeps_what_was_recorded():
    async def main():
        async with (
            TinyServer({MODELS: models("tiny"), CHAT: in_turn(GOOD_STREAM, [Act.HANG])}) as server,
            await Endpoint.open(server.url) as endpoint,
        ):
            ready = await ready_load(endpoint, Load(probe=PROBE, requests=9, concurrency=3))
            records = []
            first = asyncio.Event()

            def note(record):
                records.append(record)
                first.set()

            task = asyncio.create_task(ready.run(note))
            await first.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return records

    (record,) = asyncio.run(main())
    assert record.error is None


def test_a_long_stream_is_read_while_it_arrives():
    words = [delta(content=f"w{i} " + "x" * 200) for i in range(300)]
    steps = [step for word in words for step in (word, 0.0)]
    route = stream(*steps, delta("length"), usage(60, 300), end=STREAM_END)
    (record,), *_ = sent({CHAT: route})
    assert record.error is None
    assert len(record.arrivals) == 300
    assert record.counts.output_tokens == 300
    stamps = [arrival.at_s for arrival in record.arrivals]
    assert stamps == sorted(stamps)
    assert [arrival.chars for arrival in record.arrivals][:3] == [203, 203, 203]


def test_more_files_are_allowed_where_the_system_permits():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = before
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        allow_files(200)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 256
        allow_files(300)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 300
        if hard != resource.RLIM_INFINITY:
            with pytest.raises(UsageError, match="open files"):
                allow_files(hard + 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_prompts_that_memory_cannot_hold_are_refused(monkeypatch):
    monkeypatch.setattr(load_module, "MOST_PROMPT_BYTES", 2000)
    with pytest.raises(UsageError, match="fewer --requests"):
        sent({CHAT: GOOD_STREAM}, requests=50)
