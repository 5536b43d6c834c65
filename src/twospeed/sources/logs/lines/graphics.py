"""nvidia-smi and the Windows task manager: clocks held back, memory that spilled over."""

from __future__ import annotations

import re

from msgspec.structs import replace

from twospeed.records.run import GraphicsDevice, MachineFacts
from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.numbers import NUMBER, bytes_of, number

MARKS = {b"HW Thermal Slowdown": (b"Slowdown", b"Power Cap", b"GPU memory", b"MiB /")}

_REASON = re.compile(
    r"^(HW Slowdown|HW Thermal Slowdown|SW Thermal Slowdown|HW Power Brake Slowdown|SW Power Cap)"
    r"\s*:\s*(Active|Not Active)$"
)
_ID = {
    "HW Slowdown": "hardware_slowdown",
    "HW Thermal Slowdown": "hardware_thermal",
    "SW Thermal Slowdown": "thermal",
    "HW Power Brake Slowdown": "power_brake",
    "SW Power Cap": "power_cap",
}
_MEMORY = re.compile(r"\|\s*(\d{1,9})MiB /\s*(\d{1,9})MiB\s*\|\s*(\d{1,3})%")
_SHARED = re.compile(
    rf"shared GPU memory:?\s*({NUMBER})\s*/\s*{NUMBER}\s*([KMGT]i?B)", re.IGNORECASE
)
_TEMPERATURE = re.compile(rf"GPU Current Temp\s*:\s*({NUMBER}) C")
MIB = 2**20


class Graphics:
    """One device: what is told of it."""

    def __init__(self, log: Collector) -> None:
        self._log = log
        self._device = GraphicsDevice(name="graphics card")

    def take(self, line: Line) -> bool:
        """Read one line."""
        text, device = line.text, self._device
        if (reason := _REASON.match(text)) is not None:
            if reason[2] == "Active":
                reasons = (*device.throttled_by, _ID[reason[1]])
                self._device = replace(device, throttled_by=reasons)
        elif (memory := _MEMORY.search(text)) is not None:
            self._device = replace(
                device,
                memory_used_bytes=int(memory[1]) * MIB,
                memory_total_bytes=int(memory[2]) * MIB,
                utilisation_frac=min(int(memory[3]) / 100, 1.0),
            )
        elif (shared := _SHARED.search(text)) is not None:
            used = bytes_of(shared[1], shared[2])
            self._device = replace(device, shared_memory_used_bytes=used)
        elif (warm := _TEMPERATURE.search(text)) is not None:
            self._device = replace(device, temperature_c=number(warm[1]))
        else:
            return False
        return True

    def close(self) -> None:
        """Hand over the device, if anything was told of one."""
        if self._device != GraphicsDevice(name="graphics card"):
            self._log.content.machine = MachineFacts(graphics=(self._device,))


READER = Graphics
