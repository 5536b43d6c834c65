from __future__ import annotations

import pytest

from twospeed.runtimes.registry import (
    all_runtimes,
    identify_asks,
    known_ports,
    recognise,
    runtime_by_id,
)

IDS = [
    "koboldcpp",
    "llama-server",
    "lmstudio",
    "lmstudio-0.3",
    "mistralrs",
    "mlx_lm",
    "ollama",
    "sglang",
    "tabbyapi",
    "transformers",
    "vllm",
    "openai",
]
SHARED_NAMES = {
    "n_ctx",
    "n_batch",
    "n_ubatch",
    "threads",
    "gpu_layers",
    "kv_offload",
    "swa_full",
    "flash_attn",
    "kv_type_k",
    "kv_type_v",
    "cache_prompt",
    "parallel_slots",
    "cache_ram_mib",
    "keep_loaded",
    "prefix_cache",
    "max_output_tokens",
    "reasoning",
}


def identify_paths() -> list[str]:
    return [ask.path for ask in identify_asks()]


def test_every_runtime_is_found_once_and_the_base_comes_last():
    assert [runtime.id for runtime in all_runtimes()] == IDS


def test_ids_lead_back_to_runtimes():
    assert [runtime_by_id(name).id for name in IDS] == IDS
    assert runtime_by_id("toaster") is None


def test_identification_is_cheap_and_harmless():
    asks = identify_asks()
    assert len(asks) == len(set(asks)) <= 12
    assert {ask.method for ask in asks} == {"GET"}
    assert all(ask.path.startswith("/") and ask.body is None for ask in asks)


def test_the_usual_ports_are_known():
    assert {11434, 1234, 8080, 8000, 30000, 5001, 5000} <= set(known_ports())


@pytest.mark.parametrize("name", IDS)
def test_each_endpoint_is_recognised_as_what_it_is(name, endpoints):
    assert recognise(endpoints[name].seen_by(identify_paths())).id == name


@pytest.mark.parametrize("name", IDS)
def test_no_other_runtime_is_as_certain(name, endpoints):
    answers = endpoints[name].seen_by(identify_paths())
    mine = runtime_by_id(name).recognise(answers)
    rivals = [r.recognise(answers) for r in all_runtimes() if r.id not in (name, "openai")]
    assert mine > max(rivals)


@pytest.mark.parametrize("name", IDS)
def test_paths_without_any_answer_change_nothing(name, endpoints):
    answers = {p: a for p, a in endpoints[name].items() if p in identify_paths()}
    assert recognise(answers).id == name


def test_nothing_that_answers_is_not_claimed(tell):
    silent = dict.fromkeys(identify_paths(), tell("<html>router login</html>"))
    assert [runtime.recognise(silent) for runtime in all_runtimes()] == [0] * len(IDS)
    assert recognise({}).id == "openai"


@pytest.mark.parametrize("path", ["/", "/api/version", "/api/ps", "/api/tags"])
def test_one_route_of_ollama_does_not_make_an_ollama(path, endpoints):
    answers = {path: endpoints["ollama"][path], "/v1/models": endpoints["openai"]["/v1/models"]}
    assert recognise(answers).id == "openai"


def test_sglang_with_every_route_of_ollama_behind_a_proxy_is_still_sglang(endpoints, tell):
    answers = {
        **endpoints["sglang"],
        **{p: endpoints["ollama"][p] for p in ("/", "/api/version", "/api/ps")},
        "/model_info": tell({"model_path": "org/heron", "is_generation": True}),
    }
    assert recognise(answers).id == "sglang"


def test_older_sglang_without_model_info_is_told_by_the_owner_of_its_models(endpoints):
    answers = {"/v1/models": endpoints["sglang"]["/v1/models"]}
    assert recognise(answers).id == "sglang"


def test_llama_server_is_known_behind_a_proxy_that_drops_its_header(endpoints, tell):
    for path in ("/props", "/v1/models"):
        assert recognise({path: tell(endpoints["llama-server"][path].json)}).id == "llama-server"


def test_llama_server_is_known_while_it_loads(tell):
    error = {"message": "Loading model", "type": "unavailable_error", "code": 503}
    loading = dict.fromkeys(identify_paths(), tell({"error": error}, 503))
    assert recognise(loading).id == "llama-server"


def test_a_router_of_llama_server_is_no_transformers(tell):
    entry = {"id": "heron", "owned_by": "llamacpp", "status": {"value": "loaded"}}
    models = tell({"object": "list", "data": [entry]}, **{"x-request-id": "1"})
    assert recognise({"/v1/models": models}).id == "llama-server"


def test_another_server_on_the_http_library_of_python_is_no_mlx(endpoints):
    answers = {**endpoints["mlx_lm"], "/props": endpoints["llama-server"]["/health"]}
    assert recognise(answers).id != "mlx_lm"


@pytest.mark.parametrize("name", IDS)
def test_settings_use_the_shared_names_and_spell_something(name):
    settings = runtime_by_id(name).settings
    assert set(settings) <= SHARED_NAMES
    assert "max_output_tokens" in settings
    for setting in settings.values():
        spelled = [s for s in (setting.flag, setting.env, setting.request) if s is not None]
        assert spelled
        assert all(spelling.strip() == spelling != "" for spelling in spelled)


@pytest.mark.parametrize("name", IDS)
def test_a_size_is_a_placeholder_in_every_spelling(name):
    settings = runtime_by_id(name).settings
    for size in ("n_ctx", "n_batch", "n_ubatch", "parallel_slots", "max_output_tokens"):
        setting = settings.get(size)
        if setting is not None:
            spelled = [s for s in (setting.flag, setting.env, setting.request) if s]
            assert all("{value}" in s for s in spelled)
