"""Seconds of the workload taken from requests that are nearly it, where no curve can be fitted.

A pasted log often holds one request: too little for a curve, enough for that request.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from twospeed.fits.interval import Interval
from twospeed.fits.observations import DecodePoint, PrefillPoint
from twospeed.records.request_record import RequestRecord

NEAR_FRAC = 0.25
"""A prompt that differs less than this from the workload's stands for it, in proportion."""
DEPTH_FACTOR = 2.0
"""A depth within this factor of the workload's stands for it."""


def direct_prefill(
    points: Sequence[PrefillPoint], prompt_tokens: int, cached_tokens: int
) -> Interval | None:
    """Seconds of prefill from points of nearly the same uncached length; None without one."""
    wanted = prompt_tokens - cached_tokens
    seconds = [
        point.s * wanted / uncached
        for point in points
        if (uncached := point.uncached_tokens) > 0 and abs(uncached - wanted) <= NEAR_FRAC * wanted
    ]
    return _spread(seconds)


def direct_wait(
    records: Sequence[RequestRecord], prompt_tokens: int, cached_tokens: int
) -> Interval | None:
    """Seconds that a user waited for the first text of such a prompt, queue and load left out.

    For requests of which nobody tells more: the wait is then all that is known of prefill. None
    where prompts differ too much, or where none is told for several.
    """
    waits = [(record, _waited_s(record)) for record in records if record.step == "user"]
    timed = [(_read_tokens(record), waited_s) for record, waited_s in waits if waited_s is not None]
    wanted = prompt_tokens - cached_tokens
    near = [
        waited_s * wanted / tokens
        for tokens, waited_s in timed
        if tokens and abs(tokens - wanted) <= NEAR_FRAC * wanted
    ]
    return _spread(near)


def _waited_s(record: RequestRecord) -> float | None:
    ttft_s, server = record.client.ttft_s, record.server
    if ttft_s is None or record.error is not None:
        return None
    before_s = ((server.queue_s or 0.0) + (server.load_s or 0.0)) if server else 0.0
    return ttft_s - before_s if before_s < ttft_s else ttft_s


def _read_tokens(record: RequestRecord) -> int | None:
    counts = record.counts
    if counts.prompt_tokens is None:
        return None
    return counts.prompt_tokens - (counts.cached_prompt_tokens or 0)


def direct_per_token(points: Sequence[DecodePoint], depth_tokens: float) -> Interval | None:
    """Seconds per token from points of nearly the same depth; None without one."""
    near = [
        point.per_token_s
        for point in points
        if depth_tokens / DEPTH_FACTOR <= point.depth_tokens <= depth_tokens * DEPTH_FACTOR
    ]
    return _spread(near)


def lone_per_token(points: Sequence[DecodePoint]) -> Interval | None:
    """Seconds per token of a single row of a table, for want of any other depth."""
    return _spread([point.per_token_s for point in points]) if len(points) == 1 else None


def _spread(values: list[float]) -> Interval | None:
    """Median and range: with so few values no narrower bound can be defended."""
    if not values:
        return None
    return Interval(low=min(values), likely=median(values), high=max(values))
