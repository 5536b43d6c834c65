"""Half the hidden reasoning: decode that nobody reads, and that the wait consists of."""

from __future__ import annotations

from dataclasses import replace

from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob, amount
from twospeed.cures.pace import Change, Pace
from twospeed.cures.proposing import proposal
from twospeed.cures.shorter_answer import FEWER_TOKENS
from twospeed.cures.spelling import request_line
from twospeed.findings.observed import Observed
from twospeed.findings.phase_times import decode_steps

_OTHERWISE = "lower the reasoning effort, or switch thinking off"


def propose(observed: Observed) -> list[Proposal]:
    """What half the reasoning would save; nothing where there is none, or none was seen."""
    if decode_steps(observed.run.workload) * (observed.reasoning.share or 0.0) < 2.0:
        return []
    line = request_line(observed.run, "reasoning", otherwise=_OTHERWISE)
    how = (line, "counted with half of it left")
    return proposal(observed, "less reasoning", FEWER_TOKENS, reasoning_of(0.5), how=how)


def reasoning_of(part: float) -> Change:
    """So much of the reasoning; the answer then begins at a lower depth."""

    def change(pace: Pace) -> Pace:
        return replace(pace, reasoning_steps=pace.reasoning_steps * part)

    return change


def _read(text: str) -> float:
    part = -amount("0" if text == "off" else text)
    if not 0.0 <= part <= 1.0:
        raise ValueError(text)
    return part


KNOB = Knob(
    key="reasoning",
    form="off, or a part such as 0.5",
    read=_read,
    change=lambda observed, part: reasoning_of(part) if observed.reasoning.share else None,
    needs="hidden reasoning in the output",
    rank=4,
)
