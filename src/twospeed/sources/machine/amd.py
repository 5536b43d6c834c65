"""AMD's graphics devices, as the driver amdgpu shows them.

Source: Documentation/gpu/amdgpu/driver-misc.rst and thermal.rst of Linux.
"""

from __future__ import annotations

import re
from pathlib import Path

from twospeed.records.run import GraphicsDevice
from twospeed.sources.machine.drm import DrmGraphics, cards_of, in_units, link_generation, sensor
from twospeed.sources.machine.system_files import ROOT, number_of, text_of

VENDOR = "0x1002"


def open_amd(root: Path = ROOT) -> DrmGraphics | None:
    """A reader of these devices; None where there is none."""
    cards = cards_of(VENDOR, root)
    return DrmGraphics(cards, "AMD", amd_device) if cards else None


def amd_device(card: Path, name: str) -> GraphicsDevice:
    """What a card shows at this moment."""
    device = card / "device"
    levels = shader_clocks_hz(text_of(device / "pp_dpm_sclk"))
    return GraphicsDevice(
        name=name,
        memory_total_bytes=number_of(device / "mem_info_vram_total"),
        memory_used_bytes=number_of(device / "mem_info_vram_used"),
        shared_memory_used_bytes=number_of(device / "mem_info_gtt_used"),
        utilisation_frac=in_units(number_of(device / "gpu_busy_percent"), 100),
        clock_hz=sensor(card, "freq1_input") or levels[0],
        clock_max_hz=levels[1],
        power_w=in_units(sensor(card, "power1_average", "power1_input"), 1e6),
        power_limit_w=in_units(sensor(card, "power1_cap"), 1e6),
        temperature_c=in_units(sensor(card, "temp1_input"), 1e3),
        pcie_generation=link_generation(card),
        pcie_lanes=number_of(device / "current_link_width") or None,
    )


def shader_clocks_hz(text: str | None) -> tuple[float | None, float | None]:
    """The level that is in use and the highest one, in Hz, from lines such as `1: 2124Mhz *`."""
    found = re.findall(r"^\w+: (\d+)Mhz( \*)?", text or "", re.MULTILINE | re.IGNORECASE)
    levels = [(int(megahertz) * 1e6, bool(chosen)) for megahertz, chosen in found if int(megahertz)]
    current = next((hertz for hertz, chosen in levels if chosen), None)
    return current, max((hertz for hertz, _ in levels), default=None)
