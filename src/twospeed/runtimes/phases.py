"""A runtime's own times as a record: only phases whose tokens and seconds belong together."""

from __future__ import annotations

from twospeed.records.request_record import ServerTimes, TokenCounts


def uncached(counts: TokenCounts) -> int | None:
    """Tokens that prefill processed; None unless whole and cached prompt are both told."""
    if counts.prompt_tokens is None or counts.cached_prompt_tokens is None:
        return None
    return counts.prompt_tokens - counts.cached_prompt_tokens


def after_first(output_tokens: int | None) -> int | None:
    """Steps from the first to the last token; None where there is not one such step."""
    return output_tokens - 1 if output_tokens is not None and output_tokens > 1 else None


def phase_times(
    told_by: str,
    *,
    prefill_s: float | None = None,
    prefill_tokens: int | None = None,
    decode_s: float | None = None,
    decode_steps: int | None = None,
    load_s: float | None = None,
    queue_s: float | None = None,
    total_s: float | None = None,
) -> ServerTimes | None:
    """The record of what the runtime told; None when it told no time at all.

    A decode time without a step (one token, or an unknown count) says nothing about decode and
    is dropped; a prefill time without its token count stays, since the wait is worth knowing.
    """
    if decode_s is None or decode_steps is None:
        decode_s = decode_steps = None
    if all(one is None for one in (prefill_s, decode_s, load_s, queue_s, total_s)):
        return None
    return ServerTimes(
        told_by=told_by,
        load_s=load_s,
        queue_s=queue_s,
        prefill_s=prefill_s,
        prefill_tokens=None if prefill_s is None else prefill_tokens,
        decode_s=decode_s,
        decode_steps=decode_steps,
        total_s=total_s,
    )
