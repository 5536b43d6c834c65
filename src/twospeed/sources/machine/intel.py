"""Intel's graphics devices, as the drivers i915 and xe show them.

Neither shows memory nor utilisation without the administrator's rights.

Source: Documentation/gpu/i915.rst and drivers/gpu/drm/{i915/gt/intel_gt_sysfs_pm.c,
xe/xe_gt_freq.c, xe/xe_gt_throttle.c} of Linux.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from twospeed.records.run import GraphicsDevice
from twospeed.sources.machine.drm import DrmGraphics, cards_of, in_units, link_generation, sensor
from twospeed.sources.machine.system_files import ROOT, number_of, numbered

VENDOR = "0x8086"
HEAT = ("thermal", "ratl", "thermalert")
"""Ends of the names of files that tell a temperature as reason; prochot is the board's signal."""


def open_intel(root: Path = ROOT) -> DrmGraphics | None:
    """A reader of these devices; None where there is none."""
    cards = cards_of(VENDOR, root)
    return DrmGraphics(cards, "Intel", intel_device) if cards else None


def intel_device(card: Path, name: str) -> GraphicsDevice:
    """What a card shows at this moment; of several tiles, the fastest one."""
    clock = _highest(card, "gt_act_freq_mhz", "rps_act_freq_mhz", "act_freq")
    most = _highest(card, "gt_RP0_freq_mhz", "rps_RP0_freq_mhz", "rp0_freq")
    limit = sensor(card, "power1_max", "power1_rated_max")
    return GraphicsDevice(
        name=name,
        clock_hz=clock,
        clock_max_hz=most,
        throttled_by=_reasons(card),
        power_limit_w=in_units(limit, 1e6),
        temperature_c=in_units(sensor(card, "temp1_input", "temp2_input"), 1e3),
        pcie_generation=link_generation(card),
        pcie_lanes=number_of(card / "device/current_link_width") or None,
    )


def _clock_directories(card: Path) -> Iterator[Path]:
    """Where clocks are shown: of the card (i915), and of each part of it (i915, xe)."""
    yield card
    yield from numbered(card / "gt", "gt")
    for tile in numbered(card / "device", "tile"):
        yield from (part / "freq0" for part in numbered(tile, "gt"))


def _highest(card: Path, *names: str) -> float | None:
    told = (number_of(where / name) for where in _clock_directories(card) for name in names)
    return max((megahertz * 1e6 for megahertz in told if megahertz), default=None)


def _reasons(card: Path) -> tuple[str, ...]:
    told = (
        file.name.partition("reason_")[2]
        for where in _clock_directories(card)
        for file in (*where.glob("throttle_reason_*"), *where.glob("throttle/reason_*"))
        if number_of(file)
    )
    return tuple(sorted({_reason(each) for each in told if each != "status"}))


def _reason(told: str) -> str:
    """Why a clock is below what was asked for, by the end of the file's name."""
    if told == "prochot":
        return "hardware_thermal"
    return "thermal" if told.endswith(HEAT) else "power_cap"
