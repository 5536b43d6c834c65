from __future__ import annotations

import pytest

from twospeed.runtimes.registry import runtime_by_id
from twospeed.runtimes.runtime import Answer


def test_idle_slots_of_llama_server(capture):
    assert runtime_by_id("llama-server").activity(capture("llama-server", "slots")) == 0


def test_busy_slots_of_llama_server(tell):
    slots = [{"id": 0, "is_processing": True}, {"id": 1, "is_processing": False}, "odd"]
    assert runtime_by_id("llama-server").activity(tell(slots)) == 1


@pytest.mark.parametrize("status", [404, 501, 503, None])
def test_hidden_slots_are_unknown_and_not_idle(status):
    answer = Answer(status=status, json={"error": {"message": "no slots", "code": 501}})
    assert runtime_by_id("llama-server").activity(answer) is None


def test_vllm_counts_running_and_waiting_of_all_engines(capture, tell):
    vllm = runtime_by_id("vllm")
    assert vllm.activity_ask().path == "/metrics"
    assert vllm.activity(capture("vllm", "metrics")) == 0
    page = (
        'vllm:num_requests_running{engine="0",model_name="a \\"b\\" {c}"} 2.0\n'
        'vllm:num_requests_running{engine="1"} 1.0 1796072294\n'
        'vllm:num_requests_waiting{engine="0"} 4\n'
        'vllm:num_requests_waiting_by_reason{reason="capacity"} 4\n'
    )
    assert vllm.activity(tell(page)) == 7


@pytest.mark.parametrize("page", ["", "vllm:num_requests_running NaN", "vllm:num_requests_running"])
def test_a_page_without_gauges_is_unknown(page, tell):
    assert runtime_by_id("vllm").activity(tell(page)) is None


def test_sglang_and_koboldcpp_count_theirs(endpoints, tell):
    assert runtime_by_id("sglang").activity(endpoints["sglang"]["/metrics"]) == 3
    assert runtime_by_id("sglang").activity(endpoints["sglang"].missing) is None
    kobold = runtime_by_id("koboldcpp")
    assert kobold.activity(endpoints["koboldcpp"]["/api/extra/perf"]) == 3
    assert kobold.activity(tell({"queue": 0, "idle": 1})) == 0
    assert kobold.activity(tell({"idle": 1})) is None


@pytest.mark.parametrize("name", ["ollama", "lmstudio", "mlx_lm", "transformers", "openai"])
def test_who_shows_no_activity_is_not_asked(name):
    assert runtime_by_id(name).activity_ask() is None
    assert runtime_by_id(name).activity(Answer(status=200, json=[])) is None


def test_tokens_are_counted_by_the_server(capture, tell):
    llama = runtime_by_id("llama-server")
    assert llama.tokenize(None, "hello world").body == {"content": "hello world"}
    assert llama.token_count(capture("llama-server", "tokenize")) == 2
    vllm = runtime_by_id("vllm")
    assert vllm.tokenize("tiny", "hello world").body["model"] == "tiny"
    assert "model" not in vllm.tokenize(None, "hello world").body
    assert vllm.token_count(capture("vllm", "tokenize")) == 2
    assert runtime_by_id("koboldcpp").token_count(tell({"value": 3, "ids": [1, 2, 3]})) == 3
    assert runtime_by_id("tabbyapi").token_count(tell({"tokens": [1], "length": 1})) == 1


def test_a_refused_count_is_unknown(tell):
    refused = tell({"error": {"message": "no"}}, 404)
    for name in ("llama-server", "vllm", "koboldcpp", "tabbyapi", "openai"):
        assert runtime_by_id(name).token_count(refused) is None
    assert runtime_by_id("ollama").tokenize("heron", "hi") is None
