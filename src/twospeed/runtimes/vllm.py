"""vLLM.

* `prompt_tokens_details` is null unless `--enable-prompt-tokens-details`: cached tokens unknown.
  Where it is given, 0 is a real 0.
* `metrics` comes with `--enable-per-request-metrics`. `time_to_first_token_ms` runs from being
  scheduled to the first token, without the queue: that is prefill, the span which vLLM itself
  exports as `request_prefill_time_seconds`. `generation_time_ms` runs from the first to the last
  token. `tokens_per_second` includes prefill and is left alone.
* Prefix reuse comes in whole blocks (16 tokens on a GPU, 128 seen on a CPU) and never covers the
  last token.
* A `cache_salt` separates a prompt from all cached ones without evicting any.

Source: vllm/entrypoints/generate/base/serving.py; captures of vLLM 0.32.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from twospeed.records.request_record import ServerTimes, TokenCounts
from twospeed.records.run import RuntimeFacts, Setting
from twospeed.runtimes import prometheus
from twospeed.runtimes.fields import context_tokens, duration_s, number, text, whole
from twospeed.runtimes.phases import after_first, phase_times, uncached
from twospeed.runtimes.runtime import (
    COUNT_IN_EVERY_EVENT,
    Answer,
    Answers,
    Ask,
    Certainty,
    Generation,
    Runtime,
    good_json,
    model_entry,
    served_models,
)
from twospeed.wire.reading import StreamReading

_BLOCK = re.compile(r"[0-9]{1,9}")


class Vllm(Runtime):
    """vLLM's OpenAI-compatible server."""

    id: ClassVar[str] = "vllm"
    name: ClassVar[str] = "vLLM"
    ports: ClassVar[tuple[int, ...]] = (8000,)
    identify: ClassVar[tuple[Ask, ...]] = (Ask("/version"), Ask("/v1/models"))
    stream_options: ClassVar[Mapping[str, Any]] = COUNT_IN_EVERY_EVENT
    settings: ClassVar[Mapping[str, Setting]] = {
        "n_ctx": Setting(flag="--max-model-len {value}"),
        "n_batch": Setting(flag="--max-num-batched-tokens {value}"),
        "kv_type_k": Setting(flag="--kv-cache-dtype {value}"),
        "kv_type_v": Setting(flag="--kv-cache-dtype {value}"),
        "cache_prompt": Setting(flag="--enable-prefix-caching"),
        "prefix_cache": Setting(flag="--enable-prefix-caching"),
        "parallel_slots": Setting(flag="--max-num-seqs {value}"),
        "max_output_tokens": Setting(request='"max_tokens": {value}'),
        "reasoning": Setting(request='"chat_template_kwargs": {"enable_thinking": false}'),
    }

    def recognise(self, answers: Answers) -> Certainty:
        """By the owner of its models, which no other runtime claims."""
        if not any(text(entry, "owned_by") == "vllm" for entry in served_models(answers)):
            return 0
        return 3 if self.version(answers) else 2

    def version(self, answers: Answers) -> str | None:
        """By `/version`."""
        return text(good_json(answers, "/version"), "version")

    def fact_asks(self, model: str | None) -> tuple[Ask, ...]:  # noqa: ARG002
        """Its metrics hold the configuration of the cache."""
        return (Ask("/metrics"),)

    def facts(self, answers: Answers, model: str | None) -> RuntimeFacts:
        """Context by `/v1/models`, prefix cache by the labels of `vllm:cache_config_info`."""
        entry = model_entry(answers, model)
        metrics = answers.get("/metrics")
        cache = prometheus.labels(metrics.body, "vllm:cache_config_info") if metrics else {}
        kv_type = cache.get("cache_dtype")
        if kv_type == "auto":  # the type of the weights, which is not shown
            kv_type = None
        block = cache.get("block_size", "")
        return RuntimeFacts(
            n_ctx=context_tokens(entry, "max_model_len"),
            kv_type_k=kv_type,
            kv_type_v=kv_type,
            model_path=text(entry, "root"),
            prefix_cache_enabled={"True": True, "False": False}.get(
                cache.get("enable_prefix_caching", "")
            ),
            kv_block_tokens=int(block) if _BLOCK.fullmatch(block) else None,
            reports_cached_tokens=self.reports_cached,
        )

    def length_fields(self, g: Generation) -> Mapping[str, Any]:
        """Both are needed: a stop token ends even an answer that ignores the end of text."""
        return {"ignore_eos": True, "min_tokens": g.output_tokens}

    def request_fields(self, g: Generation) -> Mapping[str, Any]:
        """The salt, which makes a cold prompt certain."""
        return {"cache_salt": g.salt} if g.salt else {}

    def server_times(self, reading: StreamReading, counts: TokenCounts) -> ServerTimes | None:
        """By the `metrics` of the usage chunk."""
        metrics = reading.timings
        return phase_times(
            "metrics",
            queue_s=_queue_s(metrics),
            prefill_s=duration_s(metrics, "time_to_first_token_ms", per_second=1e3),
            prefill_tokens=uncached(counts),
            decode_s=duration_s(metrics, "generation_time_ms", per_second=1e3),
            decode_steps=after_first(counts.output_tokens),
        )

    def tokenize(self, model: str | None, prompt: str) -> Ask | None:
        """Without special tokens, so that texts add up."""
        body = {"prompt": prompt, "add_special_tokens": False}
        return Ask("/tokenize", "POST", body if model is None else {"model": model, **body})

    def token_count(self, answer: Answer) -> int | None:
        """By `count`."""
        return whole(answer.json, "count")

    def activity_ask(self) -> Ask | None:
        """Gauges of the scheduler."""
        return Ask("/metrics")

    def activity(self, answer: Answer) -> int | None:
        """Running and waiting requests of all engines."""
        return prometheus.requests_in_progress(
            answer.body, "vllm:num_requests_running", "vllm:num_requests_waiting"
        )


def _queue_s(metrics: Mapping[str, Any] | None) -> float | None:
    """Seconds before prefill; here 0 means that the request did not wait."""
    waited_s = duration_s(metrics, "queue_time_ms", per_second=1e3)
    return 0.0 if waited_s is None and number(metrics, "queue_time_ms") == 0 else waited_s
