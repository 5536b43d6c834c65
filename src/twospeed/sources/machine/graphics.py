"""Graphics devices over a run, whoever made them: which there are, and how they were at work."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from msgspec.structs import replace

from twospeed.records.run import Blind, GraphicsDevice
from twospeed.sources.machine.amd import open_amd
from twospeed.sources.machine.apple import ON_MACOS, AppleGraphics
from twospeed.sources.machine.intel import open_intel
from twospeed.sources.machine.nvidia import nvidia_seems_present, open_nvidia
from twospeed.sources.machine.system_files import ROOT

NO_STATE = "graphics card state"


class GraphicsReader(Protocol):
    """Reads the devices of one maker, always in the same order."""

    def look(self) -> tuple[GraphicsDevice, ...]:
        """Each device at this moment, within a few milliseconds."""

    def look_closely(self, server: frozenset[int]) -> tuple[GraphicsDevice, ...]:
        """The same, and what takes longer: whose memory is in use, the server's processes known."""

    def close(self) -> None:
        """Let go of the driver."""


def graphics_devices(devices: Path = Path("/dev")) -> int | None:
    """How many devices of this machine could compute in place of its processor.

    Linux shows every usable one as a device node: NVIDIA's own, AMD's /dev/kfd, and render nodes.

    Args:
        devices: the directory of device nodes.

    Returns:
        None on other systems, where this cannot be told without a driver's library.
    """
    if sys.platform != "linux" or not devices.is_dir():
        return None
    patterns = ("nvidia[0-9]*", "kfd", "dri/renderD*", "dxg", "accel/accel*")
    return sum(len(list(devices.glob(pattern))) for pattern in patterns)


def open_readers(
    root: Path = ROOT, nvidia: Callable[[], GraphicsReader | None] = open_nvidia
) -> tuple[list[GraphicsReader], tuple[Blind, ...]]:
    """Readers of the devices that this machine has, and what stays unseen.

    Args:
        root: below it lie /dev and /sys.
        nvidia: opens the reader of NVIDIA's devices, where there seem to be some.
    """
    wanted = nvidia_seems_present(root)
    found: list[GraphicsReader | None] = [
        nvidia() if wanted else None,
        open_amd(root),
        open_intel(root),
        AppleGraphics() if ON_MACOS else None,
    ]
    readers = [reader for reader in found if reader is not None]
    if wanted and found[0] is None:
        return readers, (Blind(what=NO_STATE, needs="nvidia-ml-py and an NVIDIA driver"),)
    if not readers and graphics_devices(root / "dev"):
        return [], (Blind(what=NO_STATE, needs="a driver that shows it in /sys/class/drm"),)
    return readers, ()


class GraphicsWatch:
    """Looks at all devices from time to time, and says how they were."""

    def __init__(self, readers: Sequence[GraphicsReader]) -> None:
        """Watch the devices of these readers."""
        self._readers = readers
        self._at_work: dict[tuple[int, int], list[GraphicsDevice]] = defaultdict(list)
        self._between: dict[tuple[int, int], list[GraphicsDevice]] = defaultdict(list)

    def look(self) -> None:
        """Look while a request is under way."""
        self._keep(self._at_work, (reader.look() for reader in self._readers))

    def look_closely(self, server: frozenset[int]) -> None:
        """Look between requests.

        Args:
            server: ids of the server's processes.
        """
        self._keep(self._between, (reader.look_closely(server) for reader in self._readers))

    def stop(self) -> tuple[GraphicsDevice, ...]:
        """Each device as it was at work; as it was between requests where nobody looked then."""
        for reader in self._readers:
            reader.close()
        return tuple(
            over_the_run(self._at_work[place], self._between[place])
            for place in sorted(self._at_work.keys() | self._between.keys())
        )

    @staticmethod
    def _keep(
        where: dict[tuple[int, int], list[GraphicsDevice]],
        seen: Iterable[tuple[GraphicsDevice, ...]],
    ) -> None:
        for reader, devices in enumerate(seen):
            for place, device in enumerate(devices):
                where[reader, place].append(device)


def over_the_run(
    at_work: Sequence[GraphicsDevice], between: Sequence[GraphicsDevice]
) -> GraphicsDevice:
    """One device from several looks at it; at least one is needed.

    Utilisation, clock and power are medians of the looks at work, reasons to slow down are all that
    were given then. Memory and temperature are the highest of all looks.
    """
    busy, everything = at_work or between, [*between, *at_work]
    reasons = dict.fromkeys(reason for device in busy for reason in device.throttled_by)
    return replace(
        everything[-1],
        memory_used_bytes=_of(max, everything, "memory_used_bytes"),
        memory_used_by_others_bytes=_of(max, everything, "memory_used_by_others_bytes"),
        shared_memory_used_bytes=_of(max, everything, "shared_memory_used_bytes"),
        utilisation_frac=_of(median, busy, "utilisation_frac"),
        clock_hz=_of(median, busy, "clock_hz"),
        throttled_by=tuple(reasons),
        power_w=_of(median, busy, "power_w"),
        temperature_c=_of(max, everything, "temperature_c"),
        pcie_generation=_of(max, everything, "pcie_generation"),
        pcie_lanes=_of(max, everything, "pcie_lanes"),
    )


def _of(choose: Callable[[list[Any]], Any], looks: Sequence[GraphicsDevice], field: str) -> Any:  # noqa: ANN401  (the type of the field)
    known = [value for look in looks if (value := getattr(look, field)) is not None]
    return choose(known) if known else None
