"""Do tokens arrive in bursts that no runtime makes?

A runtime sends a token when it has it, or a few accepted drafts at a time. Something on the way
that collects text lets many tokens out at one instant, pauses, and does so again; or it keeps all
of them until the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from msgspec import Struct

from twospeed.fits.phases import server_decode
from twospeed.records.request_record import APART, RequestRecord
from twospeed.records.run import Run

TOGETHER_S = 0.002
"""Texts this close came at one instant: no model writes 500 tokens per second and pauses."""
PAUSE_FACTOR = 10.0
"""A pause is so many times longer than the gaps inside a burst, ..."""
LEAST_PAUSE_S = 0.03
"""... and at least this long."""
FEWEST_TEXTS = 6
"""Texts of a usual burst: drafting lets out fewer at a time."""
FEWEST_BURSTS = 3
ALL_AT_ONCE_FRAC = 0.3
"""Text that arrives within less than this share of the time it took to write was kept."""
KEPT_FRAC = 0.6
"""It arrives when so much of the work was done; else the server's clock is wrong, not the way."""
SHORTEST_TELLING_S = 0.3
WIDESPREAD = 0.5
"""Share of the answers from which the pattern is no chance."""


class Holding(Struct, frozen=True, kw_only=True):
    """Text is held back on the way."""

    texts_per_burst: float
    pause_s: float
    """Between bursts; where all text came at once, the time that it was kept."""


def observe_holding(run: Run) -> Holding | None:
    """The pattern that most answers show; None where they do not, or where drafting explains it."""
    records = [r for r in run.records if r.error is None and r.step not in APART]
    told = [record for record in records if len(record.arrivals) >= FEWEST_TEXTS]
    found = [one for one in (_held(record) for record in told) if one is not None]
    if not found or len(found) < WIDESPREAD * len(told) or _drafts(run):
        return None
    return Holding(
        texts_per_burst=median(one.texts_per_burst for one in found),
        pause_s=median(one.pause_s for one in found),
    )


def _drafts(run: Run) -> bool:
    drafted = any(r.signs and r.signs.drafted_tokens for r in run.records)
    return drafted or run.facts.draft_model is True


def _held(record: RequestRecord) -> Holding | None:
    stamps = [arrival.at_s for arrival in record.arrivals]
    kept = _kept_to_the_end(record, stamps[-1] - stamps[0], len(stamps))
    return kept or _in_bursts(stamps)


def _kept_to_the_end(record: RequestRecord, span_s: float, texts: int) -> Holding | None:
    """All text within far less time than the server says that it wrote for, and after that time."""
    told, ttft_s = server_decode(record), record.client.ttft_s
    if told is None or told.s < SHORTEST_TELLING_S or span_s >= ALL_AT_ONCE_FRAC * told.s:
        return None
    written_s = told.s + ((record.server.prefill_s or 0.0) if record.server else 0.0)
    if ttft_s is None or ttft_s < KEPT_FRAC * written_s:
        return None
    return Holding(texts_per_burst=float(texts), pause_s=told.s - span_s)


def _in_bursts(stamps: Sequence[float]) -> Holding | None:
    sizes, pauses, inside = [1], [], []
    for before_s, at_s in pairwise(stamps):
        gap_s = at_s - before_s
        if gap_s <= TOGETHER_S:
            sizes[-1] += 1
            inside.append(gap_s)
        else:
            sizes.append(1)
            pauses.append(gap_s)
    if len(sizes) < FEWEST_BURSTS or median(sizes) < FEWEST_TEXTS:
        return None
    pause_s = median(pauses)
    if pause_s < max(LEAST_PAUSE_S, PAUSE_FACTOR * median(inside)):
        return None
    return Holding(texts_per_burst=median(sizes), pause_s=pause_s)
