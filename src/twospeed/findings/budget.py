"""Where the seconds of one workload request go, and which phase makes it slow.

`load + queue + network + prefill + reasoning + answer + unexplained = total`, each part known or
None. The wait is everything before the first answer token.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from twospeed.findings.finding import SlowPhase
from twospeed.fits.interval import Interval
from twospeed.records.run import Goals, Run

Verdict = Literal["slow", "fine", "unknown"]

WAIT_PARTS = ("load_s", "queue_s", "network_s", "prefill_s", "reasoning_s", "unexplained_s")
"""Parts of the budget that come before the first answer token."""


class TimeBudget(Struct, frozen=True, kw_only=True):
    """Seconds of one workload request by cause; None where a part cannot be seen."""

    load_s: float | None = None
    queue_s: float | None = None
    network_s: float | None = None
    prefill_s: float | None = None
    reasoning_s: float | None = None
    answer_s: float | None = None
    unexplained_s: float | None = None
    """Median of what is left of the TTFT; may be slightly negative: parts are measured apart."""
    total_s: float | None = None
    """Sum of the known parts."""


class Wait(Struct, frozen=True, kw_only=True):
    """Seconds until the first answer token, against the goal."""

    seconds: float | None
    goal_s: float
    verdict: Verdict
    near_goal: bool = False
    """True when the interval holds the goal, so that the verdict could go either way."""


class Stream(Struct, frozen=True, kw_only=True):
    """Tokens per second at mid-answer depth, against the goal."""

    tps: float | None
    goal_tps: float
    verdict: Verdict
    near_goal: bool = False


def time_budget(
    run: Run,
    *,
    prefill_s: float | None,
    decode_s: float | None,
    reasoning_frac: float | None,
    load_s: float | None,
    queue_s: float | None,
    unexplained_s: float | None,
) -> TimeBudget:
    """Puts the parts of the workload's request together.

    Args:
        run: for the round trip.
        prefill_s: seconds of prefill at the workload's uncached prompt.
        decode_s: seconds of decode over the workload's output.
        reasoning_frac: share of the output that is hidden reasoning (0 … 1); None if unknown.
        load_s: seconds of model load; None where it cannot be seen.
        queue_s: seconds waited for a slot; None where it cannot be seen.
        unexplained_s: seconds of the TTFT that no part explains.
    """
    reasoning_s = answer_s = None
    if decode_s is not None:
        answer_s = decode_s * (1.0 - (reasoning_frac or 0.0))
        reasoning_s = None if reasoning_frac is None else decode_s * reasoning_frac
    parts = {
        "load_s": load_s,
        "queue_s": queue_s,
        "network_s": run.round_trip_s,
        "prefill_s": prefill_s,
        "reasoning_s": reasoning_s,
        "answer_s": answer_s,
        "unexplained_s": unexplained_s,
    }
    return TimeBudget(**parts, total_s=known_sum(parts.values()))


def known_sum(parts: Iterable[float | None]) -> float | None:
    """Sum of the parts that are known; None when none is."""
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def wait_seconds(budget: TimeBudget, goals: Goals) -> float | None:
    """Seconds until the first answer token: the sum of the known parts before it.

    Without prefill the sum is only a lower bound, and it is told only when that bound already
    misses the goal.
    """
    seconds = known_sum(getattr(budget, part) for part in WAIT_PARTS)
    if budget.prefill_s is not None or (seconds is not None and seconds > goals.wait_s):
        return seconds
    return None


def judge_wait(
    budget: TimeBudget, goals: Goals, *, prefill: Interval | None, answer_seen: bool
) -> Wait:
    """Is the wait slow?

    Args:
        budget: seconds of the workload's request.
        goals: from where on it counts as slow.
        prefill: interval of the prefill part; its uncertainty is that of the wait.
        answer_seen: False when reasoning arrived and no answer ever did, so that the wait is
            longer than anything measured and cannot be called fine.
    """
    seconds = wait_seconds(budget, goals)
    verdict: Verdict = "unknown"
    near = False
    if seconds is not None:
        verdict = "slow" if seconds > goals.wait_s else "fine"
        if prefill is not None:
            rest = seconds - prefill.likely
            near = rest + prefill.low <= goals.wait_s <= rest + prefill.high
    if verdict == "fine" and not answer_seen:
        return Wait(seconds=None, goal_s=goals.wait_s, verdict="unknown")
    return Wait(seconds=seconds, goal_s=goals.wait_s, verdict=verdict, near_goal=near)


def judge_stream(decode_tps: Interval | None, goals: Goals) -> Stream:
    """Is the stream slow?"""
    if decode_tps is None:
        return Stream(tps=None, goal_tps=goals.stream_tps, verdict="unknown")
    return Stream(
        tps=decode_tps.likely,
        goal_tps=goals.stream_tps,
        verdict="slow" if decode_tps.likely < goals.stream_tps else "fine",
        near_goal=decode_tps.low <= goals.stream_tps <= decode_tps.high,
    )


_PHASE_OF_PART: dict[str, SlowPhase] = {
    "load_s": "load",
    "queue_s": "queue",
    "network_s": "network",
    "prefill_s": "prefill",
    "reasoning_s": "decode",
    "unexplained_s": "unknown",
}
_WITH_SLOW_STREAM: dict[SlowPhase, SlowPhase] = {"prefill": "both", "unknown": "decode"}


def slow_phase(budget: TimeBudget, wait: Wait, stream: Stream) -> SlowPhase:
    """Which phase to name: the largest part of a slow wait, decode for a slow stream.

    "none" only when both were measured and are fine: a blind tool never says healthy.
    """
    if wait.verdict == "slow":
        phase = _PHASE_OF_PART[largest_wait_part(budget)]
        return _WITH_SLOW_STREAM.get(phase, phase) if stream.verdict == "slow" else phase
    if stream.verdict == "slow":
        return "decode"
    return "none" if wait.verdict == stream.verdict == "fine" else "unknown"


def largest_wait_part(budget: TimeBudget) -> str:
    """Name of the budget field that holds most of the wait."""
    return max(WAIT_PARTS, key=lambda part: getattr(budget, part) or 0.0)


def inconclusive(phase: SlowPhase, *, trusted: bool) -> bool:
    """True when the measurement answers nothing that can be acted on (exit status 4)."""
    return phase == "unknown" or not trusted
