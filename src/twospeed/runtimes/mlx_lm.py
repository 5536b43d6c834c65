"""mlx_lm.server.

Its SSE comments `: keepalive processed/total` count only the tokens that were not cached, the
first of them before any text: reuse shows even in a stream without usage. Prompts are reused
token by token where the cache can be cut (not with rotating or recurrent caches); a full hit
still processes one token. There is no context limit: a prompt beyond it is not refused.

Source: mlx_lm/server.py and models/cache.py of 0.32.2, and captures of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from msgspec.structs import replace

from twospeed.records.request_record import TokenCounts
from twospeed.records.run import RuntimeFacts, Setting
from twospeed.runtimes.fields import text
from twospeed.runtimes.runtime import (
    Answers,
    Ask,
    Certainty,
    Runtime,
    good_json,
    server_header,
)
from twospeed.runtimes.usage import part_of
from twospeed.wire.reading import StreamReading

_KEEPALIVE = re.compile(r"\s*:?\s*keepalive ([0-9]{1,9})/([0-9]{1,9})\s*")


class MlxLm(Runtime):
    """mlx_lm.server, on the HTTP server of Python's library."""

    id: ClassVar[str] = "mlx_lm"
    name: ClassVar[str] = "mlx_lm.server"
    ports: ClassVar[tuple[int, ...]] = (8080,)
    identify: ClassVar[tuple[Ask, ...]] = (Ask("/v1/models"), Ask("/health"))
    reports_cached: ClassVar[bool | None] = True
    settings: ClassVar[Mapping[str, Setting]] = {
        "n_batch": Setting(flag="--prefill-step-size {value}"),
        "parallel_slots": Setting(flag="--decode-concurrency {value}"),
        "max_output_tokens": Setting(flag="--max-tokens {value}", request='"max_tokens": {value}'),
        "reasoning": Setting(
            flag="--chat-template-args '{\"enable_thinking\": false}'",
            request='"chat_template_kwargs": {"enable_thinking": false}',
        ),
    }

    def recognise(self, answers: Answers) -> Certainty:
        """By its web server and the only two routes that it has; it never names itself.

        Its model list has no body at all while the cache of the hub is missing (seen).
        """
        if not server_header(answers).startswith("basehttp") or _status(answers, "/props") == 200:
            return 0
        healthy = text(good_json(answers, "/health"), "status") == "ok"
        return 2 if healthy and _status(answers, "/v1/models") == 200 else 0

    def facts(self, answers: Answers, model: str | None) -> RuntimeFacts:  # noqa: ARG002
        """It shows nothing about itself; this much is in its code."""
        return RuntimeFacts(kv_block_tokens=1, reports_cached_tokens=True)

    def counts(self, reading: StreamReading) -> TokenCounts:
        """By usage; the cached part by the keepalives where usage does not have it."""
        counts = super().counts(reading)
        fresh = _fresh_tokens(reading)
        if counts.cached_prompt_tokens is None and counts.prompt_tokens is not None and fresh:
            cached = max(counts.prompt_tokens - fresh, 0)
            return replace(counts, cached_prompt_tokens=part_of(cached, counts.prompt_tokens))
        return counts


def _status(answers: Answers, path: str) -> int | None:
    answer = answers.get(path)
    return None if answer is None else answer.status


def _fresh_tokens(reading: StreamReading) -> int | None:
    """Uncached prompt tokens by the first keepalive; None without one."""
    for _, comment in reading.keepalives:
        if found := _KEEPALIVE.fullmatch(comment):
            return int(found[2])
    return None
