"""What computes, for changes that act one way on a processor and another on a graphics card."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval
from twospeed.limits.ceilings import runs_on_processor

Computes = Literal["processor", "graphics", "unknown"]


class Factors(Struct, frozen=True, kw_only=True):
    """The range of one factor for each kind of hardware; below 1 is faster."""

    processor: Interval
    graphics: Interval

    def on(self, computes: Computes) -> Interval:
        """The range for this kind; where it is unknown, one that holds both."""
        if computes == "processor":
            return self.processor
        if computes == "graphics":
            return self.graphics
        one, other = self.processor, self.graphics
        return Interval(
            min(one.low, other.low), (one.likely + other.likely) / 2, max(one.high, other.high)
        )


def computes_on(observed: Observed) -> Computes:
    """What computes, as the runtime says or the machine leaves no choice."""
    facts = observed.run.facts
    if facts.backend == "cpu" or runs_on_processor(facts, observed.run.probe):
        return "processor"
    on_card = facts.layers_offloaded or facts.size_vram_bytes or facts.gpu_found
    return "graphics" if facts.backend or on_card else "unknown"


def or_nothing(factor: Interval) -> Interval:
    """The range of a change that may have been made already."""
    return Interval(min(factor.low, 1.0), (factor.likely + 1.0) / 2, max(factor.high, 1.0))
