"""What a text was read as, in a form that is easy to compare."""

from __future__ import annotations

from typing import Any

from twospeed.records.request_record import RequestRecord, ServerTimes
from twospeed.sources.logs.content import Content


def told_of(record: RequestRecord) -> tuple[Any, ...]:
    """As the rows of `Sample.requests`; times to the microsecond."""
    counts, server = record.counts, record.server or ServerTimes(told_by="nothing")
    return (
        counts.prompt_tokens,
        counts.cached_prompt_tokens,
        server.prefill_tokens,
        counts.output_tokens,
        _near(server.prefill_s),
        _near(server.decode_s),
        server.decode_steps,
        _near(server.total_s),
    )


def told(content: Content) -> tuple[tuple[Any, ...], ...]:
    """All requests of a text."""
    return tuple(told_of(record) for record in content.records)


def _near(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
