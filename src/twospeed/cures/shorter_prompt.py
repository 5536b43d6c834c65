"""Half the prompt: prefill shrinks, and with the depth a little of decode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob, amount, of
from twospeed.cures.pace import Change, Factor, Pace, constant
from twospeed.cures.proposing import proposal
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed

_CAUSES: tuple[Cause, ...] = (
    "prompt.large",
    "prefill.compute_low",
    "prefill.batch_too_small",
    "decode.depth",
    "prompt_cache.disabled",
    "prompt_cache.cannot_rewind",
    "prompt_cache.context_overflow",
    "placement.kv_cache_off_gpu",
)


def propose(observed: Observed) -> list[Proposal]:
    """What half the prompt would save; nothing where neither phase was measured."""
    work = observed.run.workload
    half = work.prompt_tokens // 2
    if half < 1:
        return []
    how = (
        f"send {half:,} tokens instead of {work.prompt_tokens:,}",
        "fewer files and tool definitions, a shorter system prompt, older turns summarised",
    )
    return proposal(observed, "shorter prompt", _CAUSES, prompt_of(half), how=how)


def prompt_of(tokens: Factor) -> Change:
    """A prompt of so many tokens; what was cached of it stays, as far as it is there."""

    def change(pace: Pace) -> Pace:
        prompt = constant(1.0) * tokens
        cached = np.minimum(pace.cached_tokens, prompt)
        return replace(pace, prompt_tokens=prompt, cached_tokens=cached)

    return change


KNOB = Knob(
    key="prompt",
    form="a part such as 0.5, or tokens",
    read=amount,
    change=lambda observed, wanted: prompt_of(of(wanted, observed.run.workload.prompt_tokens)),
    needs="nothing more",
    rank=1,
)
