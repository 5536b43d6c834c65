"""What holds the clocks down, as graphics device and processor say it."""

from __future__ import annotations

from msgspec import Struct

from twospeed.records.run import MachineFacts

SERIOUS = ("thermal", "slowdown", "brake", "prochot", "heat")
"""Words of reasons that no healthy device gives; a power cap at full load is usual."""
LOW_CLOCK_FRAC = 0.6
"""A clock below this share of its maximum, at work, is low whatever the reason is called."""


class Throttled(Struct, frozen=True, kw_only=True):
    """A part of the machine that runs below its clocks."""

    part: str
    reasons: tuple[str, ...]
    clock_frac: float | None
    """Clock at work / maximum; None where it is not told."""


def throttled_graphics(machine: MachineFacts | None) -> Throttled | None:
    """The first graphics device that holds back for a serious reason."""
    for device in machine.graphics if machine else ():
        share = clock_frac(device.clock_hz, device.clock_max_hz)
        if device.throttled_by and (_is_serious(device.throttled_by) or _is_low(share)):
            return Throttled(part=device.name, reasons=device.throttled_by, clock_frac=share)
    return None


def throttled_processor(machine: MachineFacts | None) -> Throttled | None:
    """The processor, where it was throttled during the run or its clock is kept low."""
    if machine is None:
        return None
    share = clock_frac(machine.clock_hz, machine.clock_max_hz)
    reasons = machine.throttled_by
    counted = bool(machine.throttle_events)
    if not (counted or _is_serious(reasons) or (reasons and _is_low(share))):
        return None
    return Throttled(
        part="processor", reasons=reasons or ("throttling was counted",), clock_frac=share
    )


def clock_frac(clock_hz: float | None, most_hz: float | None) -> float | None:
    """Share of the highest clock; None where either is not told."""
    return clock_hz / most_hz if clock_hz and most_hz else None


def _is_serious(reasons: tuple[str, ...]) -> bool:
    return any(word in reason.lower() for reason in reasons for word in SERIOUS)


def _is_low(share: float | None) -> bool:
    return share is not None and share < LOW_CLOCK_FRAC
