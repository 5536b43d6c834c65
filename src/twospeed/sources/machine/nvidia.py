"""NVIDIA's graphics devices, through the management library of their driver (NVML).

Source: docs.nvidia.com/deploy/nvml-api; numbers of its enumerations are part of that interface.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from twospeed.records.run import GraphicsDevice
from twospeed.sources.machine.system_files import ROOT

Nvml = Any
"""The module `pynvml` of nvidia-ml-py, which has no types."""

STREAMING_CLOCK, MEMORY_CLOCK, ON_THE_CHIP = 1, 2, 0
REASONS = {
    0x002: "clock_setting",
    0x004: "power_cap",
    0x008: "hardware_slowdown",
    0x010: "sync_boost",
    0x020: "thermal",
    0x040: "hardware_thermal",
    0x080: "power_brake",
    0x100: "display_clock",
}
"""Why a clock is below its maximum. Bit 0x001, idling, is none."""
PROCESS_LISTS = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")


def nvidia_seems_present(root: Path = ROOT) -> bool:
    """Whether a driver of NVIDIA shows itself: its device nodes, or its library under Windows."""
    if any((root / "dev").glob("nvidia[0-9]*")):
        return True
    if (root / "dev/dxg").exists():  # Linux inside Windows
        return any((root / "usr/lib/wsl/lib").glob("libnvidia-ml.so*"))
    windows = os.environ.get("SystemRoot")  # noqa: SIM112  (spelled so by Windows)
    return windows is not None and (Path(windows) / "System32" / "nvml.dll").exists()


def pynvml() -> Nvml:
    """The module, imported only where there is something to ask it.

    Raises:
        ImportError: nvidia-ml-py is not installed.
    """
    return import_module("pynvml")


def open_nvidia(load: Callable[[], Nvml] = pynvml) -> NvidiaGraphics | None:
    """A reader of these devices; None without the library, its driver, or a device."""
    try:
        nvml = load()
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(n) for n in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError:
        return None
    return NvidiaGraphics(nvml, handles) if handles else None


class NvidiaGraphics:
    """All devices of NVIDIA. A question that one does not answer leaves its field unknown."""

    def __init__(self, nvml: Nvml, handles: list[Any]) -> None:
        """Read from an initialised library.

        Args:
            nvml: the module.
            handles: of the devices.
        """
        self._nvml = nvml
        self._handles = handles

    def look(self) -> tuple[GraphicsDevice, ...]:
        """Each device at this moment."""
        return tuple(self._device(handle, None) for handle in self._handles)

    def look_closely(self, server: frozenset[int]) -> tuple[GraphicsDevice, ...]:
        """Each device at this moment, with the memory that others than the server use.

        Args:
            server: ids of the server's processes.
        """
        return tuple(
            self._device(handle, self._others_bytes(handle, server)) for handle in self._handles
        )

    def close(self) -> None:
        """Let go of the library."""
        self._ask("nvmlShutdown")

    def _ask(self, call: str, *arguments: object) -> Any:  # noqa: ANN401  (whatever it answers)
        """The answer to one question; None where device, driver or module cannot say."""
        function = getattr(self._nvml, call, None)
        if function is None:
            return None
        try:
            return function(*arguments)
        except self._nvml.NVMLError:
            return None

    def _device(self, handle: object, others_bytes: int | None) -> GraphicsDevice:
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        use = self._ask("nvmlDeviceGetUtilizationRates", handle)
        name = self._ask("nvmlDeviceGetName", handle)
        return GraphicsDevice(
            name=name.decode() if isinstance(name, bytes) else str(name or "NVIDIA"),
            memory_total_bytes=None if memory is None else memory.total,
            memory_used_bytes=None if memory is None else memory.used,
            memory_used_by_others_bytes=others_bytes,
            utilisation_frac=None if use is None else use.gpu / 100,
            clock_hz=self._hertz("nvmlDeviceGetClockInfo", handle, STREAMING_CLOCK),
            clock_max_hz=self._hertz("nvmlDeviceGetMaxClockInfo", handle, STREAMING_CLOCK),
            throttled_by=self._reasons(handle),
            power_w=self._watts("nvmlDeviceGetPowerUsage", handle),
            power_limit_w=self._watts("nvmlDeviceGetEnforcedPowerLimit", handle),
            temperature_c=self._ask("nvmlDeviceGetTemperature", handle, ON_THE_CHIP),
            pcie_generation=self._ask("nvmlDeviceGetCurrPcieLinkGeneration", handle),
            pcie_lanes=self._ask("nvmlDeviceGetCurrPcieLinkWidth", handle),
            bandwidth_bytes_per_s=self._bandwidth(handle),
        )

    def _hertz(self, call: str, handle: object, domain: int) -> float | None:
        megahertz = self._ask(call, handle, domain)
        return megahertz * 1e6 if megahertz else None

    def _watts(self, call: str, handle: object) -> float | None:
        milliwatts = self._ask(call, handle)
        return None if milliwatts is None else milliwatts / 1000

    def _bandwidth(self, handle: object) -> float | None:
        """Two transfers per tick of the memory clock as NVML counts it, over the whole bus.

        RTX 3090: 2 · 9,751 MHz · 384 bit = 936 GB/s; H100: 2 · 2,619 MHz · 5,120 bit = 3.35 TB/s.
        """
        hertz = self._hertz("nvmlDeviceGetMaxClockInfo", handle, MEMORY_CLOCK)
        bits = self._ask("nvmlDeviceGetMemoryBusWidth", handle)
        return 2 * hertz * bits / 8 if hertz and bits else None

    def _reasons(self, handle: object) -> tuple[str, ...]:
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons", handle)
        if bits is None:  # the name until 2023
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return tuple(reason for bit, reason in REASONS.items() if (bits or 0) & bit)

    def _others_bytes(self, handle: object, server: frozenset[int]) -> int | None:
        """Memory of others; None when some is not told, or none of the processes is the server's.

        A container sees process ids that are not its own: then nobody can be told apart.
        """
        lists = [self._ask(call, handle) for call in PROCESS_LISTS]
        used: dict[int, int | None] = {
            process.pid: process.usedGpuMemory for each in lists for process in each or ()
        }
        if None in used.values() or not server & used.keys():
            return None
        return sum(size for pid, size in used.items() if size and pid not in server)
