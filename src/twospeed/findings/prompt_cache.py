"""A prompt that was already processed is processed again."""

from __future__ import annotations

from twospeed.findings.budget import largest_wait_part
from twospeed.findings.finding import Cause, Certainty, Evidence, Finding
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval
from twospeed.records.request_record import Origin

ORDER = 50

REUSABLE_FRAC = Interval(0.5, 0.9, 0.97)
"""Part of a follow-up prompt that the turn before already held: an assumption, named as such."""


def find(observed: Observed) -> list[Finding]:
    """No reuse was seen, and the wait is slow because of prefill."""
    if observed.wait.verdict != "slow" or largest_wait_part(observed.budget) != "prefill_s":
        return []
    saved = reuse_saving_s(observed)
    if observed.reuse.reused != "no" or saved is None:
        return []
    cause, certainty = _cause(observed)
    return [
        Finding(
            cause=cause,
            phase="prefill",
            certainty=certainty,
            costs_s=saved.likely,
            evidence=_evidence(observed),
        )
    ]


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


def _cause(observed: Observed) -> tuple[Cause, Certainty]:
    facts, header = observed.run.facts, observed.run.header
    if facts.prefix_cache_enabled is False:
        return "prompt_cache.disabled", "reported"
    # That nothing is reused is measured; why is not.
    if header is not None and header.sliding_window:
        return "prompt_cache.cannot_rewind", "possible"
    return "prompt_cache.disabled", "possible"


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
