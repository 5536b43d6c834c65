"""A summary in place of a long conversation: less to read, and less depth for every token."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.cures.pace import Pace, chance
from twospeed.cures.proposing import proposal
from twospeed.cures.shorter_prompt import prompt_of
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

KEPT_FRAC = Interval(0.1, 0.2, 0.4)
"""Length of the summary as a part of what it stands for: an assumption, named as such."""
SHORTEST_TOKENS = 1000
"""Nobody summarises less."""
_CAUSES: tuple[Cause, ...] = (
    "decode.depth",
    "prompt_cache.context_overflow",
    "prompt_cache.cannot_rewind",
    "placement.kv_cache_off_gpu",
)


def propose(observed: Observed) -> list[Proposal]:
    """What every later turn would save; writing the summary costs one long answer."""
    if observed.run.workload.prompt_tokens < SHORTEST_TOKENS:
        return []
    share = f"{KEPT_FRAC.likely * 100:.0f} %"
    how = (
        f"begin anew with a summary; counted with {share} of the length",
        "writing it takes one long answer, once",
    )
    return proposal(
        observed, "summarise and start fresh", _CAUSES, _summarised, how=how, assumes_cause=True
    )


def _summarised(pace: Pace) -> Pace:
    kept = chance(KEPT_FRAC, "length of the summary")
    return prompt_of(pace.prompt_tokens * kept)(pace)
