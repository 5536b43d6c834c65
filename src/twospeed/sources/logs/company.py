"""What other requests did while one was at work: read off the order and the clocks of a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from twospeed.records.request_record import RequestRecord, ServerSigns

MOST_BESIDE = 64
"""More at once are not looked at: a log that never ends its requests tells nothing of company."""


class Span(NamedTuple):
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
    known = {index: span for index, span in enumerate(spans) if span is not None}
    running: list[int] = []
    company: dict[int, set[int]] = {index: set() for index in known}
    for index, span in sorted(known.items(), key=lambda item: item[1].first_line):
        running = [one for one in running if known[one].last_line > span.first_line]
        for one in running[-MOST_BESIDE:]:
            company[one].add(index)
            company[index].add(one)
        running = [*running[-MOST_BESIDE:], index]
    for index, others in company.items():
        beside_it = [(records[other], known[other]) for other in others]
        told[index] = _with_company(records[index], known[index], beside_it)
    return told


def _with_company(
    record: RequestRecord, span: Span, others: Sequence[tuple[RequestRecord, Span]]
) -> RequestRecord:
    if not others:
        return replace(record, other_requests=0)
    disturbed_s = sum(_disturbed_s(record, span, other, theirs) for other, theirs in others)
    decode_s = record.server.decode_s if record.server else None
    signs = record.signs
    if decode_s is not None and disturbed_s > 0:
        signs = replace(signs or ServerSigns(), disturbed_s=min(disturbed_s, decode_s))
    return replace(record, other_requests=len(others), signs=signs)


def _disturbed_s(record: RequestRecord, span: Span, other: RequestRecord, theirs: Span) -> float:
    """Seconds of the decode of one request in which the prompt of the other was read."""
    prompt_s = _prefill_s(other)
    if prompt_s is None:
        return 0.0
    if span.began_s is None or span.ended_s is None or theirs.began_s is None:
        return prompt_s if theirs.first_line > span.first_line else 0.0
    decodes_from_s = span.began_s + (_prefill_s(record) or 0.0)
    until_s = min(span.ended_s, theirs.began_s + prompt_s)
    return max(until_s - max(decodes_from_s, theirs.began_s), 0.0)


def _prefill_s(record: RequestRecord) -> float | None:
    return record.server.prefill_s if record.server else None
