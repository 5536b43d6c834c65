"""Ollama, through its native API, whose last object holds the times.

* `prompt_eval_count` is the whole prompt, `prompt_eval_duration` only the uncached part: their
  quotient is an inflated speed after a hit. Versions of autumn 2026 add
  `prompt_eval_cached_count` (pull request 17943), where 0 is a real 0; before, nothing tells.
* Versions of 2024 leave `prompt_eval_count` out after a hit: unknown, not 0.
* `eval_duration` runs from the first token on in every version (the Go runners stamp
  `startGenerationTime` at the first token, the later child llama-server does the same), while
  `eval_count` includes that token: one step less than tokens.
* A differing `num_ctx` (or any runner option) reloads the model and loses its caches, and
  `keep_alive` belongs to the user: neither is sent.
* Time in the queue is not shown; `total_duration` contains it.

Source: ollama/ollama api/types.go, llm/llama_server.go, runner/*/runner.go, docs/api.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from twospeed.records.request_record import ServerTimes, TokenCounts
from twospeed.records.run import RuntimeFacts
from twospeed.runtimes.fields import (
    at,
    context_tokens,
    counted_tokens,
    duration_s,
    objects,
    text,
    whole,
)
from twospeed.runtimes.phases import after_first, phase_times, uncached
from twospeed.runtimes.runtime import (
    Answers,
    Ask,
    Call,
    Certainty,
    Generation,
    Runtime,
    Setting,
    good_json,
    messages,
)
from twospeed.runtimes.usage import part_of
from twospeed.wire.reading import StreamReading


class Ollama(Runtime):
    """Ollama by `/api/chat`."""

    id: ClassVar[str] = "ollama"
    name: ClassVar[str] = "Ollama"
    ports: ClassVar[tuple[int, ...]] = (11434,)
    identify: ClassVar[tuple[Ask, ...]] = (
        Ask("/"),
        Ask("/api/version"),
        Ask("/api/ps"),
        Ask("/v1/models"),
    )
    # Its OpenAI-compatible routes print a constant 0 in many versions.
    zero_cached_is_known: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, Setting]] = {
        "n_ctx": Setting(
            env="OLLAMA_CONTEXT_LENGTH={value}", request='"options": {"num_ctx": {value}}'
        ),
        "n_batch": Setting(request='"options": {"num_batch": {value}}'),
        "threads": Setting(request='"options": {"num_thread": {value}}'),
        "gpu_layers": Setting(request='"options": {"num_gpu": {value}}'),
        "flash_attn": Setting(env="OLLAMA_FLASH_ATTENTION=1"),
        "kv_type_k": Setting(env="OLLAMA_KV_CACHE_TYPE={value}"),
        "kv_type_v": Setting(env="OLLAMA_KV_CACHE_TYPE={value}"),
        "parallel_slots": Setting(env="OLLAMA_NUM_PARALLEL={value}"),
        "keep_loaded": Setting(env="OLLAMA_KEEP_ALIVE=-1", request='"keep_alive": -1'),
        "max_output_tokens": Setting(request='"options": {"num_predict": {value}}'),
        "reasoning": Setting(request='"think": false'),
    }

    def recognise(self, answers: Answers) -> Certainty:
        """By two of its own routes together, since others imitate single ones.

        Never the highest certainty: SGLang and KoboldCpp greet like Ollama too, and each of
        them names itself elsewhere.
        """
        root = answers.get("/")
        signs = (
            root is not None and root.status == 200 and b"Ollama is running" in root.body,
            self.version(answers) is not None,
            isinstance(at(good_json(answers, "/api/ps"), "models"), list),
        )
        return 2 if sum(signs) > 1 else 0

    def version(self, answers: Answers) -> str | None:
        """By `/api/version`."""
        return text(good_json(answers, "/api/version"), "version")

    def models(self, answers: Answers) -> list[str]:
        """Loaded ones by `/api/ps`, then the others that are on disk."""
        running = [text(entry, "model") or text(entry, "name") for entry in _running(answers)]
        return list(dict.fromkeys([name for name in running if name] + super().models(answers)))

    def fact_asks(self, model: str | None) -> tuple[Ask, ...]:
        """`/api/ps` again, since a model may have been loaded meanwhile, and the model's card."""
        card = (Ask("/api/show", "POST", {"model": model}),) if model else ()
        return (Ask("/api/ps"), *card)

    def facts(self, answers: Answers, model: str | None) -> RuntimeFacts:
        """Sizes of the loaded model by `/api/ps`, its make by `/api/show`."""
        running = [one for one in _running(answers) if model in (one.get("model"), one.get("name"))]
        loaded = running[0] if running else None
        card = good_json(answers, "/api/show")
        info = at(card, "model_info")
        kind = text(info, "general.architecture") or ""
        return RuntimeFacts(
            n_ctx=context_tokens(loaded, "context_length"),
            n_ctx_train=context_tokens(info, f"{kind}.context_length"),
            layers_total=whole(info, f"{kind}.block_count"),
            size_bytes=whole(loaded, "size"),
            size_vram_bytes=whole(loaded, "size_vram"),
            parameters=whole(info, "general.parameter_count"),
            quantization=text(card, "details", "quantization_level")
            or text(loaded, "details", "quantization_level"),
            reports_cached_tokens=self.reports_cached,
        )

    def call(self, g: Generation) -> Call:
        """`/api/chat`; fields of the user win, `options` field by field."""
        options = {"num_predict": g.output_tokens, "temperature": 0}
        theirs = g.extra.get("options")
        if isinstance(theirs, Mapping):
            options |= theirs
        body: dict[str, Any] = {
            **({} if g.model is None else {"model": g.model}),
            "messages": messages(g),
            "stream": g.stream,
            **g.extra,
            "options": options,
        }
        return Call(path="/api/chat", body=body, dialect="ollama_native")

    def counts(self, reading: StreamReading) -> TokenCounts:
        """By the last object; by usage where an OpenAI-compatible route answered."""
        final = _final(reading)
        if "prompt_eval_count" not in final and "eval_count" not in final:
            return super().counts(reading)
        prompt = counted_tokens(final, "prompt_eval_count")
        return TokenCounts(
            prompt_tokens=prompt,
            cached_prompt_tokens=part_of(counted_tokens(final, "prompt_eval_cached_count"), prompt),
            output_tokens=counted_tokens(final, "eval_count"),
        )

    def server_times(self, reading: StreamReading, counts: TokenCounts) -> ServerTimes | None:
        """By the durations of the last object, in nanoseconds there."""
        final = _final(reading)
        return phase_times(
            "eval_duration",
            load_s=duration_s(final, "load_duration", per_second=1e9),
            prefill_s=duration_s(final, "prompt_eval_duration", per_second=1e9),
            prefill_tokens=uncached(counts),
            decode_s=duration_s(final, "eval_duration", per_second=1e9),
            decode_steps=after_first(counts.output_tokens),
            total_s=duration_s(final, "total_duration", per_second=1e9),
        )


def _running(answers: Answers) -> list[Mapping[str, Any]]:
    return objects(good_json(answers, "/api/ps"), "models")


def _final(reading: StreamReading) -> Mapping[str, Any]:
    """The last object of the stream, wherever the reader keeps its counts."""
    return {**(reading.usage or {}), **(reading.timings or {})}
