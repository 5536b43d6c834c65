from __future__ import annotations

from twospeed.runtimes.registry import runtime_by_id


def facts_of(name, endpoints, model):
    return runtime_by_id(name).facts(endpoints[name], model)


def fact_paths(name, model):
    return [ask.path for ask in runtime_by_id(name).fact_asks(model)]


def test_llama_server_tells_context_size_and_slots(endpoints):
    facts = facts_of("llama-server", endpoints, "models/SmolLM2-135M-Instruct.Q4_1.gguf")
    assert (facts.n_ctx, facts.n_ctx_train, facts.slots) == (4096, 8192, 1)
    assert (facts.size_bytes, facts.parameters) == (96576768, 134515008)
    assert facts.quantization == "Q4_1"
    assert facts.model_path == "models/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert facts.reports_cached_tokens is True
    assert facts.layers_offloaded is None


def test_llama_server_ignores_a_wrong_model_name_and_so_do_its_facts(endpoints):
    assert facts_of("llama-server", endpoints, "gpt-4o").parameters == 134515008


def test_llama_server_tells_its_build(endpoints):
    assert runtime_by_id("llama-server").version(endpoints["llama-server"]) == "b0-unknown"


def test_ollama_tells_what_part_of_the_model_is_on_the_gpu(endpoints):
    facts = facts_of("ollama", endpoints, "heron:14b")
    assert (facts.size_bytes, facts.size_vram_bytes) == (12_884_901_888, 8_589_934_592)
    assert (facts.n_ctx, facts.n_ctx_train, facts.layers_total) == (16384, 40960, 40)
    assert (facts.parameters, facts.quantization) == (14_768_307_200, "Q4_K_M")
    assert facts.layers_offloaded is None
    assert facts.reports_cached_tokens is None


def test_ollama_knows_no_sizes_of_a_model_that_is_not_loaded(endpoints):
    facts = facts_of("ollama", endpoints, "osprey:8b")
    assert (facts.size_bytes, facts.n_ctx) == (None, None)


def test_ollama_names_loaded_models_first_and_each_once(endpoints):
    assert runtime_by_id("ollama").models(endpoints["ollama"]) == ["heron:14b", "osprey:8b"]


def test_ollama_asks_for_the_card_of_a_named_model_only(endpoints):
    assert fact_paths("ollama", "heron:14b") == ["/api/ps", "/api/show"]
    assert fact_paths("ollama", None) == ["/api/ps"]
    assert runtime_by_id("ollama").fact_asks("heron:14b")[1].body == {"model": "heron:14b"}
    assert runtime_by_id("ollama").version(endpoints["ollama"]) == "0.33.3"


def test_vllm_tells_its_prefix_cache_in_metric_labels(endpoints):
    facts = facts_of("vllm", endpoints, "tiny")
    assert (facts.n_ctx, facts.kv_block_tokens, facts.prefix_cache_enabled) == (2048, 128, True)
    assert facts.kv_type_k is None
    assert facts.model_path == "./tiny"
    assert facts.reports_cached_tokens is None
    assert fact_paths("vllm", "tiny") == ["/metrics"]
    assert runtime_by_id("vllm").version(endpoints["vllm"]) == "0.32.0"


def test_vllm_without_metrics_keeps_the_rest_unknown(endpoints):
    facts = runtime_by_id("vllm").facts({"/v1/models": endpoints["vllm"]["/v1/models"]}, "tiny")
    assert facts.n_ctx == 2048
    assert (facts.kv_block_tokens, facts.prefix_cache_enabled) == (None, None)


def test_lm_studio_tells_the_configuration_of_the_loaded_instance(endpoints):
    facts = facts_of("lmstudio", endpoints, "gemma-3-270m-it-qat:2")
    assert (facts.n_ctx, facts.n_ctx_train, facts.n_batch) == (4096, 32768, 512)
    assert (facts.flash_attn, facts.quantization, facts.size_bytes) == (True, "Q4_0", 241410208)
    assert facts.reports_cached_tokens is False
    assert facts_of("lmstudio", endpoints, "gemma-3-270m-it-qat").n_ctx == 4096
    assert facts_of("lmstudio", endpoints, "osprey-8b").n_ctx is None


def test_lm_studio_offers_loaded_models_first_and_no_embeddings(endpoints):
    models = runtime_by_id("lmstudio").models(endpoints["lmstudio"])
    assert models == ["gemma-3-270m-it-qat:2", "osprey-8b"]
    old = runtime_by_id("lmstudio-0.3").models(endpoints["lmstudio-0.3"])
    assert old == ["meta-llama-3.1-8b-instruct", "qwen2-vl-7b-instruct"]


def test_older_lm_studio_tells_the_loaded_context(endpoints):
    facts = facts_of("lmstudio-0.3", endpoints, "meta-llama-3.1-8b-instruct")
    assert (facts.n_ctx, facts.n_ctx_train, facts.quantization) == (8192, 131072, "Q4_K_M")
    assert facts_of("lmstudio-0.3", endpoints, "qwen2-vl-7b-instruct").n_ctx is None


def test_sglang_repeats_its_launch_arguments(endpoints):
    facts = facts_of("sglang", endpoints, "org/heron")
    assert (facts.n_ctx, facts.n_batch, facts.slots) == (32768, 8192, 48)
    assert (facts.kv_type_k, facts.prefix_cache_enabled) == ("fp8_e5m2", True)
    assert facts.reports_cached_tokens is False
    assert runtime_by_id("sglang").version(endpoints["sglang"]) == "0.5.23"


def test_sglang_under_its_older_route_and_without_reuse(tell):
    info = {"server_args": {"disable_radix_cache": True, "kv_cache_dtype": "auto"}}
    facts = runtime_by_id("sglang").facts({"/get_server_info": tell(info)}, None)
    assert (facts.prefix_cache_enabled, facts.kv_type_k) == (False, None)


def test_koboldcpp_tells_its_context(endpoints):
    assert facts_of("koboldcpp", endpoints, "koboldcpp/heron").n_ctx == 16384
    assert fact_paths("koboldcpp", None) == ["/api/extra/true_max_context_length"]
    assert runtime_by_id("koboldcpp").version(endpoints["koboldcpp"]) == "1.122.1"


def test_tabbyapi_describes_the_loaded_model_and_names_it_first(endpoints):
    facts = facts_of("tabbyapi", endpoints, "heron-exl3")
    assert (facts.n_ctx, facts.n_batch, facts.kv_type_k) == (32768, 2048, "q8")
    assert runtime_by_id("tabbyapi").models(endpoints["tabbyapi"]) == ["heron-exl3", "draft"]


def test_transformers_names_loaded_models_first(tell):
    entries = [
        {"id": "org/other", "owned_by": "org", "status": {"value": "unloaded"}},
        {"id": "./tiny", "owned_by": "local", "status": {"value": "loaded"}},
    ]
    models = runtime_by_id("transformers").models({"/v1/models": tell({"data": entries})})
    assert models == ["./tiny", "org/other"]


def test_transformers_and_mlx_show_nothing_but_what_their_code_says(endpoints):
    transformers = facts_of("transformers", endpoints, "./tiny")
    assert (transformers.n_ctx, transformers.prefix_cache_enabled) == (None, None)
    assert transformers.reports_cached_tokens is False
    mlx = facts_of("mlx_lm", endpoints, None)
    assert (mlx.n_ctx, mlx.kv_block_tokens, mlx.reports_cached_tokens) == (None, 1, True)


def test_mlx_with_an_empty_model_list_offers_none(endpoints):
    assert endpoints["mlx_lm"]["/v1/models"].json is None
    assert runtime_by_id("mlx_lm").models(endpoints["mlx_lm"]) == []


def test_any_endpoint_lists_its_models_in_their_order(endpoints):
    base = runtime_by_id("openai")
    assert base.models(endpoints["openai"]) == ["heron"]
    assert base.facts(endpoints["openai"], "heron").reports_cached_tokens is None
