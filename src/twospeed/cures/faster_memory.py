"""Memory of twice the bandwidth: decode, in less than proportion."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob, times
from twospeed.cures.pace import Change, Pace, chance, slowed
from twospeed.cures.proposing import proposal
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

SLOPE = Interval(0.63, 0.75, 0.86)
"""Decode speed rises with this power of bandwidth.

Source: docs/physics.md, Decode: twice the bandwidth gives 1.5 to 1.8 times the speed.
"""
_CAUSES: tuple[Cause, ...] = (
    "decode.bandwidth_bound",
    "decode.below_limit",
    "decode.depth",
    "placement.partial_offload",
    "placement.memory_spill",
    "placement.multi_device",
)


def propose(observed: Observed) -> list[Proposal]:
    """What twice the bandwidth would save."""
    how = ("a card, or a machine, with memory of twice the bandwidth",)
    return proposal(observed, "faster memory", _CAUSES, bandwidth_times(2.0), how=how)


def bandwidth_times(factor: float) -> Change:
    """Memory of so many times the present bandwidth."""

    def change(pace: Pace) -> Pace:
        left = factor ** -chance(SLOPE, "slope of bandwidth")
        return slowed(pace, step=left, depth=left)

    return change


KNOB = Knob(
    key="bandwidth",
    form="a factor such as 2",
    read=times,
    change=lambda _, factor: bandwidth_times(factor),
    needs="nothing more",
)
