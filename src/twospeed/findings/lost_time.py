"""Seconds of the workload between two set-ups of a benchmark table."""

from __future__ import annotations

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
