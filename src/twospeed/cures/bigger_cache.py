"""Room for what was read: more cached conversations, a longer context, a state that is kept."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import Tried, change_line, context_lines
from twospeed.cures.turn_reuse_on import reused
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.findings.prompt_cache import REUSABLE_FRAC

CACHE_MIB = 8192
"""What llama-server keeps by default; it is proposed where less is set."""
SMALLEST_CONTEXT = 4096


def propose(observed: Observed) -> list[Proposal]:
    """What is saved by a prompt that is still there at the next turn."""
    run = observed.run
    context = 2 * (run.facts.n_ctx or SMALLEST_CONTEXT)
    ways: tuple[tuple[Cause, str, str, str], ...] = (
        (
            "prompt_cache.evicted",
            "cache_ram_mib",
            str(CACHE_MIB),
            "raise the memory that the prompt cache may use",
        ),
        (
            "prompt_cache.context_overflow",
            "n_ctx",
            str(context),
            f"give it a context of {context:,} tokens",
        ),
        (
            "prompt_cache.cannot_rewind",
            "swa_full",
            "",
            "keep the whole state, where the runtime can (it costs memory)",
        ),
    )
    found = []
    for cause, setting, value, otherwise in ways:
        found += proposal(
            observed,
            "bigger cache",
            (cause,),
            reused(REUSABLE_FRAC),
            how=_how(observed, setting, value, otherwise),
            tried=_tried(observed, setting, value),
            assumes_cause=True,
        )
    return found


def _how(observed: Observed, setting: str, value: str, otherwise: str) -> tuple[str, ...]:
    if setting == "n_ctx":
        return context_lines(observed.run, int(value), otherwise)
    return (change_line(observed.run, setting, value, otherwise=otherwise),)


def _tried(observed: Observed, setting: str, value: str) -> Tried | None:
    if setting == "n_ctx" and observed.run.facts.n_ctx:
        return Tried(setting=setting, old=str(observed.run.facts.n_ctx), new=value)
    return Tried(setting=setting, old="off", new="on") if setting == "swa_full" else None
