"""What a usage object says about tokens, in the three meanings that are in use.

* OpenAI chat and completions: `prompt_tokens` is the whole prompt, cached part included.
* OpenAI responses: the same under `input_tokens`, with `input_tokens_details`.
* Anthropic messages: `input_tokens` is only what was neither read from nor written to the cache;
  the whole prompt is the sum with `cache_read_input_tokens` and `cache_creation_input_tokens`
  (llama-server 1 + 215; vLLM's last message 20 + 384 created + 0 read; both seen).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twospeed.records.request_record import TokenCounts
from twospeed.runtimes.fields import counted_tokens


def token_counts(usage: Mapping[str, Any] | None, *, zero_cached_is_known: bool) -> TokenCounts:
    """How many tokens the request had, by the usage object of any of the three meanings.

    Args:
        usage: raw object; None when the response had none.
        zero_cached_is_known: False for a runtime whose "0 cached tokens" is a constant, so that
            0 stays unknown.

    Returns:
        Counts; every one that is absent, null or impossible is None.
    """
    prompt, cached, output, reasoning = _by_meaning(usage or {})
    if cached == 0 and not zero_cached_is_known:
        cached = None
    return TokenCounts(
        prompt_tokens=prompt,
        cached_prompt_tokens=part_of(cached, prompt),
        output_tokens=output,
        reasoning_tokens=part_of(reasoning, output),
    )


def part_of(part: int | None, total: int | None) -> int | None:
    """`part` where it can be a part of `total`; None where one is unknown or they contradict."""
    if part is None or total is None or part > total:
        return None
    return part


_Counts = tuple[int | None, int | None, int | None, int | None]


def _by_meaning(usage: Mapping[str, Any]) -> _Counts:
    if "prompt_tokens" in usage:
        return _openai(usage, "prompt_tokens", "completion_tokens")
    if "input_tokens_details" in usage or "total_tokens" in usage:
        return _openai(usage, "input_tokens", "output_tokens")
    return _anthropic(usage)


def _openai(usage: Mapping[str, Any], prompt: str, output: str) -> _Counts:
    return (
        counted_tokens(usage, prompt),
        counted_tokens(usage, f"{prompt}_details", "cached_tokens"),
        counted_tokens(usage, output),
        counted_tokens(usage, f"{output}_details", "reasoning_tokens"),
    )


def _anthropic(usage: Mapping[str, Any]) -> _Counts:
    fresh = counted_tokens(usage, "input_tokens")
    read = counted_tokens(usage, "cache_read_input_tokens")
    created = counted_tokens(usage, "cache_creation_input_tokens")
    prompt = None if fresh is None else fresh + (read or 0) + (created or 0)
    return prompt, read, counted_tokens(usage, "output_tokens"), None
