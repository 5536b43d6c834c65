"""Half the answer: fewer tokens at the same speed, the deepest ones fall away."""

from __future__ import annotations

from dataclasses import replace

from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob, amount, of
from twospeed.cures.pace import Change, Factor, Pace
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import Tried, request_line
from twospeed.findings.budget import largest_wait_part
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.findings.phase_times import decode_steps

FEWER_TOKENS: tuple[Cause, ...] = (
    "decode.output_long",
    "decode.bandwidth_bound",
    "decode.below_limit",
    "decode.depth",
    "decode.sampling",
    "decode.draft_rejected",
    "placement.partial_offload",
    "placement.memory_spill",
    "placement.multi_device",
    "host.throttled",
)
"""Causes that cost each token of the output, whatever they are: fewer tokens cost less."""


def propose(observed: Observed) -> list[Proposal]:
    """What half the answer would save; nothing where decode was not measured."""
    work, run = observed.run.workload, observed.run
    half = str(work.output_tokens // 2)
    if decode_steps(work) * (1.0 - (observed.reasoning.share or 0.0)) < 2.0:
        return []
    cap = request_line(run, "max_output_tokens", half, otherwise=f"stop after {half} tokens")
    reasons_long = largest_wait_part(observed.budget) == "reasoning_s"
    late = reasons_long and observed.stream.verdict != "slow"
    return proposal(
        observed,
        "shorter answer",
        FEWER_TOKENS,
        answer_of(0.5),
        how=(f"ask for brevity, and {cap}",),
        tried=Tried(setting="max_output_tokens", old=str(work.output_tokens), new=half),
        blocked="after_the_wait" if late else None,
    )


def answer_of(part: Factor) -> Change:
    """So much of the answer; its last steps, the deepest ones, fall away."""

    def change(pace: Pace) -> Pace:
        return replace(pace, answer_steps=pace.answer_steps * part)

    return change


def _asked(observed: Observed, wanted: float) -> Change:
    """An output of so many tokens: the reasoning stays, the answer takes what is left."""
    steps = max(of(wanted, observed.run.workload.output_tokens) - 1.0, 0.0)

    def change(pace: Pace) -> Pace:
        before = pace.reasoning_steps + pace.answer_steps
        reasoning = pace.reasoning_steps.clip(max=steps)
        known = before * 0.0 + steps
        return replace(pace, reasoning_steps=reasoning, answer_steps=known - reasoning)

    return change


KNOB = Knob(
    key="output",
    form="a part such as 0.5, or tokens",
    read=amount,
    change=_asked,
    needs="nothing more",
    rank=4,
)
