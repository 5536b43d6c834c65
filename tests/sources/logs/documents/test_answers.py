"""API answers: one record per request, in the meaning of the runtime that sent it."""

from __future__ import annotations

import json

import pytest

from twospeed.fits.observations import request_speeds
from twospeed.sources.logs.documents.registry import read_document


def only(content):
    (record,) = content.records
    return record


def test_a_captured_stream_is_one_request_with_its_last_times(told):
    content = told("llama_server.sse")
    record = only(content)
    assert record.counts.prompt_tokens == 400
    assert record.counts.cached_prompt_tokens == 100
    assert record.counts.output_tokens == 51
    assert record.server is not None
    assert (record.server.prefill_s, record.server.prefill_tokens) == (0.15, 300)
    assert (record.server.decode_s, record.server.decode_steps) == (1.0, 50)
    assert record.signs is not None
    assert (record.signs.drafted_tokens, record.signs.accepted_tokens) == (40, 30)
    assert (content.runtime, content.model) == ("llama-server", "wren-7b")


def test_a_native_answer_of_an_old_build_tells_the_cached_part_by_its_counts(told):
    record = only(told("llama_server.json"))
    assert record.counts.prompt_tokens == 500
    assert record.counts.cached_prompt_tokens == 300
    assert record.counts.output_tokens == 21
    assert record.signs is not None
    assert (record.signs.slot, record.signs.context_cut) == (2, True)


def test_the_same_times_shown_twice_are_one_request():
    times = {"cache_n": 0, "prompt_n": 9, "prompt_ms": 5.5, "predicted_n": 3, "predicted_ms": 7.25}
    flat = {"completion_tokens": 3, "prompt_tokens": 9, "total_tokens": 12, **times}
    answer = {"usage": {"completion_tokens": 3, "prompt_tokens": 9}, "timings": times, "id": "x"}
    text = f"The API says\n{json.dumps(answer)}\nand Open WebUI {json.dumps(flat, indent=4)}!"
    content = read_document(text)
    assert content is not None
    assert only(content).counts.prompt_tokens == 9


def test_different_answers_under_one_identifier_stay_apart():
    def answer(ms):
        return {"id": "chatcmpl-0", "object": "chat.completion", "timings": {"predicted_ms": ms,
                "predicted_n": 5, "prompt_n": 7, "prompt_ms": ms}}  # fmt: skip

    content = read_document(json.dumps(answer(10)) + json.dumps(answer(20)))
    assert content is not None
    assert [record.number for record in content.records] == [1, 2]


def test_degenerate_times_are_unknown():
    text = '{"timings": {"prompt_n": 1, "prompt_ms": 0.0, "predicted_n": 1, "predicted_ms": 0.001}}'
    assert read_document(text) is None


def test_usage_alone_has_counts_and_no_times(told):
    record = only(told("openai_usage.json"))
    assert record.counts.prompt_tokens == 900
    assert record.counts.cached_prompt_tokens == 768
    assert (record.counts.output_tokens, record.counts.reasoning_tokens) == (120, 20)
    assert record.server is None
    speeds = request_speeds(record)
    assert (speeds.prefill_s, speeds.decode_s, speeds.total_s) == (None, None, None)


def test_a_stream_that_counts_as_it_goes_is_one_request():
    lines = [
        {"id": "c", "object": "chat.completion.chunk", "usage": {"prompt_tokens": 5,
         "completion_tokens": n}} for n in (1, 2, 3)
    ]  # fmt: skip
    content = read_document("\n\n".join(f"data: {json.dumps(line)}" for line in lines))
    assert content is not None
    assert only(content).counts.output_tokens == 3


def test_usage_of_a_stream_whose_times_came_in_another_piece_is_no_second_request():
    text = (
        'data: {"id":"c","object":"chat.completion.chunk","timings":{"prompt_n":5,"prompt_ms":4.0,'
        '"cache_n":0,"predicted_n":3,"predicted_ms":9.0}}\n'
        'data: {"id":"c","object":"chat.completion.chunk","usage":{"prompt_tokens":5,'
        '"completion_tokens":3}}\n'
    )
    content = read_document(text)
    assert content is not None
    assert only(content).server is not None


def test_mistralrs_tells_seconds_in_usage(told):
    content = told("mistralrs.json")
    record = only(content)
    assert content.runtime == "mistralrs"
    assert record.server is not None
    assert (record.server.prefill_s, record.server.decode_s, record.server.total_s) == (1, 2, 3)
    assert record.counts.cached_prompt_tokens is None


def test_ollama_counts_the_last_object_and_the_rest_of_seconds_as_queue(told):
    content = told("ollama.ndjson")
    first, second = content.records
    assert first.counts.prompt_tokens == 250
    assert first.counts.cached_prompt_tokens is None
    assert first.server is not None
    assert (first.server.load_s, first.server.prefill_s, first.server.decode_s) == (0.5, 1, 2)
    assert first.server.queue_s is None, "half a second is templates and tokenizing"
    assert second.server is not None
    assert second.server.queue_s == pytest.approx(6.5)
    assert (first.line, second.line) == (2, 3)


def test_ollama_tells_how_much_of_the_model_is_in_graphics_memory(told):
    facts = told("ollama.ndjson").facts
    assert (facts.size_bytes, facts.size_vram_bytes) == (6_000_000_000, 3_000_000_000)
    assert (facts.n_ctx, facts.quantization) == (8192, "Q4_K_M")


def test_lmstudio_first_token_is_no_prefill(told):
    for name in ("lmstudio_v0.json", "lmstudio_v1.json", "lmstudio_sdk.json"):
        content = told(name)
        speeds = request_speeds(only(content))
        assert speeds.prefill_s is None, name
        assert speeds.ttft_s is not None, name
        assert content.runtime == "lmstudio"


def test_lmstudio_v1_loads_and_decodes(told):
    record = only(told("lmstudio_v1.json"))
    assert record.counts.prompt_tokens == 60
    assert (record.counts.output_tokens, record.counts.reasoning_tokens) == (200, 50)
    assert record.server is not None
    assert (record.server.load_s, record.server.decode_s) == (4.25, 8.0)
    assert record.model == "wren-7b"


def test_lmstudio_v0_has_a_generation_time_and_names_its_engine(told):
    content = told("lmstudio_v0.json")
    record = only(content)
    assert record.server is not None
    assert (record.server.decode_s, record.server.decode_steps) == (2.0, 80)
    assert record.server.total_s is None
    assert (content.facts.backend, content.facts.n_ctx) == ("cuda", 4096)


def test_lmstudio_sdk_has_a_whole_time(told):
    server = only(told("lmstudio_sdk.json")).server
    assert server is not None
    assert (server.total_s, server.decode_s) == (6.5, 5.0)
