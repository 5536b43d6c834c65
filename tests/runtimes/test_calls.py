from __future__ import annotations

import json

import pytest

from twospeed.runtimes.registry import all_runtimes, runtime_by_id
from twospeed.runtimes.runtime import Generation

WIRE_DIALECTS = {"openai_chat", "ollama_native", "lmstudio_native"}


def body_of(name, **fields):
    made = {"model": "heron", "prompt": "Count.", "output_tokens": 6, **fields}
    return runtime_by_id(name).call(Generation(**made)).body


def test_any_endpoint_is_asked_for_usage_in_the_stream(chat):
    call = runtime_by_id("openai").call(chat)
    assert (call.path, call.dialect) == ("/v1/chat/completions", "openai_chat")
    assert call.body == {
        "model": "heron",
        "messages": [{"role": "user", "content": "Count."}],
        "max_tokens": 6,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_stream_options_are_left_out_of_a_whole_answer():
    # Several runtimes refuse them there.
    assert "stream_options" not in body_of("openai", stream=False)


def test_a_model_without_a_name_is_not_sent_as_null():
    for runtime in all_runtimes():
        body = runtime.call(Generation(model=None, prompt="Hi", output_tokens=1)).body
        assert "model" not in body


def test_fields_of_the_user_win():
    for runtime in all_runtimes():
        made = Generation(
            model="m", prompt="Hi", output_tokens=1, extra={"temperature": 0.7, "seed": 1}
        )
        body = runtime.call(made).body
        assert (body["temperature"], body["seed"]) == (0.7, 1)


def test_every_call_is_json_from_the_server_root_in_a_known_dialect(chat):
    for runtime in all_runtimes():
        call = runtime.call(chat)
        assert call.path.startswith("/")
        assert call.dialect in WIRE_DIALECTS
        assert json.loads(json.dumps(dict(call.body)))["stream"] is True


def test_llama_server_keeps_the_slot_of_the_user_and_reports_progress():
    body = body_of("llama-server")
    assert body["return_progress"] is True
    assert body["ignore_eos"] is True
    assert not {"cache_prompt", "id_slot", "timings_per_token"} & set(body)
    assert "ignore_eos" not in body_of("llama-server", exact_length=False)
    assert "return_progress" not in body_of("llama-server", stream=False)


def test_ollama_sends_nothing_that_would_reload_the_model(chat):
    body = body_of("ollama")
    assert body["options"] == {"num_predict": 6, "temperature": 0}
    assert "keep_alive" not in body
    assert runtime_by_id("ollama").call(chat).path == "/api/chat"


def test_options_of_the_user_join_those_of_the_measurement():
    body = body_of("ollama", extra={"options": {"num_ctx": 8192, "num_predict": 9}, "think": False})
    assert body["options"] == {"num_predict": 9, "temperature": 0, "num_ctx": 8192}
    assert body["think"] is False
    assert body_of("ollama", extra={"options": "odd"})["options"]["num_predict"] == 6


def test_vllm_takes_salt_and_exact_length():
    body = body_of("vllm", salt="run-7")
    assert (body["cache_salt"], body["min_tokens"], body["ignore_eos"]) == ("run-7", 6, True)
    plain = body_of("vllm", exact_length=False)
    assert not {"cache_salt", "min_tokens", "ignore_eos"} & set(plain)


@pytest.mark.parametrize("name", ["openai", "llama-server", "mlx_lm", "transformers", "koboldcpp"])
def test_a_salt_goes_only_where_it_means_something(name):
    assert body_of(name, salt="run-7") == body_of(name)


def test_lm_studio_leaves_no_chat_behind(chat):
    call = runtime_by_id("lmstudio").call(chat)
    assert (call.path, call.dialect) == ("/api/v1/chat", "lmstudio_native")
    assert (call.body["input"], call.body["max_output_tokens"]) == ("Count.", 6)
    assert call.body["store"] is False
    assert "messages" not in call.body
    assert runtime_by_id("lmstudio-0.3").call(chat).path == "/v1/chat/completions"
