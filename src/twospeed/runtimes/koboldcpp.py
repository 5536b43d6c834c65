"""KoboldCpp.

It imitates Ollama and others, and names itself at `/api/extra/version`. Text comes by its
OpenAI-compatible route. `/api/extra/perf` tells times of the last request only, whosever it was,
so they are left alone; its `queue` and `idle` show other requests. Reuse is not reported.

Source: LostRuins/koboldcpp koboldcpp.py (read, not run).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from twospeed.records.run import RuntimeFacts, Setting
from twospeed.runtimes.fields import context_tokens, text, whole
from twospeed.runtimes.runtime import (
    Answer,
    Answers,
    Ask,
    Certainty,
    Runtime,
    good_json,
)


class KoboldCpp(Runtime):
    """KoboldCpp by its OpenAI-compatible route."""

    id: ClassVar[str] = "koboldcpp"
    name: ClassVar[str] = "KoboldCpp"
    ports: ClassVar[tuple[int, ...]] = (5001,)
    identify: ClassVar[tuple[Ask, ...]] = (Ask("/api/extra/version"), Ask("/v1/models"))
    reports_cached: ClassVar[bool | None] = False
    zero_cached_is_known: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, Setting]] = {
        "n_ctx": Setting(flag="--contextsize {value}"),
        "n_batch": Setting(flag="--blasbatchsize {value}"),
        "threads": Setting(flag="--threads {value}"),
        "gpu_layers": Setting(flag="--gpulayers {value}"),
        "flash_attn": Setting(flag="--flashattention"),
        "kv_type_k": Setting(flag="--quantkv 1"),
        "kv_type_v": Setting(flag="--quantkv 1"),
        "max_output_tokens": Setting(request='"max_tokens": {value}'),
    }

    def recognise(self, answers: Answers) -> Certainty:
        """By its own version route."""
        named = text(good_json(answers, "/api/extra/version"), "result") or ""
        return 3 if named.lower() == "koboldcpp" else 0

    def version(self, answers: Answers) -> str | None:
        """By its own version route."""
        return text(good_json(answers, "/api/extra/version"), "version")

    def fact_asks(self, model: str | None) -> tuple[Ask, ...]:  # noqa: ARG002
        """The context is all that it shows."""
        return (Ask("/api/extra/true_max_context_length"),)

    def facts(self, answers: Answers, model: str | None) -> RuntimeFacts:  # noqa: ARG002
        """The context with which it was started."""
        return RuntimeFacts(
            n_ctx=context_tokens(good_json(answers, "/api/extra/true_max_context_length"), "value"),
            reports_cached_tokens=False,
        )

    def tokenize(self, model: str | None, prompt: str) -> Ask | None:  # noqa: ARG002 - one model
        """By its own counter."""
        return Ask("/api/extra/tokencount", "POST", {"prompt": prompt})

    def token_count(self, answer: Answer) -> int | None:
        """By `value`."""
        return whole(answer.json, "value")

    def activity_ask(self) -> Ask | None:
        """Length of its queue, and whether it works."""
        return Ask("/api/extra/perf")

    def activity(self, answer: Answer) -> int | None:
        """The queue and the one at work."""
        queue, idle = whole(answer.json, "queue"), whole(answer.json, "idle")
        return None if queue is None or idle is None else queue + (idle == 0)
