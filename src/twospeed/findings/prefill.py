"""Prefill makes the wait slow: a big prompt at healthy speed, or a slow prefill."""

from __future__ import annotations

from twospeed.findings.batches import (
    SMALL_BATCH_TOKENS,
    SMALL_STEP_TOKENS,
    batch_loss,
    seen_step,
    told_batch,
)
from twospeed.findings.comparison import compare
from twospeed.findings.finding import Cause, Certainty, Evidence, Finding
from twospeed.findings.machine_share import share_evidence
from twospeed.findings.observed import Observed
from twospeed.findings.phase_times import uncached_tokens
from twospeed.findings.prompt_cache import lost_seconds
from twospeed.findings.slowness import prefill_is_slow
from twospeed.fits.interval import Interval
from twospeed.limits.ceilings import runs_on_processor
from twospeed.records.run import Run

ORDER = 60

SMALL_PROMPT_TOKENS = 512
"""A wait on fewer tokens is not explained by the size of the prompt."""
NO_BATCH_GAIN = 1.5
"""Prefill hardly faster than decode per token: reading many at once brings nothing."""
GPU_BATCH_GAIN = 10.0
"""On a graphics card a prompt token costs far less than this part of a decode step.

Source: docs/physics.md: prefill of 512 reaches 20 to 90 times decode on every measured card.
"""


def find(observed: Observed) -> list[Finding]:
    """The narrowest cause that the numbers support."""
    if not prefill_is_slow(observed):
        return []
    by_rows = batch_loss(observed.run)
    if by_rows is not None:
        ratio = Evidence(
            what="a larger batch reads faster by",
            value=by_rows.ratio,
            unit="times",
            origin="server",
        )
        size = Evidence(what="batch", value=by_rows.tokens, unit="tok", origin="server")
        cause: Cause = "prefill.batch_too_small"
        return [_finding(cause, "measured", by_rows.seconds, (size, ratio))]
    compared = compare(observed.run.records)
    if compared is not None and compared.phase == "prefill":
        what = "the same prompt was read faster by"
        ratio = Evidence(what=what, value=compared.ratio, unit="times", origin="server")
        return [_finding("prefill.compute_low", "inferred", compared.seconds, (ratio,))]
    return _by_speed(observed)


def _by_speed(observed: Observed) -> list[Finding]:
    if observed.prefill_s is None or observed.prefill_tps is None:
        return []
    cause, certainty = _cause(observed)
    if cause == "prompt.large" and not observed.run.records:
        return []  # the rows of a table are no prompts of a user
    evidence = _evidence(observed, observed.prefill_tps)
    told = [(cause, _costs_s(observed, cause, observed.prefill_s))]
    if _is_large_too(observed, cause):
        told.append(("prompt.large", observed.prefill_s.likely - told[0][1]))
    return [_finding(one, certainty, costs_s, evidence) for one, costs_s in told if costs_s > 0.0]


def _is_large_too(observed: Observed, cause: Cause) -> bool:
    """Whether a prompt read below normal speed would also take long at normal speed."""
    if cause != "prefill.compute_low" or observed.limits.prefill_normal is None:
        return False
    large = uncached_tokens(observed.run.workload) >= SMALL_PROMPT_TOKENS
    return large and bool(observed.run.records) and lost_seconds(observed) == 0.0


def _finding(
    cause: Cause, certainty: Certainty, costs_s: float | None, evidence: tuple[Evidence, ...]
) -> Finding:
    return Finding(
        cause=cause, phase="prefill", certainty=certainty, costs_s=costs_s, evidence=evidence
    )


def _cause(observed: Observed) -> tuple[Cause, Certainty]:
    limits, run = observed.limits, observed.run
    gain = _gain_over_decode(observed)
    batch, step = told_batch(run), seen_step(run)
    if batch is not None and batch.tokens <= SMALL_BATCH_TOKENS:
        return "prefill.batch_too_small", "inferred"
    if step is not None and _is_small(step.tokens, gain):
        return "prefill.batch_too_small", "inferred"
    if limits.prefill_normal is not None and limits.prefill_of_limit_frac is not None:
        low = limits.prefill_of_limit_frac.value < limits.prefill_normal.low
        return ("prefill.compute_low" if low else "prompt.large"), "inferred"
    small = bool(run.records) and uncached_tokens(run.workload) < SMALL_PROMPT_TOKENS
    flat = gain < (GPU_BATCH_GAIN if _may_have_a_card(run) else NO_BATCH_GAIN)
    return ("prefill.compute_low" if small or flat else "prompt.large"), "possible"


def _is_small(step_tokens: int, gain: float) -> bool:
    """Whether steps are so small that they are to blame: tiny, or small and of little use."""
    return step_tokens <= SMALL_BATCH_TOKENS or (
        step_tokens < SMALL_STEP_TOKENS and gain < GPU_BATCH_GAIN
    )


def _may_have_a_card(run: Run) -> bool:
    """A card is in use; a log that does not name a processor may come from one."""
    facts = run.facts
    if runs_on_processor(facts, run.probe) or facts.backend == "cpu":
        return False
    told = facts.backend is not None or facts.layers_offloaded or facts.size_vram_bytes
    return bool(told) or (bool(run.records) and run.source.kind in ("log", "recording"))


def _gain_over_decode(observed: Observed) -> float:
    """How many times faster than decode a prompt token is; infinite when either is unknown."""
    if observed.prefill_tps is None or observed.decode_tps is None:
        return float("inf")
    return observed.prefill_tps.likely / observed.decode_tps.likely


def _costs_s(observed: Observed, cause: Cause, prefill: Interval) -> float:
    """Seconds that this cause is to blame for.

    Below the normal range: what the low end of normal would save. Else all of prefill, except the
    part that `prompt_cache` blames on missing reuse.
    """
    limits = observed.limits
    normal, share = limits.prefill_normal, limits.prefill_of_limit_frac
    if cause == "prefill.compute_low" and normal is not None and share is not None:
        return prefill.likely * (1.0 - share.value / normal.low)
    if cause in ("prompt.large", "prefill.compute_low"):
        return prefill.likely - lost_seconds(observed)
    return prefill.likely


def _evidence(observed: Observed, prefill_tps: Interval) -> tuple[Evidence, ...]:
    work, limits = observed.run.workload, observed.limits
    evidence = [
        Evidence(what="prompt", value=work.prompt_tokens, unit="tok", origin="assumed"),
        Evidence(what="prefill speed", value=prefill_tps.likely, unit="tok/s", origin="fit"),
        *share_evidence("prefill", limits.prefill_of_limit_frac, limits.prefill_normal),
    ]
    batch = told_batch(observed.run) or seen_step(observed.run)
    if batch is not None:
        evidence.append(Evidence(what="batch", value=batch.tokens, unit="tok", origin=batch.origin))
    return tuple(evidence)
