"""TabbyAPI over exllama.

Usage carries `prompt_time` and `completion_time` in seconds, rounded to hundredths: prefill ends
with the first token and leaves the queue out, completion runs from the first to the last token.
Cached tokens stood only in its log for long; newer versions always print `prompt_tokens_details`
with a default of 0, so a 0 is unknown unless `timings` (as of llama-server) confirm it.

Source: theroyallab/tabbyAPI endpoints/OAI/types/common.py, endpoints/core/types/model.py;
exllamav3 generator/job.py (read, not run).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from twospeed.records.request_record import ServerTimes, TokenCounts
from twospeed.records.run import RuntimeFacts, Setting
from twospeed.runtimes.fields import at, context_tokens, duration_s, text, whole
from twospeed.runtimes.llama_timings import completed_by, llama_times
from twospeed.runtimes.phases import after_first, phase_times, uncached
from twospeed.runtimes.runtime import (
    Answer,
    Answers,
    Ask,
    Certainty,
    Generation,
    Runtime,
    good_json,
    served_models,
)
from twospeed.wire.reading import StreamReading


class TabbyApi(Runtime):
    """TabbyAPI, which signs its models."""

    id: ClassVar[str] = "tabbyapi"
    name: ClassVar[str] = "TabbyAPI"
    ports: ClassVar[tuple[int, ...]] = (5000,)
    identify: ClassVar[tuple[Ask, ...]] = (Ask("/v1/models"),)
    zero_cached_is_known: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, Setting]] = {
        "n_ctx": Setting(request='"max_seq_len": {value}'),
        "n_batch": Setting(request='"chunk_size": {value}'),
        "kv_type_k": Setting(request='"cache_mode": "Q8"'),
        "kv_type_v": Setting(request='"cache_mode": "Q8"'),
        "max_output_tokens": Setting(request='"max_tokens": {value}'),
    }

    def recognise(self, answers: Answers) -> Certainty:
        """By the owner of its models."""
        owners = {text(entry, "owned_by") for entry in served_models(answers)}
        return 3 if "tabbyAPI" in owners else 0

    def fact_asks(self, model: str | None) -> tuple[Ask, ...]:  # noqa: ARG002
        """The card of the loaded model."""
        return (Ask("/v1/model"),)

    def models(self, answers: Answers) -> list[str]:
        """The loaded one where it is known: requests for another are served by it anyway."""
        loaded = text(good_json(answers, "/v1/model"), "id")
        others = super().models(answers)
        return list(dict.fromkeys([loaded, *others])) if loaded else others

    def facts(self, answers: Answers, model: str | None) -> RuntimeFacts:  # noqa: ARG002
        """By the parameters of the loaded model."""
        card = at(good_json(answers, "/v1/model"), "parameters")
        cache = text(card, "cache_mode")
        return RuntimeFacts(
            n_ctx=context_tokens(card, "max_seq_len"),
            n_batch=whole(card, "chunk_size"),
            kv_type_k=cache.lower() if cache else None,
            kv_type_v=cache.lower() if cache else None,
            reports_cached_tokens=self.reports_cached,
        )

    def length_fields(self, g: Generation) -> Mapping[str, Any]:
        """Its sampler takes both."""
        return {"ban_eos_token": True, "min_tokens": g.output_tokens}

    def counts(self, reading: StreamReading) -> TokenCounts:
        """By usage, completed by `timings` where the version sends them."""
        return completed_by(super().counts(reading), reading.timings)

    def server_times(self, reading: StreamReading, counts: TokenCounts) -> ServerTimes | None:
        """By `timings`, which are exact, or by the rounded seconds of usage."""
        return llama_times(reading.timings) or phase_times(
            "usage",
            prefill_s=duration_s(reading.usage, "prompt_time"),
            prefill_tokens=uncached(counts),
            decode_s=duration_s(reading.usage, "completion_time"),
            decode_steps=after_first(counts.output_tokens),
            total_s=duration_s(reading.usage, "total_time"),
        )

    def tokenize(self, model: str | None, prompt: str) -> Ask | None:  # noqa: ARG002 - one model
        """Without the token that begins a text, so that texts add up."""
        return Ask("/v1/token/encode", "POST", {"text": prompt, "add_bos_token": False})

    def token_count(self, answer: Answer) -> int | None:
        """By `length`."""
        return whole(answer.json, "length")
