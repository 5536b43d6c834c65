"""Twice the arithmetic, or the clocks that the hardware could run at: prefill above all."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob, times
from twospeed.cures.pace import Change, Pace, chance, phases_slowed, slowed
from twospeed.cures.proposing import proposal
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

SLOPE = Interval(0.6, 0.85, 1.0)
"""Prefill speed rises with this power of arithmetic speed, inside one line of devices.

Source: docs/physics.md, Prefill: shares of the peak fall from .9 to .2 as the peak grows.
"""
OF_PREFILL = Interval(0.5, 0.9, 1.0)
OF_DECODE = Interval(0.0, 0.5, 1.0)
"""Part of a lost clock that each phase feels; memory often keeps its own."""
_CAUSES: tuple[Cause, ...] = ("prompt.large", "prefill.compute_low", "prefill.batch_too_small")


def propose(observed: Observed) -> list[Proposal]:
    """What twice the arithmetic would save, and what full clocks would."""
    how = ("a card, or a machine, with twice the arithmetic speed",)
    twice = proposal(observed, "more compute", _CAUSES, compute_times(2.0), how=how)
    return [*twice, *_full_clocks(observed)]


def compute_times(factor: float) -> Change:
    """Arithmetic of so many times the present speed."""

    def change(pace: Pace) -> Pace:
        left = factor ** -chance(SLOPE, "slope of compute")
        return slowed(pace, linear=left, bent=left)

    return change


def _full_clocks(observed: Observed) -> list[Proposal]:
    lost = lost_clock_frac(observed)
    if lost is None:
        return []

    def change(pace: Pace) -> Pace:
        prefill = 1.0 - lost * chance(OF_PREFILL, "clock of prefill")
        decode = 1.0 - lost * chance(OF_DECODE, "clock of decode")
        return phases_slowed(pace, prefill=prefill, decode=decode)

    return proposal(
        observed,
        "more compute",
        ("host.throttled",),
        change,
        how=("let it run at full clocks: power limit, power profile, cooling, dust",),
        assumes_cause=True,
    )


def lost_clock_frac(observed: Observed) -> float | None:
    """Part of the highest clock that is missing; None where no clock is told."""
    machine = observed.run.machine
    if machine is None:
        return None
    pairs = [(device.clock_hz, device.clock_max_hz) for device in machine.graphics]
    pairs.append((machine.clock_hz, machine.clock_max_hz))
    known = [1.0 - now / most for now, most in pairs if now and most and now < most]
    return max(known, default=None)


KNOB = Knob(
    key="compute",
    form="a factor such as 2",
    read=times,
    change=lambda _, factor: compute_times(factor),
    needs="nothing more",
)
