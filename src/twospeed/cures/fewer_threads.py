"""As many threads as there are real cores: more of them wait for each other at every operation."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob, whole
from twospeed.cures.pace import Change, Pace, chance, phases_slowed
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import Tried, change_line, present_value
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

_CAUSES: tuple[Cause, ...] = ("host.threads", "host.contention")
PREFILL_SHARE = Interval(0.0, 0.25, 1.0)
"""Saving on prefill over that on decode.

Source: measured, docs/physics.md, Settings: four and eight threads on two cores, decode 2.0 and 3.4
times as slow, prefill 1.05 and 1.4 times.
"""


def propose(observed: Observed) -> list[Proposal]:
    """What the fitting number of threads would save; nothing where one of the two is unknown."""
    now, cores = threads_now(observed), cores_for(observed)
    if now is None or cores is None:
        return []
    fitting = str(min(now, cores))
    change = threads_of(observed, int(fitting)) or (lambda pace: pace)
    how = (
        change_line(observed.run, "threads", fitting, otherwise=f"use {fitting} threads"),
        f"{now} threads now, {cores} real cores",
    )
    tried = Tried(setting="threads", old=str(now), new=fitting)
    return proposal(observed, "fewer threads", _CAUSES, change, how=how, tried=tried)


def threads_of(observed: Observed, wanted: int) -> Change | None:
    """So many threads in place of more than there are cores; None where it cannot be priced."""
    now, cores = threads_now(observed), cores_for(observed)
    if now is None or cores is None or not 0 < cores <= wanted or now < wanted:
        return None
    if now <= cores or now == wanted:
        return lambda pace: pace
    saved = saved_frac(now / wanted)

    def change(pace: Pace) -> Pace:
        of_decode = chance(saved, "threads")
        prefill = 1.0 - of_decode * chance(PREFILL_SHARE, "threads of prefill")
        decode = 1.0 - of_decode
        return phases_slowed(pace, prefill=prefill, decode=decode)

    return change


def saved_frac(crowding: float) -> Interval:
    """Part of decode that is saved where so many threads stood on each core.

    Each thread gets 1 / crowding of a core at best, and all wait for the last one. Beside busy
    cores far more is lost (20 to 50 times, docs/physics.md).
    """
    likely = 1.0 - 1.0 / crowding
    return Interval(0.4 * likely, likely, 1.0 - 0.4 / crowding)


def threads_now(observed: Observed) -> int | None:
    """Threads that compute, as the runtime or its command line says."""
    told = present_value(observed.run, "threads")
    return observed.run.facts.threads or (int(told) if told and told.isdecimal() else None)


def cores_for(observed: Observed) -> int | None:
    """Real, fast cores that the server may use; None where nobody tells."""
    machine = observed.run.machine
    if machine is None:
        return None
    allowed = None if machine.server is None else machine.server.allowed_cores
    known = (machine.performance_cores, machine.physical_cores, allowed, machine.logical_cores)
    return min((cores for cores in known if cores), default=None)


KNOB = Knob(
    key="threads",
    form="a number",
    read=whole,
    change=threads_of,
    needs="more threads than cores now (other changes of threads need a measurement)",
)
