"""Every setting of the embedded engine, one row each, under llama-server's own long flag names.

Checked against xllamacpp 2026.10.11549, by what /props, /completion and its log then say.
"""

from __future__ import annotations

from dataclasses import dataclass

from twospeed.sources.engine.setting_values import (
    Choice,
    Reader,
    existing_file,
    members,
    number,
    shares,
    switch,
    whole,
    words,
)

KV_TYPE = Choice(
    "ggml_type",
    members("GGML_TYPE_", ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")),
)
FLASH = Choice(
    "llama_flash_attn_type",
    {
        "on": "LLAMA_FLASH_ATTN_TYPE_ENABLED",
        "off": "LLAMA_FLASH_ATTN_TYPE_DISABLED",
        "auto": "LLAMA_FLASH_ATTN_TYPE_AUTO",
    },
)
LOAD_MODE = Choice(
    "llama_load_mode",
    {
        **members("LLAMA_LOAD_MODE_", ("auto", "none", "mmap", "mlock", "direct-io")),
        "mmap+mlock": "LLAMA_LOAD_MODE_MMAP_MLOCK",
    },
)
SPLIT_MODE = Choice(
    "llama_split_mode", members("LLAMA_SPLIT_MODE_", ("none", "layer", "row", "tensor"))
)
NUMA = Choice(
    "ggml_numa_strategy",
    members("GGML_NUMA_STRATEGY_", ("disabled", "distribute", "isolate", "numactl", "mirror")),
)
DRAFT_TYPE = Choice(
    "common_speculative_type",
    members(
        "COMMON_SPECULATIVE_TYPE_",
        ("none", "draft-simple", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod"),
    ),
    listed=True,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One flag of llama-server and where xllamacpp keeps it."""

    flag: str
    read: Reader
    attribute: str
    """Dotted path below CommonParams."""
    inverted: bool = False
    """True when the attribute says no- where the flag says yes."""
    wrapped: bool = False
    """True when the attribute is a list of which the flag gives the only entry."""
    padded_to: int = 0
    """Length to which a list is filled up with zeros, as xllamacpp demands."""


_THREADS = whole(1, 512)
_GPU_LAYERS = whole(0, 10_000, auto=-1, all=-2)

SETTINGS = {
    setting.flag: setting
    for setting in (
        Setting("model", existing_file, "model.path"),
        Setting("alias", words, "model_alias", wrapped=True),
        Setting("threads", _THREADS, "cpuparams.n_threads"),
        Setting("threads-batch", _THREADS, "cpuparams_batch.n_threads"),
        Setting("threads-http", whole(1, 512), "n_threads_http"),
        Setting("poll", whole(0, 100), "cpuparams.poll"),
        Setting("ctx-size", whole(0, 1 << 26), "n_ctx"),
        Setting("batch-size", whole(1, 1 << 20), "n_batch"),
        Setting("ubatch-size", whole(1, 1 << 20), "n_ubatch"),
        Setting("keep", whole(-1), "n_keep"),
        Setting("predict", whole(-1), "n_predict"),
        Setting("flash-attn", FLASH, "flash_attn_type"),
        Setting("cache-type-k", KV_TYPE, "cache_type_k"),
        Setting("cache-type-v", KV_TYPE, "cache_type_v"),
        Setting("parallel", whole(1, 256), "n_parallel"),
        Setting("cont-batching", switch, "cont_batching"),
        Setting("kv-unified", switch, "kv_unified"),
        Setting("cache-prompt", switch, "cache_prompt"),
        Setting("cache-ram", whole(-1, 1 << 20), "cache_ram_mib"),
        Setting("cache-reuse", whole(0), "n_cache_reuse"),
        Setting("cache-idle-slots", switch, "cache_idle_slots"),
        Setting("slot-prompt-similarity", number(0.0, 1.0), "slot_prompt_similarity"),
        Setting("ctx-checkpoints", whole(0, 1 << 12), "n_ctx_checkpoints"),
        Setting("checkpoint-min-step", whole(0), "checkpoint_min_step"),
        Setting("swa-full", switch, "swa_full"),
        Setting("context-shift", switch, "ctx_shift"),
        Setting("load-mode", LOAD_MODE, "load_mode"),
        Setting("gpu-layers", _GPU_LAYERS, "n_gpu_layers"),
        Setting("split-mode", SPLIT_MODE, "split_mode"),
        Setting("tensor-split", shares, "tensor_split", padded_to=128),
        Setting("main-gpu", whole(0, 127), "main_gpu"),
        Setting("kv-offload", switch, "no_kv_offload", inverted=True),
        Setting("op-offload", switch, "no_op_offload", inverted=True),
        Setting("repack", switch, "no_extra_bufts", inverted=True),
        Setting("override-tensor", words, "tensor_buft_overrides"),
        Setting("fit", switch, "fit_params"),
        Setting("numa", NUMA, "numa"),
        Setting("model-draft", existing_file, "speculative.draft.mparams.path"),
        Setting("spec-type", DRAFT_TYPE, "speculative.types"),
        Setting("draft-max", whole(0, 1 << 10), "speculative.draft.n_max"),
        Setting("draft-min", whole(0, 1 << 10), "speculative.draft.n_min"),
        Setting("draft-p-min", number(0.0, 1.0), "speculative.draft.p_min"),
        Setting("threads-draft", _THREADS, "speculative.draft.cpuparams.n_threads"),
        Setting("threads-batch-draft", _THREADS, "speculative.draft.cpuparams_batch.n_threads"),
        Setting("gpu-layers-draft", _GPU_LAYERS, "speculative.draft.n_gpu_layers"),
        Setting("seed", whole(0, 2**32 - 1, random=2**32 - 1), "sampling.seed"),
        Setting("temp", number(0.0), "sampling.temp"),
        Setting("top-k", whole(0), "sampling.top_k"),
        Setting("top-p", number(0.0, 1.0), "sampling.top_p"),
        Setting("min-p", number(0.0, 1.0), "sampling.min_p"),
        Setting("repeat-penalty", number(0.0), "sampling.penalty_repeat"),
        Setting("repeat-last-n", whole(-1), "sampling.penalty_last_n"),
        Setting("samplers", words, "sampling.samplers"),
        Setting("chat-template", words, "chat_template"),
        Setting("jinja", switch, "use_jinja"),
        Setting("warmup", switch, "warmup"),
        Setting("metrics", switch, "endpoint_metrics"),
        Setting("slots", switch, "endpoint_slots"),
        Setting("props", switch, "endpoint_props"),
        Setting("sse-ping-interval", whole(-1), "sse_ping_interval"),
        Setting("slot-save-path", words, "slot_save_path"),
        Setting("port", whole(0, 65_535), "port"),
        Setting("verbosity", whole(0, 5), "verbosity"),
    )
}

ALIASES = {
    "t": "threads",
    "tb": "threads-batch",
    "c": "ctx-size",
    "b": "batch-size",
    "ub": "ubatch-size",
    "fa": "flash-attn",
    "ctk": "cache-type-k",
    "ctv": "cache-type-v",
    "np": "parallel",
    "ngl": "gpu-layers",
    "n-gpu-layers": "gpu-layers",
    "m": "model",
    "md": "model-draft",
    "spec-draft-model": "model-draft",
    "spec-draft-n-max": "draft-max",
    "spec-draft-n-min": "draft-min",
    "spec-draft-p-min": "draft-p-min",
    "draft": "draft-max",
    "td": "threads-draft",
    "n-predict": "predict",
    "temperature": "temp",
    "ot": "override-tensor",
    "sps": "slot-prompt-similarity",
    "cram": "cache-ram",
    "log-verbosity": "verbosity",
}
