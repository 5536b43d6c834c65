"""What two set-ups of a benchmark table show, and the seconds of the workload between them."""

from __future__ import annotations

from twospeed.findings.finding import Cause, Evidence, Finding, SlowPhase
from twospeed.findings.observed import Observed
from twospeed.findings.phase_times import decode_steps, uncached_tokens
from twospeed.findings.table import Contrast, Phase
from twospeed.records.run import Workload


def lost_seconds(
    workload: Workload, pair: Contrast, phases: tuple[Phase, ...] = ("prefill", "decode")
) -> float | None:
    """Seconds that the faster set-up saves on one request; None where it saves nothing."""
    tokens: dict[Phase, int] = {
        "prefill": uncached_tokens(workload),
        "decode": decode_steps(workload),
    }
    lost = 0.0
    for phase in phases:
        slow, fast = pair.slow.tps(phase), pair.fast.tps(phase)
        if slow and fast:
            lost += max(tokens[phase] / slow - tokens[phase] / fast, 0.0)
    return lost or None


def shown_by_rows(
    observed: Observed,
    pair: Contrast,
    cause: Cause,
    evidence: tuple[Evidence, ...],
    *,
    phase: SlowPhase | None = None,
) -> Finding:
    """The finding of two set-ups that differ in nothing but what the cause says.

    Args:
        observed: the run.
        pair: both set-ups.
        cause: what the slower one has to its disadvantage.
        evidence: how they differ.
        phase: the only phase that it touches; None for whichever is slow.
    """
    phases: tuple[Phase, ...] = ("decode",) if phase == "decode" else ("prefill", "decode")
    return Finding(
        cause=cause,
        phase=phase or observed.slow_phase,
        certainty="measured",
        costs_s=lost_seconds(observed.run.workload, pair, phases),
        evidence=evidence,
    )
