"""Seconds of the workload taken from requests that are nearly it, where no curve can be fitted.

A pasted log often holds one request: too little for a curve, enough for that request.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from twospeed.fits.interval import Interval
from twospeed.fits.observations import DecodePoint, PrefillPoint

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


def direct_per_token(points: Sequence[DecodePoint], depth_tokens: float) -> Interval | None:
    """Seconds per token from points of nearly the same depth; None without one."""
    near = [
        point.per_token_s
        for point in points
        if depth_tokens / DEPTH_FACTOR <= point.depth_tokens <= depth_tokens * DEPTH_FACTOR
    ]
    return _spread(near)


def _spread(values: list[float]) -> Interval | None:
    """Median and range: with so few values no narrower bound can be defended."""
    if not values:
        return None
    return Interval(low=min(values), likely=median(values), high=max(values))
