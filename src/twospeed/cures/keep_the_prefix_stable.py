"""Only appending to the prompt, so that what was read once need not be read again."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.cures.proposing import proposal
from twospeed.cures.turn_reuse_on import reused
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.findings.prompt_cache import REUSABLE_FRAC, reuse_is_off

_CAUSES: tuple[Cause, ...] = (
    "prompt_cache.prefix_changed",
    "prompt_cache.cannot_rewind",
    "prompt_cache.context_overflow",
    "prompt.large",
    "prefill.compute_low",
    "prefill.batch_too_small",
)


def propose(observed: Observed) -> list[Proposal]:
    """What reuse would save from the second turn on, where the runtime keeps prompts at all."""
    off = reuse_is_off(observed)
    return proposal(
        observed,
        "keep the prefix stable",
        _CAUSES,
        reused(REUSABLE_FRAC),
        how=_how(observed),
        blocked="reuse_is_off" if off and not _cut_back_is_the_trouble(observed) else None,
    )


def _cut_back_is_the_trouble(observed: Observed) -> bool:
    """Whether the model's state can only be extended: appending is then what is reused."""
    header = observed.run.header
    return header is not None and bool(header.sliding_window)


def _how(observed: Observed) -> tuple[str, ...]:
    same = f"{REUSABLE_FRAC.likely * 100:.0f} %"
    how = [
        f"only append to the prompt; counted with {same} of it unchanged",
        "no clock, random id or changing tool list early in it",
    ]
    if observed.reuse.reused == "unknown":
        how.append("whether this runtime reuses a prompt was not seen; check that first")
    return tuple(how)
