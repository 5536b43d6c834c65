"""What a Linux control group (a container, a service) allows a process, and how often it held it.

Both versions are read. A limit may be set on any group above as well; the narrowest one counts.

Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of Linux; a quota of version 1 in
Documentation/scheduler/sched-bwc.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from twospeed.sources.machine.system_files import ROOT, named_number, number_of, text_of

MOUNT = Path("sys/fs/cgroup")
# Version 1 writes "no limit" as the largest number that its counter holds.
NO_LIMIT_BYTES = 1 << 60


def group_directories(pid: int, controller: str, root: Path = ROOT) -> list[Path]:
    """Directories of the groups that a process is in, the innermost first.

    Args:
        pid: process id.
        controller: "cpu" or "memory".
        root: below it lie /proc and /sys.

    Returns:
        Nothing where there are no control groups, or they are not shown.
    """
    for mounts, path in _memberships(pid, controller, root):
        base = next((each for each in mounts if each.is_dir()), None)
        if base is None or ".." in path.split("/"):
            continue
        own = base / path.strip("/")
        # In a container the path may be that of the host, and its mount begins at its own group.
        chain = [own, *own.parents][: len(own.parts) - len(base.parts) + 1]
        return [each for each in chain if each.is_dir()]
    return []


def _memberships(pid: int, controller: str, root: Path) -> Iterator[tuple[list[Path], str]]:
    """Where a controller may be mounted, and the group's path there; version 1 first."""
    unified = None
    for line in (text_of(root / "proc" / str(pid) / "cgroup") or "").splitlines():
        _, names, path = (*line.split(":", 2), "", "")[:3]
        if controller in names.split(","):
            yield [root / MOUNT / names, root / MOUNT / controller], path
        elif not names:
            unified = path
    if unified is not None:
        mounts = [root / MOUNT / "unified", root / MOUNT]
        yield [each for each in mounts if (each / "cgroup.controllers").exists()], unified


def quota_cores(pid: int, root: Path = ROOT) -> float | None:
    """Processors' worth of time that a process may use; None when that is not limited."""
    quotas = [_quota(each) for each in group_directories(pid, "cpu", root)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(group: Path) -> float | None:
    text = text_of(group / "cpu.max")
    share, period = (*(text or "").split(), "", "")[:2]
    if text is None:
        share = text_of(group / "cpu.cfs_quota_us") or ""
        period = text_of(group / "cpu.cfs_period_us") or ""
    if not (share.isdecimal() and period.isdecimal()) or int(period) == 0:
        return None
    return int(share) / int(period)


def throttled_s(pid: int, root: Path = ROOT) -> float | None:
    """Time in which quotas stopped a process's groups since they began, in seconds.

    It is a sum over processors, as the kernel counts it.
    """
    told = [_throttled_s(each) for each in group_directories(pid, "cpu", root)]
    known = [seconds for seconds in told if seconds is not None]
    return sum(known) if known else None


def _throttled_s(group: Path) -> float | None:
    micro = named_number(group / "cpu.stat", "throttled_usec")
    nano = named_number(group / "cpu.stat", "throttled_time")
    if micro is not None:
        return micro / 1e6
    return None if nano is None else nano / 1e9


def memory_left_bytes(pid: int, root: Path = ROOT) -> int | None:
    """Memory that a process's groups may still take; None when that is not limited.

    Pages of files that were not used lately count as free: they are given up first.
    """
    left = [_memory_left(each) for each in group_directories(pid, "memory", root)]
    return min((each for each in left if each is not None), default=None)


def _memory_left(group: Path) -> int | None:
    limit = number_of(group / "memory.max") or number_of(group / "memory.limit_in_bytes")
    used = number_of(group / "memory.current") or number_of(group / "memory.usage_in_bytes")
    if limit is None or used is None or limit >= NO_LIMIT_BYTES:
        return None
    stat = group / "memory.stat"
    idle = named_number(stat, "total_inactive_file") or named_number(stat, "inactive_file") or 0
    return max(0, limit - used + idle)
