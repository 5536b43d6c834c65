"""Whether a model thinks without showing it, so that only a longer answer holds text."""

from __future__ import annotations

from collections.abc import Sequence

from twospeed.records.request_record import RequestRecord


def hides_reasoning(records: Sequence[RequestRecord], usual_output_tokens: int) -> bool:
    """Whether answers of usual length stay invisible.

    One such answer may be chance (a token that is no text yet); it is tried once more after a
    longer answer has shown text.
    """
    short = [r for r in records if r.probe and r.probe.output_tokens <= usual_output_tokens]
    silent = sum(map(_shows_nothing, short))
    if not silent or any(record.arrivals for record in short):
        return False
    return silent > 1 or len(short) == len(records)


def _shows_nothing(record: RequestRecord) -> bool:
    """Answered, yet no text and no clock of the server: it was all hidden reasoning."""
    told = record.server is not None and record.server.decode_s is not None
    return record.error is None and not record.arrivals and not told
