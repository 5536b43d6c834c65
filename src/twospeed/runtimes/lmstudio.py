"""LM Studio, by its native API where it has one that streams statistics.

* Since 0.4 `/api/v1/chat` streams named events and ends with `chat.end`, which holds token
  counts, the load time and a first-token time. Older versions document `stats` of `/api/v0` only
  without streaming, and were seen to leave them (and usage) out of streams; there
  `/v1/chat/completions` with `include_usage` (since 0.3.18) at least tells the counts.
* `time_to_first_token` contains waiting and is not a prefill time; `generation_time` fits
  neither all tokens nor all but the first in the vendor's own examples. Neither is used:
  arrival times are better.
* No documented field tells cached tokens.
* `store: false`, so that measuring leaves no chats behind.

Source: lmstudio-ai/docs 1_developer/2_rest/{chat,list,load,streaming-events}.md, and v0 pages;
lmstudio-js issue 320, lmstudio-bug-tracker issues 547 and 676.
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
    flag,
    objects,
    text,
    whole,
)
from twospeed.runtimes.phases import phase_times
from twospeed.runtimes.runtime import (
    Answers,
    Ask,
    Call,
    Certainty,
    Generation,
    Runtime,
    Setting,
    good_json,
)
from twospeed.runtimes.usage import part_of
from twospeed.wire.reading import StreamReading

_GPU = Setting(flag="lms load --gpu max")


class LmStudio(Runtime):
    """LM Studio 0.4 and later, by `/api/v1`."""

    id: ClassVar[str] = "lmstudio"
    name: ClassVar[str] = "LM Studio"
    ports: ClassVar[tuple[int, ...]] = (1234,)
    identify: ClassVar[tuple[Ask, ...]] = (Ask("/api/v1/models"),)
    reports_cached: ClassVar[bool | None] = False
    zero_cached_is_known: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, Setting]] = {
        "n_ctx": Setting(
            flag="lms load --context-length {value}", request='"context_length": {value}'
        ),
        "n_batch": Setting(request='"eval_batch_size": {value}'),
        "gpu_layers": _GPU,
        "flash_attn": Setting(request='"flash_attention": true'),
        "max_output_tokens": Setting(request='"max_output_tokens": {value}'),
        "reasoning": Setting(request='"reasoning": "off"'),
    }

    def recognise(self, answers: Answers) -> Certainty:
        """By the form of its model list, which shares only the path with others."""
        return 3 if _listed(answers) else 0

    def models(self, answers: Answers) -> list[str]:
        """Loaded instances, then the other models on disk; no embedding models."""
        models = [one for one in _listed(answers) if one.get("type") != "embedding"]
        loaded = [text(one, "id") for model in models for one in objects(model, "loaded_instances")]
        at_rest = [text(one, "key") for one in models if not objects(one, "loaded_instances")]
        return [name for name in loaded + at_rest if name]

    def facts(self, answers: Answers, model: str | None) -> RuntimeFacts:
        """By the entry of the model and the configuration of its loaded instance."""
        entry, instance = _found(answers, model)
        config = at(instance, "config")
        return RuntimeFacts(
            n_ctx=context_tokens(config, "context_length"),
            n_ctx_train=context_tokens(entry, "max_context_length"),
            flash_attn=flag(config, "flash_attention"),
            n_batch=whole(config, "eval_batch_size"),
            size_bytes=whole(entry, "size_bytes"),
            quantization=text(entry, "quantization", "name"),
            reports_cached_tokens=False,
        )

    def call(self, g: Generation) -> Call:
        """`/api/v1/chat`, whose events tell load and prompt processing apart.

        It takes no answers of earlier turns; a conversation goes the OpenAI-compatible way.
        """
        if g.earlier:
            return super().call(g)
        body: dict[str, Any] = {
            **({} if g.model is None else {"model": g.model}),
            "input": g.prompt,
            "max_output_tokens": g.output_tokens,
            "temperature": 0,
            "stream": g.stream,
            "store": False,
            **g.extra,
        }
        return Call(path="/api/v1/chat", body=body, dialect="lmstudio_native")

    def counts(self, reading: StreamReading) -> TokenCounts:
        """By the statistics of `chat.end`; by usage where another route answered."""
        stats = {**(reading.usage or {}), **(reading.timings or {})}
        if "total_output_tokens" not in stats:
            return super().counts(reading)
        output = counted_tokens(stats, "total_output_tokens")
        return TokenCounts(
            prompt_tokens=counted_tokens(stats, "input_tokens"),
            output_tokens=output,
            reasoning_tokens=part_of(counted_tokens(stats, "reasoning_output_tokens"), output),
        )

    def server_times(self, reading: StreamReading, counts: TokenCounts) -> ServerTimes | None:  # noqa: ARG002
        """The load time alone: no other of its times belongs to one phase."""
        return phase_times("stats", load_s=duration_s(reading.timings, "model_load_time_seconds"))


class LmStudioBefore04(Runtime):
    """LM Studio before 0.4: facts by `/api/v0`, text by the OpenAI-compatible route."""

    id: ClassVar[str] = "lmstudio-0.3"
    name: ClassVar[str] = "LM Studio 0.3"
    ports: ClassVar[tuple[int, ...]] = (1234,)
    identify: ClassVar[tuple[Ask, ...]] = (Ask("/api/v0/models"), Ask("/api/v1/models"))
    reports_cached: ClassVar[bool | None] = False
    zero_cached_is_known: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, Setting]] = {
        "n_ctx": Setting(flag="lms load --context-length {value}"),
        "gpu_layers": _GPU,
        "max_output_tokens": Setting(request='"max_tokens": {value}'),
    }

    def recognise(self, answers: Answers) -> Certainty:
        """By `/api/v0/models`, unless the newer list is there too."""
        known = any(text(one, "state") and text(one, "compatibility_type") for one in _old(answers))
        return 3 if known and not _listed(answers) else 0

    def models(self, answers: Answers) -> list[str]:
        """Loaded ones first; no embedding models."""
        models = [one for one in _old(answers) if one.get("type") != "embeddings"]
        models.sort(key=lambda one: one.get("state") != "loaded")
        names = [text(one, "id") for one in models]
        return [name for name in names if name]

    def facts(self, answers: Answers, model: str | None) -> RuntimeFacts:
        """By the entry of the model."""
        entry = next((one for one in _old(answers) if one.get("id") == model), None)
        return RuntimeFacts(
            n_ctx=context_tokens(entry, "loaded_context_length"),
            n_ctx_train=context_tokens(entry, "max_context_length"),
            quantization=text(entry, "quantization"),
            reports_cached_tokens=False,
        )


def _listed(answers: Answers) -> list[Mapping[str, Any]]:
    models = objects(good_json(answers, "/api/v1/models"), "models")
    return [one for one in models if text(one, "key") and "loaded_instances" in one]


def _old(answers: Answers) -> list[Mapping[str, Any]]:
    return objects(good_json(answers, "/api/v0/models"), "data")


def _found(
    answers: Answers, model: str | None
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """The entry that is called `model`, by key or instance, and its instance."""
    for entry in _listed(answers):
        instances = objects(entry, "loaded_instances")
        for instance in instances:
            if instance.get("id") == model:
                return entry, instance
        if entry.get("key") == model:
            return entry, instances[0] if instances else None
    return None, None
