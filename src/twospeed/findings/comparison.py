"""A few requests with the same prompt length: which phase is it that differs between them?

Two runs of one request under two set-ups are how people ask. What both share is not what they ask
about, however it stands against the goals.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

from msgspec import Struct

from twospeed.fits.phases import DecodeTime, PrefillTime, server_decode, server_prefill
from twospeed.records.request_record import RequestRecord

MOST_REQUESTS = 6
"""More requests are a day's work and no comparison."""
SAME_FRAC = 0.25
"""Prompts that differ less are compared, per token."""
APART = 1.7
"""How many times slower a phase is from where on the difference is no chance."""
MORE_THAN_THE_OTHER = 1.4
"""The phase that differs does so by so many times the difference of the other."""
DEEPER = 2.0
"""An answer that is so much longer than the whole other request was written at another depth."""
NOTABLE_S = 0.5
"""A phase shorter than this is not asked about."""


class Comparison(Struct, frozen=True, kw_only=True):
    """The pair of requests that differ most."""

    phase: Literal["prefill", "decode"]
    ratio: float
    other_ratio: float
    """How many times slower the other phase of the same request is; below 1 when it is faster."""
    seconds: float
    """Seconds that the slower one took longer in that phase."""
    slow: int
    """Number of the slower request."""


def compare(records: Sequence[RequestRecord]) -> Comparison | None:
    """The phase in which the same request took much longer; None where none did."""
    users = [record for record in records if record.step == "user" and record.error is None]
    users = [record for record in users if not record.other_requests and not _drafts(record)]
    if not 2 <= len(users) <= MOST_REQUESTS:
        return None
    timed = [
        (record.number, prefill, decode)
        for record in users
        if (prefill := server_prefill(record)) and (decode := server_decode(record))
    ]
    pairs = [found for one, two in combinations(timed, 2) for found in _differ(one, two)]
    return max(pairs, key=lambda pair: pair.ratio, default=None)


def _drafts(record: RequestRecord) -> bool:
    """Whether decode depends on how well the text could be guessed."""
    return record.signs is not None and bool(record.signs.drafted_tokens)


_Timed = tuple[int, PrefillTime, DecodeTime]


def _differ(one: _Timed, two: _Timed) -> list[Comparison]:
    tokens = (one[1].uncached_tokens, two[1].uncached_tokens)
    if abs(tokens[0] - tokens[1]) > SAME_FRAC * max(tokens):
        return []
    found = []
    for slow, fast in ((one, two), (two, one)):
        prefill = (slow[1].s / slow[1].uncached_tokens) / (fast[1].s / fast[1].uncached_tokens)
        decode = (slow[2].s / slow[2].steps) / (fast[2].s / fast[2].steps)
        if slow[2].steps > DEEPER * (fast[2].steps + fast[1].uncached_tokens):
            continue
        if prefill >= max(APART, MORE_THAN_THE_OTHER * decode) and slow[1].s >= NOTABLE_S:
            extra_s = slow[1].s * (1.0 - 1.0 / prefill)
            found.append(_pair("prefill", prefill, decode, extra_s, slow[0]))
        if decode >= max(APART, MORE_THAN_THE_OTHER * prefill) and slow[2].s >= NOTABLE_S:
            extra_s = slow[2].s * (1.0 - 1.0 / decode)
            found.append(_pair("decode", decode, prefill, extra_s, slow[0]))
    return found


def _pair(
    phase: Literal["prefill", "decode"], ratio: float, other: float, seconds: float, slow: int
) -> Comparison:
    return Comparison(phase=phase, ratio=ratio, other_ratio=other, seconds=seconds, slow=slow)
