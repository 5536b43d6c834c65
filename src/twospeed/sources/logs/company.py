"""What other requests did while one was at work: read off the order and the clocks of a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from twospeed.records.request_record import RequestRecord, ServerSigns

MOST_BESIDE = 64
"""More at once are not looked at: a log that never ends its requests tells nothing of company."""


@dataclass(frozen=True, slots=True)
class Span:
    """When a request was in its slot, by line and, where lines carry a clock, in seconds."""

    first_line: int
    last_line: int
    began_s: float | None = None
    ended_s: float | None = None


def beside(records: Sequence[RequestRecord], spans: Sequence[Span | None]) -> list[RequestRecord]:
    """The records with how many others ran beside them, and for how long prompts disturbed them.

    Args:
        records: of one log.
        spans: of each; None where the log does not show it.
    """
    told = list(records)
    known = sorted(
        (index for index, span in enumerate(spans) if span is not None),
        key=lambda index: spans[index].first_line,  # type: ignore[union-attr]
    )
    running: list[int] = []
    company: dict[int, set[int]] = {index: set() for index in known}
    for index in known:
        first = spans[index].first_line  # type: ignore[union-attr]
        running = [one for one in running if spans[one].last_line > first]  # type: ignore[union-attr]
        for one in running[-MOST_BESIDE:]:
            company[one].add(index)
            company[index].add(one)
        running = [*running[-MOST_BESIDE:], index]
    for index, others in company.items():
        told[index] = _with_company(told, spans, index, others)
    return told


def _with_company(
    records: Sequence[RequestRecord], spans: Sequence[Span | None], index: int, others: set[int]
) -> RequestRecord:
    record = records[index]
    if not others:
        return replace(record, other_requests=0)
    disturbed_s = sum(_disturbed_s(records, spans, index, other) for other in others)
    decode_s = record.server.decode_s if record.server else None
    signs = record.signs
    if decode_s is not None and disturbed_s > 0:
        signs = replace(signs or ServerSigns(), disturbed_s=min(disturbed_s, decode_s))
    return replace(record, other_requests=len(others), signs=signs)


def _disturbed_s(
    records: Sequence[RequestRecord], spans: Sequence[Span | None], index: int, other: int
) -> float:
    """Seconds of the decode of one request in which the prompt of the other was read."""
    mine, theirs = spans[index], spans[other]
    prompt_s = records[other].server.prefill_s if records[other].server else None  # type: ignore[union-attr]
    if mine is None or theirs is None or prompt_s is None:
        return 0.0
    if mine.began_s is None or mine.ended_s is None or theirs.began_s is None:
        return prompt_s if theirs.first_line > mine.first_line else 0.0
    own_prompt_s = records[index].server.prefill_s if records[index].server else None  # type: ignore[union-attr]
    decodes_from_s = mine.began_s + (own_prompt_s or 0.0)
    until_s = min(mine.ended_s, theirs.began_s + prompt_s)
    return max(until_s - max(decodes_from_s, theirs.began_s), 0.0)
