"""The machine, or the batch, for this request alone."""

from __future__ import annotations

from twospeed.cures.cure import CureName, Proposal
from twospeed.cures.pace import Change, Pace, chance, phases_slowed
from twospeed.cures.proposing import proposal
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

LEAST_LOAD = 0.05
CROWDED_LOAD = 0.25
"""From here on some thread shares its core, and all others wait for it."""
CROWDED_SAVED = 0.95
"""Source: docs/physics.md: two threads on two busy cores, 20 to 50 times as slow."""
_CURE: CureName = "stop the neighbour"


def propose(observed: Observed) -> list[Proposal]:
    """What other programs, and other requests, take away."""
    return [*_programs(observed), *_requests(observed)]


def _programs(observed: Observed) -> list[Proposal]:
    load, machine = observed.run.conditions.host_load, observed.run.machine
    if load is None or load < LEAST_LOAD:
        return []
    busiest = () if machine is None else machine.busiest[:2]
    named = f" ({', '.join(busiest)})" if busiest else ""
    high = CROWDED_SAVED if load >= CROWDED_LOAD else load
    saved = Interval(0.5 * load, min(load, CROWDED_SAVED), max(high, load))
    return proposal(
        observed,
        _CURE,
        ("host.contention", "placement.memory_spill", "host.throttled"),
        _alone(saved, Interval(1.0, 1.0, 1.0)),
        how=(
            f"stop the other programs{named}",
            f"they used {load * 100:.0f} % of the processors",
        ),
        assumes_cause=True,
    )


def _requests(observed: Observed) -> list[Proposal]:
    others = observed.run.conditions.other_requests
    alone = 1.0 - 1.0 / (1.0 + (others or 1))
    return proposal(
        observed,
        _CURE,
        ("server.shared_batch",),
        # Reading the weights once for all costs little; computing for all costs in proportion.
        _alone(Interval(0.1 * alone, 0.5 * alone, alone), Interval(0.2, 1.0, 1.0)),
        how=("send the other requests at another time, or to another server",),
        assumes_cause=True,
    )


def _alone(saved: Interval, prefill_share: Interval) -> Change:
    def change(pace: Pace) -> Pace:
        of_decode = chance(saved, "neighbours")
        decode = 1.0 - of_decode
        prefill = 1.0 - of_decode * chance(prefill_share, "neighbours of prefill")
        return phases_slowed(pace, prefill=prefill, decode=decode)

    return change
