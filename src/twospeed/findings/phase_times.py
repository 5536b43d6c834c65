"""Both phases of the workload's request: curves where they can be fitted, else its nearest kin."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict

from twospeed.findings.direct import direct_per_token, direct_prefill, direct_wait, lone_per_token
from twospeed.findings.table import slowest_setup, table_decode, table_prefill, table_seconds
from twospeed.fits.decode import DecodeFit, fit_decode
from twospeed.fits.interval import Interval
from twospeed.fits.observations import DecodePoint, PrefillPoint, decode_points, prefill_points
from twospeed.fits.prefill import PrefillFit, fit_prefill
from twospeed.records.request_record import Origin
from twospeed.records.run import Run, Workload


class PrefillTimes(Struct, frozen=True, kw_only=True):
    """What is known of prefill; None where nothing is."""

    prefill_seen: tuple[PrefillPoint, ...]
    prefill: PrefillFit | None
    prefill_s: Interval | None
    """Prefill of the workload's uncached prompt."""
    prefill_origin: Origin | None
    """Where prefill_s comes from; None without it."""
    prefill_tps: Interval | None


class PhaseTimes(PrefillTimes, frozen=True, kw_only=True):
    """What is known of prefill and of decode; None where nothing is."""

    decode_seen: tuple[DecodePoint, ...]
    decode: DecodeFit | None
    decode_s: Interval | None
    """Decode of the workload's whole output."""
    decode_origin: Origin | None
    """Where the time of a token comes from; None without it."""
    decode_tps: Interval | None
    """At mid-answer depth."""


def mid_answer_depth(workload: Workload) -> float:
    """Tokens in the KV cache in the middle of the workload's answer."""
    return workload.prompt_tokens + workload.output_tokens / 2


def uncached_tokens(workload: Workload) -> int:
    """Prompt tokens that prefill has to process."""
    return max(workload.prompt_tokens - workload.cached_prompt_tokens, 0)


def decode_steps(workload: Workload) -> int:
    """Steps of the workload's answer: its first token comes out of prefill."""
    return max(workload.output_tokens - 1, 0)


def phase_times(run: Run) -> PhaseTimes:
    """Seconds and speed of both phases of the workload's request."""
    seen = _decode_seen(run)
    fit = fit_decode(seen)
    per_token = _per_token(fit, seen, mid_answer_depth(run.workload))
    if per_token is None and not run.records:
        per_token = lone_per_token(seen)
    return PhaseTimes(
        **asdict(_prefill_times(run)),
        decode_seen=tuple(seen),
        decode=fit,
        decode_s=_decode_seconds(fit, per_token, run.workload),
        decode_origin=_decode_origin(fit, per_token, seen),
        decode_tps=_rate(per_token, 1.0),
    )


def _decode_origin(
    fit: DecodeFit | None, per_token: Interval | None, seen: Sequence[DecodePoint]
) -> Origin | None:
    if fit is not None:
        return "fit"
    return seen[0].origin if per_token is not None else None


def _decode_seen(run: Run) -> list[DecodePoint]:
    """Timings of requests, shared ones where there are no others, else of a benchmark table."""
    alone = decode_points(run.records, ignore_timings=run.ignore_timings)
    shared = alone or decode_points(run.records, ignore_timings=run.ignore_timings, shared=True)
    return shared or table_decode(slowest_setup(run.points))


def _prefill_seen(run: Run) -> list[PrefillPoint]:
    for shared in (False, True):
        seen = prefill_points(
            run.records,
            round_trip_s=run.round_trip_s,
            ignore_timings=run.ignore_timings,
            shared=shared,
        )
        if seen:
            return seen
    return table_prefill(slowest_setup(run.points))


def _prefill_times(run: Run) -> PrefillTimes:
    seen = _prefill_seen(run)
    fit, work = fit_prefill(seen), run.workload
    cached = work.prompt_tokens - uncached_tokens(work)
    seconds: Interval | None
    origin: Origin | None
    if fit is not None:
        seconds, origin = fit.seconds(work.prompt_tokens, cached), "fit"
    else:
        seconds, origin = _direct(run, seen, cached)
    return PrefillTimes(
        prefill_seen=tuple(seen),
        prefill=fit,
        prefill_s=seconds,
        prefill_origin=origin,
        prefill_tps=_rate(seconds, uncached_tokens(work)),
    )


def _direct(
    run: Run, seen: list[PrefillPoint], cached: int
) -> tuple[Interval | None, Origin | None]:
    """Prefill of nearly the same prompt, however short, else what its user waited for it."""
    prompt = run.workload.prompt_tokens
    if not run.records:
        seconds = table_seconds(seen, prompt - cached)
        return seconds, seen[0].origin if seconds else None
    tiny = prefill_points(
        run.records,
        round_trip_s=run.round_trip_s,
        ignore_timings=run.ignore_timings,
        fewest_tokens=1,
    )
    for points in (seen, tiny):
        seconds = direct_prefill(points, prompt, cached)
        if seconds is not None:
            return seconds, points[0].origin
    waited = direct_wait(run.records, prompt, cached)
    return waited, "client" if waited else None


def _decode_seconds(
    fit: DecodeFit | None, per_token: Interval | None, workload: Workload
) -> Interval | None:
    steps = decode_steps(workload)
    if fit is not None:
        return fit.seconds(workload.prompt_tokens, steps)
    return per_token.scaled(steps) if per_token is not None else None


def _per_token(
    fit: DecodeFit | None, seen: Sequence[DecodePoint], depth_tokens: float
) -> Interval | None:
    if fit is not None:
        return fit.per_token(depth_tokens)
    return direct_per_token(seen, depth_tokens)


def _rate(seconds: Interval | None, tokens: float) -> Interval | None:
    """Tokens per second; None for no tokens or no time, where a rate means nothing."""
    if seconds is None or tokens <= 0 or seconds.low <= 0:
        return None
    return seconds.divided_into(tokens)
