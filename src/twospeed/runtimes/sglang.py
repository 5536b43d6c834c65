"""SGLang.

It imitates several Ollama routes (`/api/tags`, `/api/chat`, `/api/version`) and is told by its
own: `/model_info` and the owner of its models. Cached tokens come only with
`--enable-cache-report`. `/flush_cache` would make a cold cache and is never called: it is other
people's cache too. Reuse is off with `--disable-radix-cache`; no flag turns it on.

Source: sglang 0.5.23 srt/entrypoints/http_server.py, srt/server_args.py (read, not run).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from twospeed.records.run import RuntimeFacts, Setting
from twospeed.runtimes import prometheus
from twospeed.runtimes.fields import at, context_tokens, counted_tokens, flag, text, whole
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


class Sglang(Runtime):
    """SGLang's OpenAI-compatible server."""

    id: ClassVar[str] = "sglang"
    name: ClassVar[str] = "SGLang"
    ports: ClassVar[tuple[int, ...]] = (30000,)
    identify: ClassVar[tuple[Ask, ...]] = (Ask("/model_info"), Ask("/v1/models"))
    stream_options: ClassVar[Mapping[str, Any]] = COUNT_IN_EVERY_EVENT
    settings: ClassVar[Mapping[str, Setting]] = {
        "n_ctx": Setting(flag="--context-length {value}"),
        "n_batch": Setting(flag="--chunked-prefill-size {value}"),
        "kv_type_k": Setting(flag="--kv-cache-dtype {value}"),
        "kv_type_v": Setting(flag="--kv-cache-dtype {value}"),
        "parallel_slots": Setting(flag="--max-running-requests {value}"),
        "max_output_tokens": Setting(request='"max_tokens": {value}'),
        "reasoning": Setting(request='"chat_template_kwargs": {"enable_thinking": false}'),
    }

    def recognise(self, answers: Answers) -> Certainty:
        """By `/model_info`, or by the owner of its models where that route is older or closed."""
        info = good_json(answers, "/model_info")
        if text(info, "model_path") and flag(info, "is_generation") is not None:
            return 3
        owned = any(text(entry, "owned_by") == "sglang" for entry in served_models(answers))
        return 3 if owned else 0

    def version(self, answers: Answers) -> str | None:
        """By the server information, which is among the facts."""
        return text(_server_info(answers), "version")

    def fact_asks(self, model: str | None) -> tuple[Ask, ...]:  # noqa: ARG002
        """New and old name of the server information."""
        return (Ask("/server_info"), Ask("/get_server_info"))

    def facts(self, answers: Answers, model: str | None) -> RuntimeFacts:
        """By the server information, which repeats the launch arguments."""
        info = _server_info(answers)
        arguments = at(info, "server_args") or info
        entry = model_entry(answers, model)
        kv_type = text(arguments, "kv_cache_dtype")
        if kv_type == "auto":  # the type of the weights, which is not shown
            kv_type = None
        radix_off = flag(arguments, "disable_radix_cache")
        return RuntimeFacts(
            n_ctx=context_tokens(entry, "max_model_len")
            or context_tokens(arguments, "context_length"),
            slots=whole(arguments, "max_running_requests"),
            kv_type_k=kv_type,
            kv_type_v=kv_type,
            n_batch=whole(arguments, "chunked_prefill_size"),
            quantization=text(arguments, "quantization"),
            model_path=text(arguments, "model_path"),
            prefix_cache_enabled=None if radix_off is None else not radix_off,
            kv_block_tokens=counted_tokens(arguments, "page_size"),
            reports_cached_tokens=flag(arguments, "enable_cache_report"),
        )

    def length_fields(self, g: Generation) -> Mapping[str, Any]:
        """Both are needed: a stop token ends even an answer that ignores the end of text."""
        return {"ignore_eos": True, "min_tokens": g.output_tokens}

    def activity_ask(self) -> Ask | None:
        """Gauges of the scheduler, shown only with `--enable-metrics`."""
        return Ask("/metrics")

    def activity(self, answer: Answer) -> int | None:
        """Running and queued requests."""
        return prometheus.requests_in_progress(
            answer.body, "sglang:num_running_reqs", "sglang:num_queue_reqs"
        )


def _server_info(answers: Answers) -> object:
    return good_json(answers, "/server_info") or good_json(answers, "/get_server_info")
