"""What llama-server tells about itself: `/props`, `/v1/models`, `/metrics` (captures of b11549)."""

from __future__ import annotations

from typing import Any

from twospeed.simulator.bench import Bench
from twospeed.simulator.dialect import Facts
from twospeed.simulator.tokens import ALL_IDS

BUILD = "b11549-simulated"
FINGERPRINT = BUILD
FILE_BYTES = 4_920_734_272
PARAMETERS = 8_030_261_312
TRAINED_CONTEXT = 131_072

SAMPLING: dict[str, Any] = {
    "seed": 4294967295,
    "temperature": 0.800000011920929,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
    "top_k": 40,
    "top_p": 0.949999988079071,
    "min_p": 0.05000000074505806,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.10000000149011612,
    "typical_p": 1.0,
    "repeat_last_n": 64,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": 64,
    "mirostat": 0,
    "mirostat_tau": 5.0,
    "mirostat_eta": 0.10000000149011612,
    "adaptive_target": -1.0,
    "adaptive_decay": 0.8999999761581421,
    "max_tokens": -1,
    "n_predict": -1,
    "n_keep": 0,
    "n_discard": 0,
    "ignore_eos": False,
    "stream": False,
    "n_probs": 0,
    "min_keep": 0,
    "chat_format": "Content-only",
    "reasoning_format": "none",
    "reasoning_in_content": False,
    "generation_prompt": "",
    "samplers": ["penalties", "dry", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
    "speculative.types": "none",
    "timings_per_token": False,
    "post_sampling_probs": False,
    "backend_sampling": False,
    "lora": [],
}


def properties(facts: Facts) -> dict[str, Any]:
    """The answer of `/props`."""
    return {
        "default_generation_settings": {"params": SAMPLING, "n_ctx": facts.n_ctx},
        "total_slots": facts.slots,
        "model_alias": facts.model,
        "model_ftype": "Q4_K - Medium",
        "model_path": facts.model,
        "modalities": {"vision": False, "video": False, "audio": False},
        "media_marker": "<__media__>",
        "endpoint_slots": True,
        "endpoint_props": False,
        "endpoint_metrics": True,
        "ui": False,
        "ui_settings": {},
        "chat_template": "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' "
        "+ message['content'] + '<|im_end|>' }}{% endfor %}",
        "chat_template_caps": {
            "supports_object_arguments": False,
            "supports_parallel_tool_calls": False,
            "supports_preserve_reasoning": False,
            "supports_reasoning_effort": False,
            "supports_string_content": True,
            "supports_system_role": True,
            "supports_tool_calls": False,
            "supports_tools": True,
            "supports_typed_content": True,
        },
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "build_info": BUILD,
        "is_sleeping": False,
        "cors_proxy_enabled": False,
    }


def model_list(facts: Facts, now_s: int) -> dict[str, Any]:
    """The answer of `/v1/models`."""
    like_ollama = {
        "name": facts.model,
        "model": facts.model,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": [""],
        "capabilities": ["completion"],
        "parameters": "",
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "",
            "families": [""],
            "parameter_size": "",
            "quantization_level": "",
        },
    }
    entry = {
        "id": facts.model,
        "aliases": [facts.model],
        "tags": [],
        "object": "model",
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "created": now_s,
        "owned_by": "llamacpp",
        "meta": {
            "vocab_type": 2,
            "n_vocab": ALL_IDS,
            "n_ctx": facts.n_ctx,
            "n_ctx_train": TRAINED_CONTEXT,
            "n_embd": 4096,
            "n_params": PARAMETERS,
            "size": FILE_BYTES,
            "ftype": "Q4_K - Medium",
        },
    }
    return {"models": [like_ollama], "object": "list", "data": [entry]}


def metrics_page(bench: Bench) -> str:
    """The answer of `/metrics`, help lines left out."""
    totals = bench.totals
    fresh = totals.prompt_tokens - totals.cached_tokens
    prefill_s, decode_s = totals.prefill_ns / 1e9, totals.decode_ns / 1e9
    steps = totals.output_tokens - totals.requests
    counters: dict[str, float] = {
        "prompt_tokens_total": fresh,
        "prompt_tokens_cached_total": totals.cached_tokens,
        "prompt_seconds_total": prefill_s,
        "tokens_predicted_total": totals.output_tokens,
        "tokens_predicted_seconds_total": decode_s,
        "n_decode_total": totals.output_tokens,
        "n_tokens_max": totals.longest_tokens,
        "spec_decode_num_draft_tokens_total": totals.drafted_tokens,
        "spec_decode_num_accepted_tokens_total": totals.accepted_tokens,
    }
    gauges: dict[str, float] = {
        "prompt_tokens_seconds": fresh / prefill_s if prefill_s else 0,
        "predicted_tokens_seconds": steps / decode_s if decode_s else 0,
        "requests_processing": len(bench.running),
        "requests_deferred": len(bench.waiting),
    }
    lines = [*_samples(counters, "counter"), *_samples(gauges, "gauge")]
    return "".join(f"{line}\n" for line in lines)


def _samples(values: dict[str, float], kind: str) -> list[str]:
    lines = []
    for name, value in values.items():
        lines += [f"# TYPE llamacpp:{name} {kind}", f"llamacpp:{name} {value:.10g}"]
    return lines
