"""A model of half the weights: both phases, and other answers."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.cures.pace import Pace, chance, slowed
from twospeed.cures.proposing import proposal
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

STEP = Interval(0.5, 0.6, 0.75)
"""A decode step of half the weights; a part for each layer does not shrink with them.

Source: docs/physics.md, Decode: t = o · layers + bytes / (η · bandwidth).
"""
LINEAR = Interval(0.45, 0.55, 0.7)
ATTENTION = Interval(0.5, 0.7, 0.9)
"""Layers times width shrinks less than the weights do."""
_CAUSES: tuple[Cause, ...] = (
    "decode.bandwidth_bound",
    "decode.below_limit",
    "placement.partial_offload",
    "placement.memory_spill",
    "placement.cpu_fallback",
    "placement.multi_device",
    "prefill.compute_low",
    "prompt.large",
)
_HOW = (
    "take a model of half the parameters, if its answers are good enough",
    "a mixture of experts reads fewer of its weights for each token",
)


def propose(observed: Observed) -> list[Proposal]:
    """What half the weights would save on both phases."""
    return proposal(observed, "smaller model", _CAUSES, _halved, how=_HOW)


def _halved(pace: Pace) -> Pace:
    attention = chance(ATTENTION, "attention of a smaller model")
    return slowed(
        pace,
        linear=chance(LINEAR, "prefill of a smaller model"),
        bent=attention,
        step=chance(STEP, "decode of a smaller model"),
        depth=attention,
    )
