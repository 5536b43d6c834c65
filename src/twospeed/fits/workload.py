"""The request shape that a log or a recording stands for: its typical request."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from twospeed.fits.phases import prompt_parts
from twospeed.records.request_record import RequestRecord
from twospeed.records.run import Workload, WorkloadFrom


def typical_workload(records: Sequence[RequestRecord], origin: WorkloadFrom) -> Workload | None:
    """Median prompt, median of what had to be read of it, median answer.

    The cached part is the rest of the median prompt: a conversation of which most turns lost their
    cache is judged by such a turn, one that lost it once by a turn that kept it.

    Returns:
        None where no request tells the length of its prompt.
    """
    usable = [record for record in records if record.error is None and record.step != "warmup"]
    parts = [_lengths(record) for record in usable]
    known = [part for part in parts if part is not None]
    if not known:
        return None
    outputs = [tokens for tokens in map(_output_tokens, usable) if tokens is not None]
    prompt = round(median(prompt for prompt, _ in known))
    uncached = round(median(uncached for _, uncached in known))
    return Workload(
        prompt_tokens=prompt,
        output_tokens=round(median(outputs)) if outputs else 0,
        cached_prompt_tokens=max(prompt - uncached, 0),
        origin=origin,
    )


def _lengths(record: RequestRecord) -> tuple[int, int] | None:
    """Whole prompt, and the part of it that was read; all of it where the rest is not told."""
    parts = prompt_parts(record)
    if parts is not None:
        return sum(parts), parts[0]
    prompt = record.counts.prompt_tokens
    return None if prompt is None else (prompt, prompt)


def _output_tokens(record: RequestRecord) -> int | None:
    """Tokens of the answer, or those that its decode was timed over."""
    told = record.counts.output_tokens
    return told if told is not None or record.server is None else record.server.decode_steps
