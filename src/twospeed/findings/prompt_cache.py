"""A prompt that was already processed is processed again."""

from __future__ import annotations

from statistics import median

from twospeed.findings.cache_loss import Loss, loss_kind, overflow
from twospeed.findings.command_line import REUSE_OFF, is_asked
from twospeed.findings.comparison import compare
from twospeed.findings.finding import Cause, Certainty, Evidence, Finding
from twospeed.findings.observed import Observed
from twospeed.findings.reuse import CASES, HARDLY, MOSTLY, share_of
from twospeed.findings.slowness import is_undivided, prefill_is_slow
from twospeed.findings.turns import Turn, lost_turns
from twospeed.fits.interval import Interval
from twospeed.fits.phases import server_prefill
from twospeed.records.request_record import Change, Origin

ORDER = 50

REUSABLE_FRAC = Interval(0.5, 0.9, 0.97)
"""Part of a follow-up prompt that the turn before already held: an assumption, named as such."""
NOTABLE_SHARE = 0.2
"""Share of prefill from which lost reuse is worth naming."""


def find(observed: Observed) -> list[Finding]:
    """Lost reuse, where the wait is slow because of prefill. The kind is what the evidence says."""
    found = _loss(observed)
    if found is None:
        return []
    loss, costs_s = found
    cause, certainty, evidence = loss
    return [
        Finding(
            cause=cause, phase="prefill", certainty=certainty, costs_s=costs_s, evidence=evidence
        )
    ]


def reuse_is_off(observed: Observed) -> bool:
    """Whether nothing is reused: our own experiment showed it, or the log of lost turns did."""
    return observed.reuse.reused == "no" or any(
        found.cause == "prompt_cache.disabled" for found in find(observed)
    )


def reuse_saving_s(observed: Observed) -> Interval | None:
    """Seconds of prefill that reuse saves a follow-up turn of the workload's size.

    Beyond what the workload already takes from the cache; None without a prefill curve.
    """
    work, fit = observed.run.workload, observed.prefill
    if fit is None or observed.prefill_s is None:
        return None
    before = observed.prefill_s

    def saved(frac: float) -> float:
        cached = max(int(frac * work.prompt_tokens), work.cached_prompt_tokens)
        return max(before.likely - fit.seconds(work.prompt_tokens, cached).likely, 0.0)

    return REUSABLE_FRAC.through(saved)


def lost_seconds(observed: Observed) -> float:
    """Seconds of the workload's prefill that lost reuse is blamed for; 0.0 where it is not."""
    found = _loss(observed)
    return found[1] or 0.0 if found is not None else 0.0


def _loss(observed: Observed) -> tuple[Loss, float | None] | None:
    undivided = is_undivided(observed)
    if not (prefill_is_slow(observed) or undivided) or compare(observed.run.records) is not None:
        return None
    turns = lost_turns(observed.run)
    costs_s = _seconds_of(observed, turns)
    full = overflow(observed.run)
    if full is not None:
        return full, costs_s
    if turns and not undivided:
        prefill_s = observed.prefill_s.likely if observed.prefill_s else 0.0
        notable = costs_s is not None and costs_s >= NOTABLE_SHARE * prefill_s
        kind = loss_kind(observed.run, turns) if notable else None
        return None if kind is None else (kind, costs_s)
    tested = _tested(observed)
    saved = reuse_saving_s(observed)
    return None if tested is None or saved is None else (tested, saved.likely)


def _seconds_of(observed: Observed, turns: list[Turn]) -> float | None:
    """Median of what the turns spent on tokens that the turn before had processed."""
    lost = []
    for turn in turns:
        prefill = server_prefill(turn.record)
        if prefill is not None:
            again = min(turn.held_tokens, turn.prompt_tokens) - turn.cached_tokens
            lost.append(prefill.s * min(again / prefill.uncached_tokens, 1.0))
    most = observed.prefill_s.likely if observed.prefill_s is not None else None
    if not lost:
        return None
    return median(lost) if most is None else min(median(lost), most)


def _tested(observed: Observed) -> Loss | None:
    """What our own experiment showed: prompts sent again, with and without changes."""
    kept = {change: share_of(observed.reuse.cases, change, observed.prefill) for change in CASES}
    if observed.reuse.reused == "no" and not any(map(_works, kept.values())):
        return _no_reuse(observed)
    if observed.reuse.reused == "unknown":
        return None
    found = _of_edits(observed, kept)
    return None if found is None else (*found, _of_cases(observed, kept))


def _of_edits(
    observed: Observed, kept: dict[Change, float | None]
) -> tuple[Cause, Certainty] | None:
    """What is reused of a changed prompt, while a plain repeat is reused."""
    if not any(map(_works, kept.values())):
        return None
    window = observed.run.header.sliding_window if observed.run.header is not None else None
    if _is_absent(kept["end_edited"]) or (window and _is_absent(kept["middle_edited"])):
        return "prompt_cache.cannot_rewind", "inferred"
    if _works(kept["end_edited"]) and _is_absent(kept["middle_edited"]):
        return "prompt_cache.cannot_rewind", "possible"
    if _is_absent(kept["appended"]):
        return "prompt_cache.prefix_changed", "possible"
    # Going on after another conversation is a turn appended: only where that works is it evicted.
    if _works(kept["appended"]) and _is_absent(kept["returned"]):
        return "prompt_cache.evicted", "measured"
    return None


def _no_reuse(observed: Observed) -> Loss:
    facts, header = observed.run.facts, observed.run.header
    if facts.prefix_cache_enabled is False:
        return "prompt_cache.disabled", "reported", _evidence(observed)
    if is_asked(observed.run, REUSE_OFF):
        return "prompt_cache.disabled", "inferred", (*_evidence(observed), _ASKED_OFF)
    # That nothing is reused is measured; why is not.
    if header is not None and header.sliding_window:
        return "prompt_cache.cannot_rewind", "possible", _evidence(observed)
    return "prompt_cache.disabled", "possible", _evidence(observed)


_ASKED_OFF = Evidence(what="command line switches reuse off", value=True, origin="client")


def _is_absent(share: float | None) -> bool:
    return share is not None and share <= HARDLY


def _works(share: float | None) -> bool:
    return share is not None and share >= MOSTLY


def _of_cases(observed: Observed, kept: dict[Change, float | None]) -> tuple[Evidence, ...]:
    told: Origin = "server" if observed.reuse.how_known == "server" else "client"
    return tuple(
        Evidence(what=f"reused: {CASES[change]}", value=share, origin=told)
        for change, share in kept.items()
        if share is not None
    )


def _evidence(observed: Observed) -> tuple[Evidence, ...]:
    if observed.reuse.how_known == "setting":
        return (Evidence(what="prompt cache switched on", value=False, origin="server"),)
    told: Origin = "server" if observed.reuse.how_known == "server" else "client"
    evidence = [Evidence(what="same prompt sent again was reused", value="no", origin=told)]
    for case in observed.reuse.cases[:1]:
        evidence.append(
            Evidence(what="cached tokens", value=case.cached_tokens, unit="tok", origin="server")
        )
        evidence.append(
            Evidence(what="prefill of the repeat", value=case.prefill_s, unit="s", origin=told)
        )
    evidence.append(
        Evidence(
            what="part of the next prompt that stays the same",
            value=REUSABLE_FRAC.likely,
            origin="assumed",
        )
    )
    return tuple(evidence)
