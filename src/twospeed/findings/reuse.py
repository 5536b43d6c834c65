"""Does the runtime reuse a prompt that it has already processed?

Known from the server's own count of cached tokens, else inferred: a repeated prompt that takes far
less prefill than the cold curve predicts was reused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Literal

from msgspec import Struct

from twospeed.fits.prefill import PrefillFit
from twospeed.records.request_record import RequestRecord
from twospeed.records.run import Run

Reused = Literal["yes", "partial", "no", "unknown"]
HowKnown = Literal["server", "timing", "setting"]

MOSTLY = 0.8
HARDLY = 0.2
"""Share of the reusable tokens from which reuse counts as working, and below which as absent."""
SHORTEST_TELLING_S = 0.05
"""Cold prefill below this cannot be told from a reused prompt by time alone."""


class CacheCase(Struct, frozen=True, kw_only=True):
    """One repeated prompt."""

    case: str
    prompt_tokens: int | None
    cached_tokens: int | None
    """As reported; None where the runtime does not tell."""
    expected_cached_tokens: int | None
    """A full hit still evaluates one token, and a block cache rounds down."""
    prefill_s: float | None


class CacheObservation(Struct, frozen=True, kw_only=True):
    """Whether a processed prompt is reused, and how that is known."""

    reused: Reused = "unknown"
    how_known: HowKnown | None = None
    granularity_tokens: int | None = None
    cases: tuple[CacheCase, ...] = ()


def observe_reuse(run: Run, cold: PrefillFit | None) -> CacheObservation:
    """Whether a processed prompt is reused.

    Args:
        run: its repeated prompts and facts.
        cold: curve of unrepeated prompts, for runtimes that do not tell cached tokens.
    """
    by_number = {record.number: record for record in run.records}
    cases = tuple(
        _case(run, record, by_number)
        for record in run.records
        if record.repeats is not None and record.error is None
    )
    reused, how = _verdict(run, cases, cold)
    return CacheObservation(
        reused=reused, how_known=how, granularity_tokens=run.facts.kv_block_tokens, cases=cases
    )


def _case(run: Run, record: RequestRecord, by_number: Mapping[int, RequestRecord]) -> CacheCase:
    prompt = record.counts.prompt_tokens
    earlier = by_number.get(record.repeats) if record.repeats is not None else None
    before = earlier.counts.prompt_tokens if earlier is not None else prompt
    told = run.facts.reports_cached_tokens is not False
    return CacheCase(
        case="same prompt again",
        prompt_tokens=prompt,
        cached_tokens=record.counts.cached_prompt_tokens if told else None,
        expected_cached_tokens=_reusable(prompt, before, run.facts.kv_block_tokens),
        prefill_s=_seconds(run, record),
    )


def _reusable(prompt: int | None, before: int | None, block: int | None) -> int | None:
    if prompt is None or before is None:
        return None
    tokens = max(min(prompt, before) - 1, 0)
    return tokens - tokens % block if block else tokens


def _seconds(run: Run, record: RequestRecord) -> float | None:
    if record.server is not None and not run.ignore_timings:
        return record.server.prefill_s
    ttft_s = record.client.ttft_s
    return None if ttft_s is None else max(ttft_s - (run.round_trip_s or 0.0), 0.0)


def _verdict(
    run: Run, cases: tuple[CacheCase, ...], cold: PrefillFit | None
) -> tuple[Reused, HowKnown | None]:
    told = [
        case.cached_tokens / case.expected_cached_tokens
        for case in cases
        if case.cached_tokens is not None and case.expected_cached_tokens
    ]
    if told:
        return _word(median(told)), "server"
    timed = list(_shares_by_time(cases, cold))
    if timed:
        return _word(median(timed)), "timing"
    if run.facts.prefix_cache_enabled is False:
        return "no", "setting"
    return "unknown", None


def _shares_by_time(cases: Iterable[CacheCase], cold: PrefillFit | None) -> Iterable[float]:
    """Share of the cold prefill that each repeat saved.

    A saving inside the uncertainty of the cold curve counts as none.
    """
    for case in cases:
        if cold is None or case.prefill_s is None or not case.prompt_tokens:
            continue
        expected = cold.seconds(case.prompt_tokens)
        if expected.likely >= SHORTEST_TELLING_S:
            shown = case.prefill_s < expected.low
            yield 1.0 - case.prefill_s / expected.likely if shown else 0.0


def _word(share: float) -> Reused:
    if share >= MOSTLY:
        return "yes"
    return "no" if share <= HARDLY else "partial"
