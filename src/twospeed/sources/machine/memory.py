"""How much memory this machine has left, and what it had to read back."""

from __future__ import annotations

import mmap
from pathlib import Path

import psutil

from twospeed.sources.machine.control_group import memory_left_bytes
from twospeed.sources.machine.system_files import ROOT, named_number


def available_bytes(pid: int | None, root: Path = ROOT) -> int:
    """Memory that can be taken without swapping, in bytes.

    Args:
        pid: the server's process, whose container may allow less than the machine has.
        root: below it lie /proc and /sys.
    """
    free: int = psutil.virtual_memory().available
    allowed = None if pid is None else memory_left_bytes(pid, root)
    return free if allowed is None else min(free, allowed)


def swapped_in_bytes(root: Path = ROOT) -> int | None:
    """Read back from swap since start-up, in bytes; None where the system does not tell."""
    pages = named_number(root / "proc" / "vmstat", "pswpin")
    return None if pages is None else pages * mmap.PAGESIZE
