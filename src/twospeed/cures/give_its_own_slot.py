"""A slot for each conversation: none waits for another, none pushes another's prompt out."""

from __future__ import annotations

from dataclasses import replace

from twospeed.cures.cure import CureName, Proposal
from twospeed.cures.pace import Pace, chance
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import Tried, change_line
from twospeed.cures.turn_reuse_on import reused
from twospeed.findings.observed import Observed
from twospeed.findings.prompt_cache import REUSABLE_FRAC
from twospeed.fits.interval import Interval

QUEUE_SAVED_FRAC = Interval(0.5, 1.0, 1.0)
"""A second slot shares the machine: half of the wait may come back as slower work."""
_OTHERWISE = "raise the number of requests that the server works on at once"
_CURE: CureName = "give the conversation its own slot"


def propose(observed: Observed) -> list[Proposal]:
    """What is saved by not queueing, and by a prompt that nothing pushes out."""
    slots = (observed.run.facts.slots or 1) + 1
    old = None if observed.run.facts.slots is None else str(observed.run.facts.slots)
    how = (
        change_line(observed.run, "parallel_slots", str(slots), otherwise=_OTHERWISE),
        "slots may share one context: give it as much for each",
        "send background requests (titles, tags) to another server or slot",
    )
    tried = Tried(setting="parallel_slots", old=old, new=str(slots))
    found = []
    if observed.budget.queue_s:
        found += proposal(observed, _CURE, ("server.queue",), _without_queue, how=how, tried=tried)
    found += proposal(
        observed,
        _CURE,
        ("prompt_cache.evicted",),
        reused(REUSABLE_FRAC),
        how=how,
        tried=tried,
        assumes_cause=True,
    )
    return found


def _without_queue(pace: Pace) -> Pace:
    left = 1.0 - chance(QUEUE_SAVED_FRAC, "queue saved")
    return replace(pace, queue_s=pace.queue_s * left)
