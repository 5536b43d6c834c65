"""A context no larger than needed: it frees memory, and is worth what then lies there.

By itself it changes no curve: depth costs what is in the context, not what would fit.
"""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.cures.pace import Change, Pace, chance, phases_slowed, slowed
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import Tried, context_lines
from twospeed.findings.observed import Observed
from twospeed.findings.placement import SLOWER, gpu_share
from twospeed.fits.interval import Interval
from twospeed.limits.ceilings import cache_bytes_per_token

SPILL_SAVED = Interval(0.3, 0.8, 0.95)
"""Part of the time that weights fetched from storage or shared memory cost.

Source: docs/physics.md, Settings: decode .05 as fast with the weights paged in.
"""
HEADROOM = 1.25
"""Context over what the request needs."""


def propose(observed: Observed) -> list[Proposal]:
    """What the freed memory would save, where something waits for it."""
    run, needed = observed.run, needed_tokens(observed)
    now = run.facts.n_ctx
    if now is not None and now <= needed:
        return []
    otherwise = f"set the context to {needed:,} tokens"
    how = (
        *context_lines(run, needed, otherwise),
        "it only pays by the memory that it frees",
    )
    tried = Tried(setting="n_ctx", old=None if now is None else str(now), new=str(needed))
    split = _more_on_card(observed, needed)
    return [
        *proposal(
            observed,
            "smaller context",
            ("placement.partial_offload",),
            split or (lambda pace: pace),
            how=how,
            tried=tried,
        ),
        *proposal(
            observed,
            "smaller context",
            ("placement.memory_spill", "placement.kv_cache_off_gpu"),
            _without_spill,
            how=how,
            tried=tried,
            assumes_cause=True,
        ),
    ]


def needed_tokens(observed: Observed) -> int:
    """A context that holds the workload's request with some room, in steps of 1,024 tokens."""
    work = observed.run.workload
    tokens = HEADROOM * (work.prompt_tokens + work.output_tokens)
    return max(-(-int(tokens) // 1024), 1) * 1024


def _more_on_card(observed: Observed, needed: int) -> Change | None:
    facts, header = observed.run.facts, observed.run.header
    share = gpu_share(facts)
    if share is None or header is None or not facts.size_bytes or not facts.n_ctx:
        return None
    each = cache_bytes_per_token(header, facts)
    if each is None:
        return None
    freed = each * (facts.n_ctx - needed) * (facts.slots or 1)
    then = min(share + max(freed, 0.0) / facts.size_bytes, 1.0)

    def seconds(on_card: float, slower: float) -> float:
        return on_card + (1.0 - on_card) * slower

    left = Interval(
        *(seconds(then, r) / seconds(share, r) for r in (SLOWER.high, SLOWER.likely, SLOWER.low))
    )

    def change(pace: Pace) -> Pace:
        factor = chance(left, "room on the card")
        return slowed(pace, step=factor, depth=factor)

    return change


def _without_spill(pace: Pace) -> Pace:
    left = 1.0 - chance(SPILL_SAVED, "spill")
    return phases_slowed(pace, prefill=left, decode=left)
