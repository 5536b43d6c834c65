"""Nothing between server and client that holds tokens back."""

from __future__ import annotations

from dataclasses import replace

from twospeed.cures.cure import Proposal
from twospeed.cures.pace import Pace, chance
from twospeed.cures.proposing import proposal
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

SAVED_FRAC = Interval(0.5, 0.9, 1.0)
"""Part of the unexplained wait that is the buffer's."""


def propose(observed: Observed) -> list[Proposal]:
    """The part of the wait that nothing else explains."""
    if (observed.budget.unexplained_s or 0.0) <= 0.0:
        return []
    return proposal(
        observed,
        "stop buffering",
        ("network.buffered_stream",),
        _at_once,
        how=(
            "switch off buffering in the proxy (nginx: proxy_buffering off;)",
            "or ask the server itself, past the proxy",
        ),
        assumes_cause=True,
    )


def _at_once(pace: Pace) -> Pace:
    return replace(pace, held_s=pace.held_s * (1.0 - chance(SAVED_FRAC, "held back")))
