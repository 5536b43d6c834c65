"""`transformers serve`.

It tells no cached tokens; the 0 of its `/v1/responses` is a constant. By default every request
starts anew; with `--continuous-batching` prefixes are shared, unreported. The role-only chunk
comes at the start of prefill, usage on the finish chunk, and no `[DONE]`.

Source: transformers/cli/serving of 5.24.0, and captures of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from twospeed.records.run import Setting
from twospeed.runtimes.fields import at, text
from twospeed.runtimes.runtime import (
    Answers,
    Ask,
    Certainty,
    Runtime,
    served_models,
    server_header,
)


class TransformersServe(Runtime):
    """transformers serve, told by the form of its model list."""

    id: ClassVar[str] = "transformers"
    name: ClassVar[str] = "transformers serve"
    ports: ClassVar[tuple[int, ...]] = (8000,)
    identify: ClassVar[tuple[Ask, ...]] = (Ask("/v1/models"), Ask("/health"))
    reports_cached: ClassVar[bool | None] = False
    zero_cached_is_known: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, Setting]] = {
        "n_batch": Setting(flag="--cb-max-batch-tokens {value}"),
        "flash_attn": Setting(flag="--attn-implementation flash_attention_2"),
        "prefix_cache": Setting(flag="--continuous-batching"),
        "cache_prompt": Setting(flag="--continuous-batching"),
        "max_output_tokens": Setting(request='"max_tokens": {value}'),
        "reasoning": Setting(
            flag="--reasoning off", request='"chat_template_kwargs": {"enable_thinking": false}'
        ),
    }

    def recognise(self, answers: Answers) -> Certainty:
        """By its model list with its web server or request ids; it never names itself."""
        if not any(text(entry, "status", "value") for entry in served_models(answers)):
            return 0
        marked = any("x-request-id" in answer.headers for answer in answers.values())
        served = server_header(answers) == "uvicorn"
        if marked and served:
            return 2
        return 1 if marked or served else 0

    def models(self, answers: Answers) -> list[str]:
        """Loaded ones first, then those in the cache of the hub."""
        entries = sorted(
            served_models(answers), key=lambda entry: at(entry, "status", "value") != "loaded"
        )
        return [name for name in (text(entry, "id") for entry in entries) if name]
