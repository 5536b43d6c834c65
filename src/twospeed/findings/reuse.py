"""Does the runtime reuse a prompt that it has already processed?

Known from the server's own count of cached tokens, else inferred: a repeated prompt that takes far
less prefill than the cold curve predicts was reused. A prompt that was changed is expected to keep
what lies before the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Literal

from msgspec import Struct, structs

from twospeed.findings.turns import turns_of
from twospeed.fits.prefill import PrefillFit
from twospeed.records.request_record import Change, RequestRecord
from twospeed.records.run import Run

Reused = Literal["yes", "partial", "no", "unknown"]
HowKnown = Literal["server", "timing", "setting"]

MOSTLY = 0.8
HARDLY = 0.2
"""Share of the reusable tokens from which reuse counts as working, and below which as absent."""
SHORTEST_TELLING_S = 0.05
"""Cold prefill below this cannot be told from a reused prompt by time alone."""

CASES: dict[Change, str] = {
    "same": "same prompt again",
    "appended": "a turn appended",
    "end_edited": "end edited",
    "middle_edited": "middle edited",
    "start_edited": "start edited",
    "other": "another conversation",
    "returned": "back to the earlier conversation",
}
KEPT: dict[Change, float] = {
    "same": 1.0,
    "appended": 1.0,
    "end_edited": 0.9,
    "middle_edited": 0.45,
    "start_edited": 0.0,
    "other": 0.0,
    "returned": 1.0,
}
"""Part of the earlier prompt that lies before the change; edits are not made to the token."""
TURN = "turn of a conversation"
MOST_CASES = 20
"""A long log has thousands of turns; so many are shown."""


class CacheCase(Struct, frozen=True, kw_only=True):
    """One prompt that repeats an earlier one, changed or not."""

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
    """Whether a processed prompt is reused: the same again, or with a turn appended.

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
    granularity = run.facts.kv_block_tokens
    if not cases and (turns := tuple(_turn_cases(run))):
        return structs.replace(_of_turns(turns), granularity_tokens=granularity)
    reused, how = _verdict(run, cases, cold)
    return CacheObservation(
        reused=reused, how_known=how, granularity_tokens=granularity, cases=cases
    )


def kept_share(case: CacheCase, cold: PrefillFit | None) -> float | None:
    """Reused / reusable tokens of one case (0 … 1), told or by time; None where neither shows.

    By time a saving inside the uncertainty of the cold curve counts as none.
    """
    if not case.expected_cached_tokens or not case.prompt_tokens:
        return None
    if case.cached_tokens is not None:
        return min(case.cached_tokens / case.expected_cached_tokens, 1.0)
    if cold is None or case.prefill_s is None:
        return None
    expected = cold.seconds(case.prompt_tokens)
    if expected.likely < SHORTEST_TELLING_S:
        return None
    if case.prefill_s >= expected.low:
        return 0.0
    possible = 1.0 - cold.seconds(case.prompt_tokens, case.expected_cached_tokens).likely / (
        expected.likely
    )
    saved = 1.0 - case.prefill_s / expected.likely
    return min(saved / possible, 1.0) if possible > 0 else None


def share_of(cases: Iterable[CacheCase], change: Change, cold: PrefillFit | None) -> float | None:
    """Median share that the cases of one change kept; None where none shows."""
    named = (case for case in cases if case.case == CASES[change])
    shares = [share for case in named if (share := kept_share(case, cold)) is not None]
    return median(shares) if shares else None


def word(share: float) -> Reused:
    """A share of reuse in one word."""
    if share >= MOSTLY:
        return "yes"
    return "no" if share <= HARDLY else "partial"


def _case(run: Run, record: RequestRecord, by_number: Mapping[int, RequestRecord]) -> CacheCase:
    prompt, change = record.counts.prompt_tokens, record.change or "same"
    earlier = by_number.get(record.repeats) if record.repeats is not None else None
    before = earlier.counts.prompt_tokens if earlier is not None else prompt
    told = run.facts.reports_cached_tokens is not False
    return CacheCase(
        case=CASES[change],
        prompt_tokens=prompt,
        cached_tokens=record.counts.cached_prompt_tokens if told else None,
        expected_cached_tokens=_reusable(prompt, before, change, run.facts.kv_block_tokens),
        prefill_s=_seconds(run, record),
    )


def _of_turns(turns: tuple[CacheCase, ...]) -> CacheObservation:
    """That a turn reused something is told; that nothing is reusable may lie in its text."""
    shares = [share for turn in turns if (share := kept_share(turn, None)) is not None]
    usual = word(median(shares)) if shares else "no"
    seen: Reused = usual if usual == "yes" else "partial" if any(shares) else "unknown"
    how: HowKnown | None = None if seen == "unknown" else "server"
    return CacheObservation(reused=seen, how_known=how, cases=turns[:MOST_CASES])


def _turn_cases(run: Run) -> Iterable[CacheCase]:
    """The turns of a log, whose text nobody vouches for: what the turn before left is expected."""
    for turn in turns_of(run):
        yield CacheCase(
            case=TURN,
            prompt_tokens=turn.prompt_tokens,
            cached_tokens=turn.cached_tokens,
            expected_cached_tokens=min(turn.held_tokens, turn.prompt_tokens - 1),
            prefill_s=_seconds(run, turn.record),
        )


def _reusable(
    prompt: int | None, before: int | None, change: Change, block: int | None
) -> int | None:
    if prompt is None or before is None:
        return None
    tokens = int(max(min(prompt, before) - 1, 0) * KEPT[change])
    return tokens - tokens % block if block else tokens


def _seconds(run: Run, record: RequestRecord) -> float | None:
    if record.server is not None and not run.ignore_timings:
        return record.server.prefill_s
    ttft_s = record.client.ttft_s
    return None if ttft_s is None else max(ttft_s - (run.round_trip_s or 0.0), 0.0)


def _verdict(
    run: Run, cases: tuple[CacheCase, ...], cold: PrefillFit | None
) -> tuple[Reused, HowKnown | None]:
    plain = [case for case in cases if case.case in (CASES["same"], CASES["appended"])]
    told = [case for case in plain if case.cached_tokens is not None]
    shares = [share for case in told or plain if (share := kept_share(case, cold)) is not None]
    if shares:
        return word(median(shares)), "server" if told else "timing"
    if run.facts.prefix_cache_enabled is False:
        return "no", "setting"
    return "unknown", None
