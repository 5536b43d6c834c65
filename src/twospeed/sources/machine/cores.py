"""How many processors this machine has, of what kinds, and how many a process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

import psutil

from twospeed.sources.machine.apple import SysctlNumber, sysctl_number
from twospeed.sources.machine.control_group import quota_cores
from twospeed.sources.machine.system_files import (
    ROOT,
    listed_numbers,
    number_of,
    numbered,
    text_of,
)

CPUS = Path("sys/devices/system/cpu")


def physical_cores() -> int | None:
    """Cores of this machine, without the second thread of each; None where that is not told."""
    cores: int | None = psutil.cpu_count(logical=False)
    return cores


def usable_cores(root: Path = ROOT) -> int:
    """Physical cores that this process may use; the second thread of a core only gets in the way.

    Args:
        root: below it lies what tells a Linux container's share of processors.
    """
    cores = physical_cores() or psutil.cpu_count() or 1
    return allowed_cores(os.getpid(), root, most=cores) or cores


def allowed_cores(pid: int, root: Path = ROOT, *, most: int | None = None) -> int | None:
    """Processors that a process may use: those it is tied to, within its container's quota.

    Args:
        pid: process id.
        root: below it lie /proc and /sys.
        most: an upper bound.

    Returns:
        None where neither is told, and without a bound.
    """
    quota = quota_cores(pid, root)
    bounds = [most, _tied_to(pid), None if quota is None else math.floor(quota)]
    least = min((each for each in bounds if each is not None), default=None)
    return None if least is None else max(1, least)


def _tied_to(pid: int) -> int | None:
    try:
        return len(psutil.Process(pid).cpu_affinity())
    except (AttributeError, OSError, psutil.Error):  # macOS has no affinity
        return None


def performance_cores(root: Path = ROOT, sysctl: SysctlNumber = sysctl_number) -> int | None:
    """Physical cores of the fast kind; None where all are alike, or the kinds are not told.

    Intel's hybrids list them as a device of their own, Arm tells each core's capacity, and Apple's
    system counts them.
    """
    if (sysctl("hw.nperflevels") or 0) > 1:
        return sysctl("hw.perflevel0.physicalcpu")
    cpus = root / CPUS
    everyone = [int(path.name.removeprefix("cpu")) for path in numbered(cpus, "cpu")]
    fast = listed_numbers(text_of(root / "sys/devices/cpu_core/cpus"))
    if not fast:
        capacities = {n: number_of(cpus / f"cpu{n}" / "cpu_capacity") for n in everyone}
        most = max((each for each in capacities.values() if each is not None), default=None)
        fast = tuple(n for n, each in capacities.items() if each == most and each is not None)
    if not fast or len(fast) >= len(everyone):
        return None
    return len({_siblings(cpus, number) for number in fast})


def _siblings(cpus: Path, number: int) -> str:
    """Threads of the core that a processor belongs to, as a text that they share."""
    return text_of(cpus / f"cpu{number}" / "topology" / "thread_siblings_list") or str(number)


def numa_nodes(root: Path = ROOT) -> int | None:
    """Memory regions that are near to some processors and far from others; None if not told."""
    return len(numbered(root / "sys/devices/system/node", "node")) or None
