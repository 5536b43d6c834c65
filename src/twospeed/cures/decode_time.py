"""Decode seconds, split at the first answer token."""

from __future__ import annotations

from msgspec.structs import replace

from twospeed.cures.cure import Proposal
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval


def steps_of(observed: Observed) -> int:
    """Decode steps of the workload: the first token comes out of prefill."""
    return max(observed.run.workload.output_tokens - 1, 0)


def parted(proposal: Proposal, saved: Interval, observed: Observed) -> Proposal:
    """Adds decode seconds saved on every token, reasoning first: that part shortens the wait."""
    share = observed.reasoning.share or 0.0
    return replace(
        proposal,
        wait_s=_sum(proposal.wait_s, saved.scaled(share)),
        answer_s=_sum(proposal.answer_s, saved.scaled(1.0 - share)),
    )


def _sum(one: Interval, other: Interval) -> Interval:
    return Interval(one.low + other.low, one.likely + other.likely, one.high + other.high)
