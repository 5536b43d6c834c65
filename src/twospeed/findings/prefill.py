"""Prefill makes the wait slow: a big prompt at healthy speed, or a slow prefill."""

from __future__ import annotations

from twospeed.findings.budget import largest_wait_part
from twospeed.findings.finding import Cause, Certainty, Evidence, Finding
from twospeed.findings.machine_share import share_evidence
from twospeed.findings.observed import Observed
from twospeed.findings.phase_times import uncached_tokens
from twospeed.findings.prompt_cache import reuse_saving_s
from twospeed.fits.interval import Interval

ORDER = 60

SMALL_PROMPT_TOKENS = 512
"""A wait on fewer tokens is not explained by the size of the prompt."""
SMALL_BATCH_TOKENS = 32
"""Batches up to this leave most of a processor idle.

Source: a llama-bench sweep in which a prompt of 512 took 15 times as long at 16 as at 512.
"""
NO_BATCH_GAIN = 1.5
"""Prefill hardly faster than decode per token: reading many at once brings nothing."""


def find(observed: Observed) -> list[Finding]:
    """The narrowest cause that the numbers support."""
    if observed.wait.verdict != "slow" or largest_wait_part(observed.budget) != "prefill_s":
        return []
    if observed.prefill_s is None or observed.prefill_tps is None:
        return []
    cause, certainty = _cause(observed)
    costs_s = _costs_s(observed, cause, observed.prefill_s)
    if costs_s <= 0.0:
        return []
    evidence = _evidence(observed, observed.prefill_tps)
    return [
        Finding(
            cause=cause, phase="prefill", certainty=certainty, costs_s=costs_s, evidence=evidence
        )
    ]


def _cause(observed: Observed) -> tuple[Cause, Certainty]:
    limits = observed.limits
    batch = _batch_tokens(observed)
    if batch is not None and batch <= SMALL_BATCH_TOKENS:
        return "prefill.batch_too_small", "inferred"
    if limits.prefill_normal is not None and limits.prefill_of_limit_frac is not None:
        low = limits.prefill_of_limit_frac.value < limits.prefill_normal.low
        return ("prefill.compute_low" if low else "prompt.large"), "inferred"
    small = uncached_tokens(observed.run.workload) < SMALL_PROMPT_TOKENS
    flat = _gain_over_decode(observed) < NO_BATCH_GAIN
    return ("prefill.compute_low" if small or flat else "prompt.large"), "possible"


def _gain_over_decode(observed: Observed) -> float:
    """How many times faster than decode a prompt token is; infinite when either is unknown."""
    if observed.prefill_tps is None or observed.decode_tps is None:
        return float("inf")
    return observed.prefill_tps.likely / observed.decode_tps.likely


def _batch_tokens(observed: Observed) -> int | None:
    facts = observed.run.facts
    known = [tokens for tokens in (facts.n_batch, facts.n_ubatch) if tokens]
    return min(known) if known else None


def _costs_s(observed: Observed, cause: Cause, prefill: Interval) -> float:
    """Seconds that this cause is to blame for.

    Below the normal range: what the low end of normal would save. A large prompt: all of prefill,
    except the part that `prompt_cache` blames on missing reuse.
    """
    limits = observed.limits
    if cause == "prefill.compute_low":
        if limits.prefill_normal is None or limits.prefill_of_limit_frac is None:
            return prefill.likely
        return prefill.likely * (
            1.0 - limits.prefill_of_limit_frac.value / limits.prefill_normal.low
        )
    if cause == "prompt.large" and observed.reuse.reused == "no":
        repeated = reuse_saving_s(observed)
        return prefill.likely - (repeated.likely if repeated is not None else 0.0)
    return prefill.likely


def _evidence(observed: Observed, prefill_tps: Interval) -> tuple[Evidence, ...]:
    work, limits = observed.run.workload, observed.limits
    evidence = [
        Evidence(what="prompt", value=work.prompt_tokens, unit="tok", origin="assumed"),
        Evidence(what="prefill speed", value=prefill_tps.likely, unit="tok/s", origin="fit"),
        *share_evidence("prefill", limits.prefill_of_limit_frac, limits.prefill_normal),
    ]
    batch = _batch_tokens(observed)
    if batch is not None:
        evidence.append(Evidence(what="batch", value=batch, unit="tok", origin="server"))
    return tuple(evidence)
