"""What a trial shows, with all that speaks against it.

Pairs during which other programs were at work are left out. When too few are left, all are taken;
then only a difference of more than 10 % counts, and only if the undisturbed pairs point the same
way: a neighbour may take a verdict away, never turn it round. Where they were at work all along,
both arms met the same, and a difference of more than 3 % counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from twospeed.cures.pair import Pair, Reading, log_ratio, log_ratios, phase_seconds
from twospeed.cures.trial import Trial, TrialStop
from twospeed.fits.paired import (
    FEWEST_PAIRS,
    PHASE_ERROR,
    PHASES,
    Comparison,
    Phase,
    compare_pairs,
    error_of,
    pairs_needed,
    wild_places,
)
from twospeed.fits.ranks import paired_bounds, trend
from twospeed.records.run import Workload

DISTURBED_MARGIN = log(1.10)
ALL_ALONG_MARGIN = log(1.03)
LENGTH_PHASES: tuple[Phase, Phase] = ("prefill", "decode")
LENGTHS_DIFFER = 0.02
"""Answers or prompts that differ by more than this share in length are not the same work."""


class LengthResult(Struct, frozen=True, kw_only=True):
    """What the pairs of one prompt length show."""

    prompt_tokens: int
    prefill: Comparison
    decode: Comparison


class PairRow(Struct, frozen=True, kw_only=True):
    """One pair: ratios of second / first seconds."""

    number: int
    prompt_tokens: int
    first_sent: int
    prefill: float | None
    decode: float | None
    workload: float | None
    disturbed: bool
    host_load: float | None


class TrialResult(Struct, frozen=True, kw_only=True):
    """Everything that the pairs say."""

    phases: dict[Phase, Comparison]
    seconds: dict[Phase, tuple[float | None, float | None]]
    """Median of either arm: per token for prefill and decode, of a whole request for workload."""
    clock: str
    lengths: tuple[LengthResult, ...]
    """Shorter prompts; empty while there are too few pairs of them."""
    pairs: tuple[PairRow, ...]
    main_tokens: int
    disturbed_pairs: int
    wild_pairs: int
    drift: dict[Phase, float]
    """By which share both arms together became slower over the trial."""
    output_tokens_ratio: float | None
    """Second / first length of the answers where they differ; None where they do not."""
    prompt_tokens_ratio: float | None
    host_load: float | None
    renewed_every_pair: bool
    """Each pair met servers that were started for it."""
    why_stopped: TrialStop
    seconds_needed: float | None
    """Budget after which everything unsettled would be within 3 %."""


def result_of(trial: Trial) -> TrialResult:
    """Judge a trial, whether it ended or was stopped."""
    reading, workload = trial.reading(), trial.plan.workload
    clean, every = trial.main_pairs(), trial.main_pairs(disturbed=None)
    phases = trial.settled_with or _phases_at_end(trial, clean, every)
    judged = clean if len(clean) >= FEWEST_PAIRS else every
    wild: set[int] = set()
    for phase in LENGTH_PHASES:
        wild.update(wild_places(log_ratios(judged, phase, reading, workload)))
    return TrialResult(
        phases=phases,
        seconds={phase: _medians(judged, phase, reading, workload) for phase in PHASES},
        clock=reading.clock,
        lengths=_lengths(trial, reading, phases),
        pairs=tuple(_row(pair, reading, workload) for pair in trial.pairs),
        main_tokens=trial.plan.main_tokens,
        disturbed_pairs=sum(pair.disturbed for pair in trial.pairs),
        wild_pairs=len(wild),
        drift={phase: _drift(every, phase, reading, workload) for phase in PHASES},
        output_tokens_ratio=_count_ratio(trial.pairs, "output_tokens"),
        prompt_tokens_ratio=_count_ratio(trial.pairs, "prompt_tokens"),
        host_load=_host_load(trial.pairs),
        renewed_every_pair=0 < trial.renewals == len(trial.pairs) - 1,
        why_stopped=trial.why_stopped,
        seconds_needed=_seconds_needed(trial, phases),
    )


def _phases_at_end(
    trial: Trial, clean: Sequence[Pair], every: Sequence[Pair]
) -> dict[Phase, Comparison]:
    error = error_of(trial.looks_made, at_end=True)
    if len(clean) >= FEWEST_PAIRS or len(clean) == len(every):
        return trial.compare(clean, error)
    centres = {
        phase: median(values)
        for phase in PHASES
        if (values := log_ratios(clean, phase, trial.reading(), trial.plan.workload))
    }
    found = trial.compare(every, error)
    return {phase: _disturbed(one, centres.get(phase)) for phase, one in found.items()}


def _disturbed(found: Comparison, undisturbed: float | None) -> Comparison:
    """A comparison of which most pairs were disturbed.

    Args:
        found: what all pairs show.
        undisturbed: log-ratio of the others; None when there are none.
    """
    if found.ratio is None or found.low is None or found.high is None:
        return found
    if undisturbed is None and found.verdict == "no difference shown":
        return found
    margin = ALL_ALONG_MARGIN if undisturbed is None else DISTURBED_MARGIN
    beyond = log(found.low) > margin or log(found.high) < -margin
    agrees = undisturbed is None or undisturbed * log(found.ratio) > 0
    if found.verdict in ("faster", "slower") and beyond and agrees:
        return found
    return replace(found, verdict="cannot tell", why=found.why or "disturbed")


def _lengths(
    trial: Trial, reading: Reading, phases: dict[Phase, Comparison]
) -> tuple[LengthResult, ...]:
    """The shorter lengths; they share a phase's error, and only speak when the phase has spoken."""
    found, others = [], trial.plan.other_tokens
    for tokens in others:
        pairs = [p for p in trial.pairs if p.prompt_tokens == tokens and not p.disturbed]
        error = PHASE_ERROR / len(others)
        prefill, decode = (
            _beside(
                compare_pairs(log_ratios(pairs, phase, reading, trial.plan.workload), error),
                phases[phase],
            )
            for phase in LENGTH_PHASES
        )
        if prefill.low is not None or decode.low is not None:
            found.append(LengthResult(prompt_tokens=tokens, prefill=prefill, decode=decode))
    return tuple(found)


def _beside(found: Comparison, main: Comparison) -> Comparison:
    """A difference at one length alone is not among the promised ones."""
    if found.verdict in ("faster", "slower") and main.verdict not in ("faster", "slower"):
        return replace(found, verdict="cannot tell", why="alone")
    return found


def _medians(
    pairs: Sequence[Pair], phase: Phase, reading: Reading, workload: Workload
) -> tuple[float | None, float | None]:
    first, second = (phase_seconds(pairs, arm, phase, reading, workload) for arm in (0, 1))
    return (median(first) if first else None, median(second) if second else None)


def _drift(pairs: Sequence[Pair], phase: Phase, reading: Reading, workload: Workload) -> float:
    """Change of both arms' mean log seconds from the first pair to the last."""
    arms = [phase_seconds(pairs, arm, phase, reading, workload) for arm in (0, 1)]
    if len(arms[0]) != len(arms[1]) or len(arms[0]) < FEWEST_PAIRS:
        return 0.0
    both = [(log(one) + log(two)) / 2 for one, two in zip(*arms, strict=True)]
    return exp(trend(both)) - 1.0


def _count_ratio(pairs: Sequence[Pair], count: str) -> float | None:
    counts = [tuple(getattr(s.record.counts, count) for s in pair.samples) for pair in pairs]
    logs = [log(second / first) for first, second in counts if first and second]
    bounds = paired_bounds(logs, PHASE_ERROR)
    if bounds is None or bounds.low <= 0.0 <= bounds.high:
        return None
    return exp(bounds.likely) if abs(bounds.likely) > log(1.0 + LENGTHS_DIFFER) else None


def _host_load(pairs: Sequence[Pair]) -> float | None:
    loads = [s.conditions.host_load for pair in pairs for s in pair.samples]
    known = [load for load in loads if load is not None]
    return sum(known) / len(known) if known else None


def _row(pair: Pair, reading: Reading, workload: Workload) -> PairRow:
    ratios = {}
    for phase in PHASES:
        value = log_ratio(pair, phase, reading, workload)
        ratios[phase] = None if value is None else exp(value)
    return PairRow(
        number=pair.number,
        prompt_tokens=pair.prompt_tokens,
        first_sent=pair.first_sent,
        disturbed=pair.disturbed,
        host_load=_host_load([pair]),
        **ratios,
    )


def _seconds_needed(trial: Trial, phases: dict[Phase, Comparison]) -> float | None:
    """What the slowest phase to settle would take at this pace; None if time is not what lacks."""
    pair_s = trial.pair_s.get(trial.plan.main_tokens)
    if pair_s is None or trial.why_stopped in ("settled", "errors"):
        return None
    needed = [pairs_needed(one) or FEWEST_PAIRS for one in phases.values()]
    count = len(trial.main_pairs(disturbed=None))
    more = max(needed) - count
    return trial.elapsed_s + more * pair_s * 4 / 3 if more > 0 else None
