"""llama-server of llama.cpp.

It reports more than any other runtime: cached tokens, both phases, slots and progress. Traps:

* `timings` leaves out the queue and is stretched by other slots, hence `activity`.
* A "cold" request still hits the first tokens of the chat template, and a full hit leaves one
  token to evaluate: `cached_prompt_tokens` is 0 or complete only by accident.
* A cold prompt is made by unique text, never by `cache_prompt: false`, which would overwrite
  the slot of the user's conversation.
* Unknown request fields are ignored; while the model loads every route answers 503.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from twospeed.records.request_record import ServerSigns, ServerTimes, TokenCounts
from twospeed.records.run import RuntimeFacts
from twospeed.runtimes.fields import at, context_tokens, objects, text, whole
from twospeed.runtimes.llama_timings import completed_by, llama_signs, llama_times
from twospeed.runtimes.runtime import (
    Answer,
    Answers,
    Ask,
    Certainty,
    Generation,
    Runtime,
    Setting,
    good_json,
    model_entry,
    served_models,
    server_header,
)
from twospeed.wire.reading import StreamReading


class LlamaServer(Runtime):
    """llama-server: `timings` in every response, facts in `/props` and `/v1/models`."""

    id: ClassVar[str] = "llama-server"
    name: ClassVar[str] = "llama-server"
    ports: ClassVar[tuple[int, ...]] = (8080,)
    identify: ClassVar[tuple[Ask, ...]] = (Ask("/props"), Ask("/v1/models"), Ask("/health"))
    reports_cached: ClassVar[bool | None] = True
    settings: ClassVar[Mapping[str, Setting]] = {
        "n_ctx": Setting(flag="--ctx-size {value}", env="LLAMA_ARG_CTX_SIZE={value}"),
        "n_batch": Setting(flag="--batch-size {value}", env="LLAMA_ARG_BATCH={value}"),
        "n_ubatch": Setting(flag="--ubatch-size {value}", env="LLAMA_ARG_UBATCH={value}"),
        "threads": Setting(flag="--threads {value}", env="LLAMA_ARG_THREADS={value}"),
        "gpu_layers": Setting(flag="--n-gpu-layers {value}", env="LLAMA_ARG_N_GPU_LAYERS={value}"),
        "flash_attn": Setting(flag="--flash-attn on", env="LLAMA_ARG_FLASH_ATTN=on"),
        "kv_type_k": Setting(flag="--cache-type-k {value}", env="LLAMA_ARG_CACHE_TYPE_K={value}"),
        "kv_type_v": Setting(flag="--cache-type-v {value}", env="LLAMA_ARG_CACHE_TYPE_V={value}"),
        "cache_prompt": Setting(
            flag="--cache-prompt", env="LLAMA_ARG_CACHE_PROMPT=true", request='"cache_prompt": true'
        ),
        "prefix_cache": Setting(
            flag="--cache-prompt", env="LLAMA_ARG_CACHE_PROMPT=true", request='"cache_prompt": true'
        ),
        "parallel_slots": Setting(flag="--parallel {value}", env="LLAMA_ARG_N_PARALLEL={value}"),
        "cache_ram_mib": Setting(flag="--cache-ram {value}", env="LLAMA_ARG_CACHE_RAM={value}"),
        "max_output_tokens": Setting(
            flag="--n-predict {value}",
            env="LLAMA_ARG_N_PREDICT={value}",
            request='"max_tokens": {value}',
        ),
        "reasoning": Setting(
            flag="--reasoning-budget 0",
            env="LLAMA_ARG_THINK_BUDGET=0",
            request='"chat_template_kwargs": {"enable_thinking": false}',
        ),
    }

    def recognise(self, answers: Answers) -> Certainty:
        """By its `Server` header; behind a proxy that drops it, by what only it answers."""
        if server_header(answers).startswith("llama.cpp"):
            return 3
        owned = any(text(entry, "owned_by") == "llamacpp" for entry in served_models(answers))
        props = good_json(answers, "/props")
        described = whole(props, "total_slots") is not None and text(props, "build_info")
        return 2 if owned or described or _is_loading(answers) else 0

    def version(self, answers: Answers) -> str | None:
        """Build number and commit, from `/props`."""
        return text(good_json(answers, "/props"), "build_info")

    def facts(self, answers: Answers, model: str | None) -> RuntimeFacts:
        """Context and slots by `/props`, the model's size by `/v1/models`."""
        props = good_json(answers, "/props")
        meta = at(model_entry(answers, model), "meta")
        return RuntimeFacts(
            n_ctx=context_tokens(props, "default_generation_settings", "n_ctx"),
            n_ctx_train=context_tokens(meta, "n_ctx_train"),
            slots=whole(props, "total_slots"),
            size_bytes=whole(meta, "size"),
            parameters=whole(meta, "n_params"),
            quantization=text(props, "model_ftype") or text(meta, "ftype"),
            model_path=text(props, "model_path"),
            kv_block_tokens=1,
            reports_cached_tokens=True,
        )

    def length_fields(self, g: Generation) -> Mapping[str, Any]:  # noqa: ARG002
        """It generates past the end of text when asked to."""
        return {"ignore_eos": True}

    def request_fields(self, g: Generation) -> Mapping[str, Any]:
        """Progress tells the cached part before the first token; `timings` come unasked."""
        return {"return_progress": True} if g.stream else {}

    def counts(self, reading: StreamReading) -> TokenCounts:
        """By usage, and by `timings` where the response has no usage."""
        return completed_by(super().counts(reading), reading.timings)

    def server_times(self, reading: StreamReading, counts: TokenCounts) -> ServerTimes | None:  # noqa: ARG002
        """By `timings`."""
        return llama_times(reading.timings)

    def signs(self, reading: StreamReading) -> ServerSigns | None:
        """Steps of prefill by its progress, drafted tokens by `timings`."""
        return llama_signs(reading)

    def tokenize(self, model: str | None, prompt: str) -> Ask | None:  # noqa: ARG002 - one model
        """Without special tokens, so that texts add up."""
        return Ask("/tokenize", "POST", {"content": prompt})

    def token_count(self, answer: Answer) -> int | None:
        """Length of the token list."""
        tokens = at(answer.json, "tokens")
        return len(tokens) if isinstance(tokens, list) else None

    def activity_ask(self) -> Ask | None:
        """Slots are shown unless switched off by `--no-slots` (then 501)."""
        return Ask("/slots")

    def activity(self, answer: Answer) -> int | None:
        """Slots at work; requests that wait for a slot do not show here."""
        if answer.status != 200 or not isinstance(answer.json, list):
            return None
        return sum(slot.get("is_processing") is True for slot in objects(answer.json))


def _is_loading(answers: Answers) -> bool:
    return any(
        answer.status == 503 and text(answer.json, "error", "message") == "Loading model"
        for answer in answers.values()
    )
