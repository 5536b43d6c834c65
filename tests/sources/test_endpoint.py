"""A whole endpoint: what it is found to be, the requests measured, and every fault."""

from __future__ import annotations

import asyncio
import json

import pytest
from tiny_server import (
    CHAT,
    DONE,
    GOOD_STREAM,
    LAST_CHUNK,
    MISSING,
    MODELS,
    STREAM_HEAD,
    Act,
    TinyServer,
    answer,
    chunk,
    delta,
    event,
    head,
    in_turn,
    models,
    stream,
    usage,
)

from twospeed.records.errors import (
    ConnectFailed,
    EndpointError,
    HttpRefused,
    ProtocolBroken,
    TimedOut,
    UsageError,
)
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.sources.live.endpoint import Endpoint
from twospeed.sources.live.time_limits import Limits

PROBE = Probe(step="curve", prompt_tokens=100, output_tokens=8)
LLAMA = "Server: llama.cpp"
LOADING = answer(
    {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, 503, LLAMA
)


def run(routes, talk, **options):
    """Open an endpoint on a scripted server and talk to it."""

    async def main():
        async with (
            TinyServer({MODELS: models("tiny"), **routes}) as server,
            await Endpoint.open(server.url, **options) as endpoint,
        ):
            return await talk(endpoint, server)

    return asyncio.run(main())


def measured(routes, probe: Probe = PROBE, **options) -> RequestRecord:
    async def talk(endpoint, server):
        return await endpoint.measure(probe, 1)

    return run(routes, talk, **options)


def opening_error(routes, **options) -> EndpointError | UsageError:
    async def main():
        async with TinyServer(routes) as server:
            with pytest.raises((EndpointError, UsageError)) as caught:
                await Endpoint.open(server.url, **options)
            return caught.value

    return asyncio.run(main())


def test_a_record_by_phase():
    record = measured({CHAT: GOOD_STREAM})
    client = record.client
    assert record.error is None
    assert (record.number, record.step, record.probe, record.model) == (1, "curve", PROBE, "tiny")
    assert record.dialect == "openai_chat"
    assert record.counts.prompt_tokens == 100
    assert record.counts.output_tokens == 2
    assert record.finish_reason == "length"
    assert len(record.arrivals) == 2
    assert client.ttft_s == record.arrivals[0].at_s
    assert 0 < client.headers_s <= client.ttft_s
    assert client.ttft_s < client.last_text_s < client.finish_s <= client.end_s
    assert client.first_answer_s == client.ttft_s
    assert record.started_at.endswith("+00:00")
    assert record.retries == 0
    assert client.connect_s is None, "opened when the endpoint was identified"


def test_several_texts_in_the_first_read_make_an_upper_bound():
    together = delta(content="a") + delta(content="b") + delta(content="c")
    record = measured({CHAT: stream(0.01, together, 0.01, delta(content="d"), delta("stop"))})
    assert record.client.ttft_is_upper_bound
    assert [arrival.coalesced for arrival in record.arrivals] == [False, True, True, False]


def test_a_role_with_the_first_text_is_no_upper_bound():
    first = delta(role="assistant", content=None) + delta(content="a")
    record = measured({CHAT: stream(first, 0.01, delta(content="b"), delta("stop"))})
    assert not record.client.ttft_is_upper_bound
    assert len(record.arrivals) == 2


def test_reasoning_comes_before_the_first_answer():
    record = measured(
        {CHAT: stream(delta(reasoning_content="hm"), 0.005, delta(content="a"), delta("stop"))}
    )
    assert record.client.first_answer_s > record.client.ttft_s
    assert [arrival.kind for arrival in record.arrivals] == ["reasoning", "answer"]


def test_on_text_hears_of_every_read_with_text():
    heard = []

    async def talk(endpoint, server):
        return await endpoint.measure(PROBE, 1, on_text=heard.append)

    record = run({CHAT: GOOD_STREAM}, talk)
    assert heard[0] == pytest.approx(record.client.ttft_s)
    assert heard == sorted(heard)
    assert len(heard) >= 2


def test_repeats_send_the_very_same_text_and_new_prompts_share_no_beginning():
    async def talk(endpoint, server):
        await endpoint.measure(PROBE, 1)
        await endpoint.measure(PROBE, 2)
        again = Probe(step="reuse", prompt_tokens=100, output_tokens=8, repeats=1)
        record = await endpoint.measure(again, 3)
        texts = [request.json["messages"][0]["content"] for request in server.asked(CHAT)]
        return record, texts

    record, (first, second, third) = run({CHAT: GOOD_STREAM}, talk)
    assert third == first
    assert first.split()[0] != second.split()[0]
    assert (record.repeats, record.step) == (1, "reuse")


def test_a_turn_more_sends_the_conversation_so_far():
    async def talk(endpoint, server):
        await endpoint.measure(PROBE, 1)
        more = Probe(step="reuse", prompt_tokens=100, output_tokens=8, repeats=1, change="appended")
        record = await endpoint.measure(more, 2)
        return record, [request.json["messages"] for request in server.asked(CHAT)]

    record, (first, second) = run({CHAT: GOOD_STREAM}, talk)
    assert [turn["role"] for turn in second] == ["user", "assistant", "user"]
    assert second[0] == first[0]
    assert second[1]["content"]
    assert second[2]["content"] != first[0]["content"]
    assert (record.repeats, record.change) == (1, "appended")


def test_another_conversation_is_a_new_prompt():
    async def talk(endpoint, server):
        await endpoint.measure(PROBE, 1)
        other = Probe(step="reuse", prompt_tokens=100, output_tokens=8, repeats=1, change="other")
        await endpoint.measure(other, 2)
        return [request.json["messages"][0]["content"] for request in server.asked(CHAT)]

    first, second = run({CHAT: GOOD_STREAM}, talk)
    assert first.split()[0] != second.split()[0]


def test_requests_together_travel_at_the_same_time():
    async def talk(endpoint, server):
        probe = Probe(step="together", prompt_tokens=100, output_tokens=8)
        records = await endpoint.measure_together([probe, probe, probe], 5)
        return records, {request.connection for request in server.asked(CHAT)}

    records, connections = run({CHAT: GOOD_STREAM}, talk)
    assert [record.number for record in records] == [5, 6, 7]
    assert {record.other_requests for record in records} == {2}
    assert all(record.error is None for record in records)
    assert len(connections) == 3


def test_a_text_of_the_users_own():
    async def talk(endpoint, server):
        await endpoint.measure(PROBE, 1, prompt="My own words.", stream=False)
        return server.asked(CHAT)[0].json

    whole = {
        "choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    }
    body = run({CHAT: answer(whole)}, talk)
    assert body["messages"] == [{"role": "user", "content": "My own words."}]
    assert body["stream"] is False


def test_nothing_listens():
    with pytest.raises(ConnectFailed, match=r"Nothing listens at http://127\.0\.0\.1:1\."):
        asyncio.run(Endpoint.open("http://127.0.0.1:1"))


def test_a_listener_that_says_nothing_is_given_up_after_one_question():
    async def main():
        async with TinyServer({}, every=[Act.HANG]) as server:
            loop = asyncio.get_running_loop()
            before_s = loop.time()
            with pytest.raises(TimedOut, match="did not answer") as caught:
                await Endpoint.open(server.url)
            return caught.value, loop.time() - before_s

    error, waited_s = asyncio.run(main())
    assert error.hint
    assert waited_s < 4, "not one wait for each of the questions"


def test_a_key_is_needed():
    denied = answer({"error": {"message": "Invalid API Key", "code": 401}}, 401)
    error = opening_error({MODELS: denied})
    assert isinstance(error, HttpRefused)
    assert error.http_status == 401
    assert "--api-key" in error.hint


def test_a_key_is_needed_only_to_generate():
    record = measured({CHAT: answer({"error": {"message": "Invalid API Key"}}, 401)})
    assert record.error.kind == "http"
    assert record.error.http_status == 401
    assert "--api-key" in record.error.message
    assert record.client.ttft_s is None


def test_an_unknown_model_lists_the_known_ones():
    error = opening_error({MODELS: models("alpha", "beta:7b")}, model="gamma")
    assert "gamma" in str(error)
    assert "alpha, beta:7b" in error.hint


@pytest.mark.parametrize(
    ("listed", "wanted", "chosen"),
    [
        (["alpha", "beta"], None, "alpha"),
        (["nomic-embed-text", "beta"], None, "beta"),
        (["bge-m3"], None, "bge-m3"),
        (["alpha", "beta:latest"], "beta", "beta:latest"),
        (["models/Small-Q4.gguf"], "small-q4", "models/Small-Q4.gguf"),
        (["alpha", "beta"], "beta", "beta"),
    ],
)
def test_which_model_is_measured(listed, wanted, chosen):
    async def talk(endpoint, server):
        return endpoint.model

    assert run({MODELS: models(*listed)}, talk, model=wanted) == chosen


def test_a_model_that_the_server_refuses():
    message = "The model `tiny` does not exist."
    record = measured({CHAT: answer({"error": {"message": message, "code": 404}}, 404)})
    assert record.error.http_status == 404
    assert message.rstrip(".") in record.error.message


def test_a_server_that_loads_is_waited_for():
    waits = []

    async def talk(endpoint, server):
        return endpoint.loading_s, endpoint.runtime.id, await endpoint.measure(PROBE, 1)

    ready = answer({"object": "list", "data": [{"id": "tiny", "owned_by": "llamacpp"}]}, 200, LLAMA)
    loading_s, runtime, record = run(
        {
            MODELS: in_turn(LOADING, LOADING, ready),
            "/health": in_turn(LOADING, answer({"status": "ok"}, 200, LLAMA)),
            "/props": in_turn(LOADING, answer({"total_slots": 1}, 200, LLAMA)),
            CHAT: GOOD_STREAM,
        },
        talk,
        on_loading=waits.append,
    )
    assert runtime == "llama-server"
    assert loading_s > 0.2
    assert waits == sorted(waits)
    assert record.error is None


def test_a_server_that_never_ends_loading():
    error = opening_error({MODELS: LOADING}, load_wait_s=0.1)
    assert isinstance(error, TimedOut)
    assert "still loading" in str(error)


def test_a_ready_server_was_not_waited_for():
    async def talk(endpoint, server):
        return endpoint.loading_s

    assert run({}, talk) is None


def test_a_web_page_is_no_model_server():
    page = answer(b"<!DOCTYPE html><title>Router</title>")

    async def main():
        async with TinyServer({}, every=[*page, Act.CLOSE]) as server:
            with pytest.raises(ProtocolBroken, match="web pages") as caught:
                await Endpoint.open(server.url)
            return caught.value

    assert "/v1/models" in asyncio.run(main()).hint


def test_something_that_is_not_http():
    async def main():
        async with TinyServer({}, every=[b"220 mail ready\r\n", Act.HANG]) as server:
            with pytest.raises(ProtocolBroken, match="does not answer in HTTP"):
                await Endpoint.open(server.url)

    asyncio.run(main())


def test_http_without_any_answer_of_a_model_server():
    error = opening_error({})
    assert isinstance(error, ProtocolBroken)
    assert "404" in str(error)


def test_garbage_in_the_stream_keeps_the_text_before_it():
    record = measured({CHAT: stream(delta(content="Once"), event("{nonsense"), DONE)})
    assert record.error.kind == "protocol"
    assert len(record.arrivals) == 1


def test_an_error_object_in_the_stream():
    broken = event({"error": {"message": "CUDA out of memory", "code": 500}})
    record = measured({CHAT: stream(delta(content="Once"), 0.005, broken)})
    assert "CUDA out of memory" in record.error.message
    assert record.client.ttft_s is not None


def test_status_500_instead_of_a_stream():
    record = measured({CHAT: answer({"error": {"message": "kaputt"}}, 500)})
    assert (record.error.kind, record.error.http_status) == ("http", 500)
    assert "server's log" in record.error.message


def test_too_many_requests():
    record = measured({CHAT: answer({"error": "slow down"}, 429)})
    assert record.error.http_status == 429
    assert "slow down" in record.error.message


def test_an_abrupt_end_in_the_stream():
    record = measured({CHAT: stream(delta(content="Once"), 0.005, end=[Act.CLOSE])})
    assert record.error.kind == "stream"
    assert "mid-answer" in record.error.message
    assert len(record.arrivals) == 1
    assert record.counts.output_tokens is None


def test_a_stall_in_the_stream_names_the_stage_and_keeps_the_text():
    limits = Limits(gap_s=0.03)
    record = measured({CHAT: stream(delta(content="Once"), end=[Act.HANG])}, limits=limits)
    assert record.error.kind == "timeout"
    assert "stalled" in record.error.message
    assert record.client.ttft_s is not None
    assert record.client.end_s is None


@pytest.mark.parametrize(
    "refusal",
    [
        {
            "error": {
                "code": 400,
                "message": "request (18920 tokens) exceeds the available context size (4096"
                " tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 18920,
                "n_ctx": 4096,
            }
        },
        {
            "error": {
                "message": "This model's maximum context length is 2048 tokens. However, your"
                " prompt contains at least 2049 input tokens, which exceeds this limit even"
                " without any output tokens.",
                "type": "BadRequestError",
                "param": "input_tokens",
                "code": 400,
            }
        },
        {"error": "the input is too long for the context window"},
    ],
)
def test_a_prompt_beyond_the_context_is_its_own_kind(refusal):
    record = measured({CHAT: answer(refusal, 400)})
    assert record.error.kind == "context"
    assert "larger context" in record.error.message


def test_another_bad_request_is_not_about_the_context():
    record = measured({CHAT: answer({"error": {"message": "max_tokens must be positive"}}, 400)})
    assert record.error.kind == "http"


def test_connections_that_die_after_each_answer_cost_a_counted_retry():
    """Keeps the connection open until the next request comes, then drops it unheard."""
    seen = set()

    def dies_when_reused(request):
        if request.connection in seen:
            return [Act.CLOSE]
        seen.add(request.connection)
        return GOOD_STREAM

    async def talk(endpoint, server):
        return [await endpoint.measure(PROBE, number) for number in (1, 2, 3)]

    records = run({CHAT: dies_when_reused}, talk)
    assert [record.error for record in records] == [None] * 3
    assert [record.retries for record in records] == [0, 1, 1]
    assert records[1].client.connect_s is not None
    assert all(record.client.ttft_s > 0 for record in records)


def test_the_server_dies_between_requests():
    async def main():
        async with TinyServer({MODELS: models("tiny"), CHAT: GOOD_STREAM}) as server:
            endpoint = await Endpoint.open(server.url)
        async with endpoint:
            return await endpoint.measure(PROBE, 1)

    record = asyncio.run(main())
    assert record.error.kind == "connect"
    assert "Nothing listens" in record.error.message
    assert record.client.ttft_s is None


def llama_routes(**routes):
    """A llama-server with a tokenizer of one token per word and a template of 30 tokens."""

    def tokenized(request):
        return answer({"tokens": list(range(len(request.json["content"].split())))}, 200, LLAMA)

    def generated(request):
        words = len(request.json["messages"][0]["content"].split())
        timings = {"cache_n": 3, "prompt_n": words + 27, "prompt_ms": 50.0}
        timings |= {"predicted_n": 3, "predicted_ms": 20.0}
        last = {"choices": [], "timings": timings, "usage": {"prompt_tokens": words + 30}}
        last["usage"]["completion_tokens"] = 3
        return stream(
            delta(role="assistant", content=None) + delta(content="a"),
            0.005,
            delta(content="b"),
            delta("length"),
            event(last),
        )

    return {
        MODELS: answer({"data": [{"id": "tiny", "owned_by": "llamacpp"}]}, 200, LLAMA),
        "/health": answer({"status": "ok"}, 200, LLAMA),
        "/props": answer(
            {"total_slots": 2, "build_info": "b1", "default_generation_settings": {"n_ctx": 512}},
            200,
            LLAMA,
        ),
        "/slots": answer([{"id": 0, "is_processing": False}], 200, LLAMA),
        "/tokenize": tokenized,
        CHAT: generated,
        **routes,
    }


def test_llama_server_tells_facts_counts_and_times():
    async def talk(endpoint, server):
        return endpoint, await endpoint.measure(PROBE, 1)

    endpoint, record = run(llama_routes(), talk)
    assert endpoint.runtime.id == "llama-server"
    assert endpoint.facts.n_ctx == 512
    assert endpoint.source().runtime_version == "b1"
    assert endpoint.source().local is True
    assert record.counts.cached_prompt_tokens == 3
    assert record.server.prefill_s == pytest.approx(0.05)
    assert record.other_requests == 0


def test_a_tokenizer_makes_the_second_prompt_exact():
    async def talk(endpoint, server):
        probe = Probe(step="curve", prompt_tokens=700, output_tokens=8)
        return [(await endpoint.measure(probe, n)).counts.prompt_tokens for n in (1, 2, 3)]

    lengths = run(llama_routes(), talk)
    assert lengths[0] == pytest.approx(700, rel=0.03)
    assert lengths[1:] == [pytest.approx(700, abs=4)] * 2


def test_without_a_tokenizer_lengths_are_learned():
    def generated(request):
        words = len(request.json["messages"][0]["content"].split())
        return stream(delta(content="a"), delta("length"), usage(round(44 + 2.1 * words), 1))

    async def talk(endpoint, server):
        lengths = (300, 1200, 600, 2500)
        probes = [Probe(step="curve", prompt_tokens=n, output_tokens=1) for n in lengths]
        records = [await endpoint.measure(probe, n) for n, probe in enumerate(probes, 1)]
        return [
            r.counts.prompt_tokens / p.prompt_tokens for r, p in zip(records, probes, strict=True)
        ]

    ratios = run({CHAT: generated}, talk)
    assert ratios[2:] == [pytest.approx(1, abs=0.03)] * 2


def test_requests_of_others_are_counted():
    busy = answer([{"id": i, "is_processing": i < 2} for i in range(3)], 200, LLAMA)
    assert measured(llama_routes(**{"/slots": busy})).other_requests == 2


def test_our_own_request_still_shown_for_an_instant_is_not_another():
    idle, busy = ([{"id": 0, "is_processing": on}] for on in (False, True))
    scripts = [answer(slots, 200, LLAMA) for slots in (idle, busy, idle)]
    assert measured(llama_routes(**{"/slots": in_turn(*scripts)})).other_requests == 0


def test_activity_that_is_not_shown_is_unknown_and_asked_only_once():
    async def talk(endpoint, server):
        records = [await endpoint.measure(PROBE, number) for number in (1, 2)]
        return [record.other_requests for record in records], len(server.asked("/slots"))

    hidden = answer({"error": {"message": "not supported", "code": 501}}, 501, LLAMA)
    assert run(llama_routes(**{"/slots": hidden}), talk) == ([None, None], 1)


def test_two_requests_at_once_use_two_connections_and_do_not_count_each_other():
    async def talk(endpoint, server):
        both = (endpoint.measure(PROBE, number) for number in (1, 2))
        records = await asyncio.gather(*both)
        return records, {request.connection for request in server.asked(CHAT)}

    records, connections = run(llama_routes(), talk)
    assert [record.error for record in records] == [None, None]
    assert len(connections) == 2


def test_the_round_trip_is_the_fastest_of_several():
    async def talk(endpoint, server):
        before = len(server.requests)
        return await endpoint.round_trip_s(), len(server.requests) - before

    round_trip_s, requests = run(llama_routes(), talk)
    assert round_trip_s > 0
    assert requests == 5


def test_the_round_trip_is_unknown_when_nothing_answers():
    async def main():
        async with TinyServer({MODELS: models("tiny")}) as server:
            endpoint = await Endpoint.open(server.url)
        async with endpoint:
            return await endpoint.round_trip_s()

    assert asyncio.run(main()) is None


def test_a_runtime_can_be_named():
    async def talk(endpoint, server):
        return endpoint.runtime.id

    assert run({}, talk, runtime_id="vllm") == "vllm"
    error = opening_error({MODELS: models("a")}, runtime_id="nonesuch")
    assert isinstance(error, UsageError)
    assert "llama-server" in error.hint


def test_the_request_carries_what_the_user_set_and_the_key():
    async def talk(endpoint, server):
        await endpoint.measure(PROBE, 1)
        return server.asked(CHAT)[0]

    request = run({CHAT: GOOD_STREAM}, talk, extra={"top_k": 5}, api_key="k")
    assert request.json["top_k"] == 5
    assert request.json["max_tokens"] == 8
    assert request.headers["authorization"] == "Bearer k"
    assert json.loads(request.body)["stream"] is True


def test_cut_framing_is_read_like_whole_framing():
    whole = b"".join(step for step in GOOD_STREAM if isinstance(step, bytes))
    pieces = [whole[at : at + 7] for at in range(0, len(whole), 7)]
    record = measured({CHAT: pieces})
    assert record.error is None
    assert len(record.arrivals) == 2


def test_connection_close_bodies_are_followed():
    body = delta(content="a") + delta("stop") + usage(50, 1) + DONE
    script = [head(200, "text/event-stream", "Connection: close"), body, Act.CLOSE]

    async def talk(endpoint, server):
        return [await endpoint.measure(PROBE, number) for number in (1, 2)]

    records = run({CHAT: script}, talk)
    assert [record.error for record in records] == [None, None]
    assert records[1].client.connect_s is not None
    assert records[1].counts.prompt_tokens == 50


def test_missing_routes_are_only_asked_once():
    async def talk(endpoint, server):
        return [request.path for request in server.requests]

    paths = run({"/props": MISSING, CHAT: [STREAM_HEAD, chunk(DONE), LAST_CHUNK]}, talk)
    assert len(paths) == len(set(paths))


def test_output_counts_that_no_event_bears_out_are_unknown():
    """Eight tokens were asked for, two came, five thousand were counted."""
    texts = (0.01, delta(content="a"), 0.01, delta(content="b"))
    lie = stream(*texts, delta("length"), usage(100, 5000))
    record = measured({CHAT: lie})
    assert record.error is None
    assert record.counts.output_tokens is None
    assert record.counts.prompt_tokens == 100


def test_a_fact_that_cannot_be_unpacked_ends_nothing():
    lines = ("Content-Encoding: gzip", "Content-Length: 4")
    broken = [head(200, "application/json", *lines) + b"nope"]
    record = measured({CHAT: GOOD_STREAM, "/props": broken, "/slots": broken})
    assert record.error is None
