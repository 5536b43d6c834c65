"""A saved run against a new one: weaker than pairs, and told as such.

Both runs are held against the curves of the earlier one, so that lengths need not be equal and only
the difference in speed is left. Between two sessions the machine may have changed its mood; the
interval is widened for that (see `fits.paired.compare_sessions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log

from msgspec import Struct
from msgspec.structs import replace

from twospeed.findings.observed import Observed, observe
from twospeed.findings.phase_times import decode_steps
from twospeed.fits.interval import Interval
from twospeed.fits.observations import request_speeds
from twospeed.fits.paired import Comparison, Phase, compare_sessions, shown_drift, whole
from twospeed.records.request_record import RequestRecord
from twospeed.records.run import Run, Workload


class SessionResult(Struct, frozen=True, kw_only=True):
    """What two separate runs show."""

    phases: dict[Phase, Comparison]
    before_s: float | None
    """Seconds of the workload's request then."""
    saved_s: Interval | None
    """Seconds saved on it now."""
    clock: str
    drift: dict[Phase, float]
    """By which share the new run became slower, beyond its scatter."""


class _Parts(Struct, frozen=True, kw_only=True):
    """Seconds of one request, as the earlier curves have it."""

    prefill_s: float
    decode_s: float
    fixed_s: float
    """Model load and queue."""

    @property
    def total_s(self) -> float:
        return self.prefill_s + self.decode_s + self.fixed_s


def compare_runs(before: Run, now: Run, after: Workload, *, reuse: bool = False) -> SessionResult:
    """Judge a new run against a saved one.

    Args:
        before: with enough requests for both curves.
        now: repeats part of its prompt lengths.
        after: the request that is left to do now (see `request_after`).
        reuse: the new prompts were mostly known to the server: what counts is their whole wait.
    """
    then = observe(before)
    today = observe(replace(now, workload=before.workload))
    known = _prefills_of_known(then, now) if reuse else _prefills(then, today)
    seen: dict[Phase, tuple[list[float], list[float]]] = {
        "prefill": (_prefills(then, then), known),
        "decode": (_decodes(then, then), _decodes(then, today)),
    }
    drift = {phase: shown_drift(values[1]) for phase, values in seen.items()}
    phases = {
        phase: compare_sessions(*values, drift[phase])
        if reuse or _clock(then) == _clock(today)
        else _unknown()
        for phase, values in seen.items()
    }
    first = _parts(then, before.workload)
    left = _parts(then, replace(after, cached_prompt_tokens=0) if reuse else after)
    workload = _unknown() if first is None or left is None else _whole(phases, first, left, today)
    return SessionResult(
        phases={**phases, "workload": workload},
        before_s=first.total_s if first else None,
        saved_s=_saved(workload, first.total_s) if first else None,
        clock=_clock(then),
        drift={phase: exp(change) - 1.0 for phase, change in drift.items()},
    )


def _whole(
    phases: Mapping[Phase, Comparison], first: _Parts, left: _Parts, today: Observed
) -> Comparison:
    """The whole request: what is left of it, at the new speeds, against what it was."""
    return whole(
        [(phases["prefill"], left.prefill_s), (phases["decode"], left.decode_s)],
        fixed_s=(today.budget.load_s or 0.0) + (today.budget.queue_s or 0.0),
        first_s=first.total_s,
    )


def _saved(workload: Comparison, before_s: float) -> Interval | None:
    if workload.ratio is None or workload.low is None or workload.high is None:
        return None
    low, likely, high = (
        before_s * (1.0 - ratio) for ratio in (workload.high, workload.ratio, workload.low)
    )
    return Interval(low, likely, high)


def _parts(then: Observed, work: Workload) -> _Parts | None:
    """What a request would have taken in the earlier run."""
    if then.prefill is None or then.decode is None:
        return None
    return _Parts(
        prefill_s=then.prefill.seconds(work.prompt_tokens, work.cached_prompt_tokens).likely,
        decode_s=then.decode.seconds(work.prompt_tokens, decode_steps(work)).likely,
        fixed_s=(then.budget.load_s or 0.0) + (then.budget.queue_s or 0.0),
    )


def _prefills(then: Observed, seen: Observed) -> list[float]:
    """Log seconds of each prefill against the earlier curve, in the order of measuring."""
    fit = then.prefill
    if fit is None:
        return []
    points = sorted(seen.prefill_seen, key=lambda point: point.record)
    return [log(p.s / fit.seconds(p.prompt_tokens, p.cached_tokens).likely) for p in points]


def _prefills_of_known(then: Observed, now: Run) -> list[float]:
    """The same for prompts that were mostly known, against what they would take unknown."""
    if then.prefill is None:
        return []
    waits = [(record, _wait_s(record, now)) for record in now.records if record.step == "reuse"]
    return [
        log(wait_s / then.prefill.seconds(record.counts.prompt_tokens or 0).likely)
        for record, wait_s in waits
        if wait_s and record.counts.prompt_tokens
    ]


def _wait_s(record: RequestRecord, run: Run) -> float | None:
    speeds = request_speeds(
        record, round_trip_s=run.round_trip_s, ignore_timings=run.ignore_timings
    )
    if speeds.prefill_s is not None or speeds.ttft_s is None:
        return speeds.prefill_s
    return max(speeds.ttft_s - (run.round_trip_s or 0.0), 0.0)


def _decodes(then: Observed, seen: Observed) -> list[float]:
    fit = then.decode
    if fit is None:
        return []
    points = sorted(seen.decode_seen, key=lambda point: point.record)
    return [log(p.per_token_s / fit.per_token(p.depth_tokens).likely) for p in points]


def _clock(seen: Observed) -> str:
    origins = {p.origin for p in seen.prefill_seen} | {p.origin for p in seen.decode_seen}
    return " and ".join(sorted(origins))


def _unknown() -> Comparison:
    return Comparison(verdict="cannot tell", why="not_measured")
