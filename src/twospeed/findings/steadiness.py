"""Whether repeats of the same request agree well enough to be believed."""

from __future__ import annotations

from collections.abc import Iterable

from twospeed.fits.curve import near_cells
from twospeed.fits.observations import DecodePoint, PrefillPoint

UNSTEADY_RATIO = 1.6
"""Repeats of one length that differ by more were disturbed; the cause is not visible from here."""
MOST_UNSTEADY = 1
"""One disturbed length is outvoted by the others."""


def is_unsteady(prefills: Iterable[PrefillPoint], decodes: Iterable[DecodePoint]) -> bool:
    """Whether the timings of either phase scatter too much for any verdict."""
    prefill = [(float(p.uncached_tokens), p.s / p.uncached_tokens) for p in prefills]
    decode = [(p.depth_tokens + 64.0, p.per_token_s) for p in decodes]
    return any(_disturbed_lengths(timings) > MOST_UNSTEADY for timings in (prefill, decode))


def _disturbed_lengths(timings: list[tuple[float, float]]) -> int:
    """Lengths at which the slowest repeat took much longer than the fastest."""
    by_cell: dict[int, list[float]] = {}
    for cell, (_, seconds) in zip(near_cells([at for at, _ in timings]), timings, strict=True):
        by_cell.setdefault(cell, []).append(seconds)
    return sum(max(cell) > UNSTEADY_RATIO * min(cell) for cell in by_cell.values())
