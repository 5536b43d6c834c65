"""From a trial, or from two sessions, to the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from twospeed.cures.sessions import SessionResult
from twospeed.cures.trial_result import TrialResult
from twospeed.fits.paired import ERROR, PHASES, Comparison, Phase
from twospeed.records.run import Source, Workload
from twospeed.report import verdict_words as words
from twospeed.report.build import source_part, workload_part
from twospeed.report.numbers import percent, tokens
from twospeed.report.verdict import (
    ArmKind,
    ArmPart,
    Change,
    Method,
    PhasePart,
    PhaseParts,
    PredictionPart,
    Verdict,
    VerdictConditions,
)

MOST_DRIFT = 0.05
"""A machine that changes its speed by more than this share is worth a word."""
MOST_LOAD_APART = 0.10


class About(NamedTuple):
    """What is known before anything was measured."""

    arms: tuple[ArmPart, ArmPart]
    workload: Workload
    made_at: str
    twospeed_version: str


def arm_part(
    name: str, kind: ArmKind, source: Source, settings: Mapping[str, str], facts: Mapping[str, Any]
) -> ArmPart:
    """One arm of the document."""
    return ArmPart(
        name=name,
        kind=kind,
        source=source_part(source),
        settings=dict(settings),
        facts=dict(facts),
    )


def verdict_of_trial(result: TrialResult, about: About, *, failure: str | None = None) -> Verdict:
    """What interleaved pairs say.

    Args:
        result: of the trial.
        about: arms and workload.
        failure: message of the request that failed last, if the trial ended by errors.
    """
    conditions = VerdictConditions(
        host_load=result.host_load,
        disturbed_pairs=result.disturbed_pairs,
        wild_pairs=result.wild_pairs,
        drift=result.drift,
        output_tokens_ratio=result.output_tokens_ratio,
        prompt_tokens_ratio=result.prompt_tokens_ratio,
        trusted=2 * result.disturbed_pairs <= len(result.pairs),
        warnings=tuple(_trial_warnings(result, about, failure)),
    )
    bare = _verdict(about, "pairs", _parts(result.phases, result.seconds), conditions)
    return replace(
        bare,
        clock=result.clock,
        measured_prompt_tokens=result.main_tokens,
        lengths=result.lengths,
        pairs=result.pairs,
        renewed_every_pair=result.renewed_every_pair,
        why_stopped=result.why_stopped,
        seconds_needed=result.seconds_needed,
        complete=result.why_stopped in ("settled", "budget"),
    )


def verdict_of_sessions(
    result: SessionResult,
    about: About,
    *,
    loads: tuple[float | None, float | None],
    prediction: PredictionPart | None,
    complete: bool,
    warnings: Sequence[str] = (),
) -> Verdict:
    """What a saved run and a new one say.

    Args:
        result: of the comparison.
        about: arms and workload.
        loads: share of the processors in other programs' use, then and now.
        prediction: scored, or None where none was asked for.
        complete: the new run was not interrupted.
        warnings: of the conditions of both runs.
    """
    ratio, then_s = result.phases["workload"].ratio, result.before_s
    now_s = then_s * ratio if then_s is not None and ratio is not None else None
    doubts = [*_load_warning(loads), *warnings]
    conditions = VerdictConditions(
        host_load=loads[1],
        drift=result.drift,
        trusted=not doubts,
        warnings=(*([] if complete else [words.INTERRUPTED]), words.SESSIONS, *doubts),
    )
    parts = _parts(result.phases, {"workload": (then_s, now_s)})
    return replace(
        _verdict(about, "sessions", parts, conditions),
        clock=result.clock,
        prediction=prediction,
        why_stopped="budget" if complete else "interrupted",
        complete=complete,
    )


def _verdict(
    about: About, method: Method, phases: PhaseParts, conditions: VerdictConditions
) -> Verdict:
    """The document without what only one of the methods knows."""
    return Verdict(
        twospeed_version=about.twospeed_version,
        made_at=about.made_at,
        verdict=words.sentence(phases),
        method=method,
        confidence=1.0 - ERROR,
        arms=about.arms,
        workload=workload_part(about.workload),
        phases=phases,
        changes=changes(about.arms),
        conditions=conditions,
    )


def changes(arms: tuple[ArmPart, ArmPart]) -> tuple[Change, ...]:
    """In what the arms differ: software, model, settings, facts; each difference once."""
    first, second = (_told(arm) for arm in arms)
    found: dict[tuple[str | None, str | None], Change] = {}
    for what in dict.fromkeys([*first, *second]):
        values = first.get(what), second.get(what)
        if values[0] != values[1]:
            # A fact that repeats a setting under the runtime's own name comes after it.
            found.setdefault(values, Change(what=what, first=values[0], second=values[1]))
    return tuple(found.values())


def _told(arm: ArmPart) -> dict[str, str]:
    source = arm.source
    told: dict[str, Any] = {
        "runtime": source.runtime,
        "runtime version": source.runtime_version,
        "model": source.model,
        **arm.settings,
        **arm.facts,
    }
    return {what: str(value) for what, value in told.items() if value is not None}


def _parts(
    phases: Mapping[Phase, Comparison],
    seconds: Mapping[Phase, tuple[float | None, float | None]],
) -> PhaseParts:
    parts = {}
    for phase in PHASES:
        first_s, second_s = seconds.get(phase, (None, None))
        parts[phase] = PhasePart(**asdict(phases[phase]), first_s=first_s, second_s=second_s)
    return PhaseParts(**parts)


def _trial_warnings(result: TrialResult, about: About, failure: str | None) -> list[str]:
    """What speaks against relying on it: how the trial went, what the arms are, the pairs."""
    said = []
    if result.why_stopped == "interrupted":
        said.append(words.INTERRUPTED)
    if failure is not None:
        said.append(words.ERRORS.format(message=failure.rstrip(".")))
    return [*said, *_arm_warnings(result, about), *_pair_warnings(result)]


def _arm_warnings(result: TrialResult, about: About) -> list[str]:
    said = []
    if _rests_on_one_start(result, about):
        said.append(words.ONE_START)
    if result.output_tokens_ratio is not None:
        said.append(words.OUTPUT.format(ratio=f"{result.output_tokens_ratio:.2f}"))
    if result.prompt_tokens_ratio is not None:
        said.append(words.PROMPT.format(ratio=f"{result.prompt_tokens_ratio:.2f}"))
    if about.arms[0].source.runtime != about.arms[1].source.runtime:
        said.append(words.OTHER_RUNTIME)
    if result.main_tokens < about.workload.prompt_tokens:
        counted = {"tokens": tokens(result.main_tokens)}
        said.append(words.SHORTENED.format(**counted, wanted=tokens(about.workload.prompt_tokens)))
    return said


def _pair_warnings(result: TrialResult) -> list[str]:
    said = []
    if result.disturbed_pairs:
        counts = {"some": result.disturbed_pairs, "all": len(result.pairs)}
        said.append(words.DISTURBED.format(**counts))
    drift = max(result.drift.values(), key=abs, default=0.0)
    if abs(drift) > MOST_DRIFT:
        way = "slower" if drift > 0 else "faster"
        said.append(words.DRIFT.format(percent=words.percent(drift), way=way))
    if result.wild_pairs:
        said.append(words.WILD.format(count=result.wild_pairs))
    return said


def _rests_on_one_start(result: TrialResult, about: About) -> bool:
    """Whether a difference is shown between two servers that ran all the while."""
    shown = any(one.verdict in ("faster", "slower") for one in result.phases.values())
    one_server = {arm.kind for arm in about.arms} == {"request"}
    return shown and not one_server and not result.renewed_every_pair


def _load_warning(loads: tuple[float | None, float | None]) -> list[str]:
    then, now = loads
    if then is None or now is None or abs(then - now) <= MOST_LOAD_APART:
        return []
    return [words.LOAD_DIFFERS.format(first=percent(then), second=percent(now))]
