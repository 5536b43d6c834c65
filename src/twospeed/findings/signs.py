"""What requests show of their decode beside its time: drafts, sampling, its course, neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from msgspec import Struct

from twospeed.fits.phases import client_decode, server_decode
from twospeed.records.request_record import RequestRecord, ServerSigns

FEWEST_DRAFTED = 20
"""Fewer drafted tokens say nothing about how many are accepted."""
LOW_ACCEPTANCE = 0.3
"""Below this share of accepted tokens drafting costs more than it saves.

A draft of k tokens costs at least as much as the k small steps and the wide one that checks them.
"""
SAMPLING_FRAC = 0.3
"""Sampling from this share of the decode time on is worth naming."""
FEWEST_COMPARED = 2
FALLING = 1.6
"""Decode at the end of one answer / at its start from which its course is worth naming."""
FEWEST_WINDOWS = 4
DISTURBED_FRAC = 0.2
"""Share of decode in which other prompts were read from which they are worth naming."""


class Drafting(Struct, frozen=True, kw_only=True):
    """How speculative decoding went."""

    drafted: int
    accepted: int

    @property
    def share(self) -> float:
        """Accepted part of the drafted tokens."""
        return self.accepted / self.drafted

    @property
    def rejected(self) -> bool:
        """Whether drafting is a loss."""
        return self.share < LOW_ACCEPTANCE


def drafting(records: Iterable[RequestRecord]) -> Drafting | None:
    """Drafted and accepted tokens of all requests; None where they are too few, or not told."""
    told = [
        (signs.drafted_tokens, signs.accepted_tokens)
        for signs in _signs(records)
        if signs.drafted_tokens is not None and signs.accepted_tokens is not None
    ]
    drafted = sum(one for one, _ in told)
    if drafted < FEWEST_DRAFTED:
        return None
    return Drafting(drafted=drafted, accepted=sum(accepted for _, accepted in told))


def sampling_frac(records: Iterable[RequestRecord]) -> float | None:
    """Median of sampling / decode, both as the runtime tells them; None where it does not."""
    shares = [
        record.signs.sampling_s / decode.s
        for record in records
        if record.signs is not None and record.signs.sampling_s is not None
        if (decode := server_decode(record))
    ]
    return median(shares) if shares else None


def fields_frac(records: Sequence[RequestRecord]) -> float | None:
    """Part of decode that the fields of the user's requests cost; None where that was not tried.

    Requests of one length are compared, without the fields and with them, by the medians.
    """
    bare = [record for record in records if record.step == "bare" and record.error is None]
    lengths = {record.probe.prompt_tokens for record in bare if record.probe}
    full = [
        record
        for record in records
        if record.step == "curve" and record.error is None
        if record.probe and record.probe.prompt_tokens in lengths
    ]
    for clock in (server_decode, client_decode):
        steps_s = [
            [decode.s / decode.steps for record in side if (decode := clock(record))]
            for side in (bare, full)
        ]
        if all(len(side) >= FEWEST_COMPARED for side in steps_s):
            return 1.0 - median(steps_s[0]) / median(steps_s[1])
    return None


def slowdown(record: RequestRecord) -> float | None:
    """Time per token at the end of an answer / at its start; None without its course."""
    windows = record.signs.decode_windows if record.signs else ()
    if len(windows) < FEWEST_WINDOWS:
        return None
    quarter = max(len(windows) // 4, 1)
    first = median(window.per_token_s for window in windows[:quarter])
    last = median(window.per_token_s for window in windows[-quarter:])
    return last / first if first > 0 else None


def falls(records: Iterable[RequestRecord]) -> float | None:
    """Median slowdown of the answers whose course is told, where it is worth naming."""
    told = [one for one in (slowdown(record) for record in records) if one is not None]
    found = median(told) if told else None
    return found if found is not None and found >= FALLING else None


def disturbed_s(records: Iterable[RequestRecord]) -> float | None:
    """Median seconds of decode in which other prompts were read, where they are a notable part."""
    told = [
        record.signs.disturbed_s
        for record in records
        if record.signs is not None and record.signs.disturbed_s
        if (decode := server_decode(record))
        and record.signs.disturbed_s > DISTURBED_FRAC * decode.s
    ]
    return median(told) if told else None


def _signs(records: Iterable[RequestRecord]) -> Iterable[ServerSigns]:
    return (r.signs for r in records if r.signs is not None and r.error is None)
