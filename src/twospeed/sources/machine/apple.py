"""What macOS shows: kinds of cores, swap, and the memory that its graphics part uses.

Not readable without the administrator's rights, and so unknown: clocks, power, throttling.

Source: sysctl(3), vm_stat(1) and ioreg(8) of macOS.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Callable, Sequence

from twospeed.records.run import GraphicsDevice

SysctlNumber = Callable[[str], int | None]
Output = Callable[[Sequence[str]], str | None]

VM_STAT = ("/usr/bin/vm_stat",)
ACCELERATORS = ("/usr/sbin/ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator")
LONGEST_S = 1.0
ON_MACOS: bool = sys.platform == "darwin"


def sysctl_number(name: str) -> int | None:
    """A number that the system keeps under a name; None on other systems, and if it has none."""
    if not ON_MACOS:
        return None
    value, size = ctypes.c_int64(0), ctypes.c_size_t(8)
    failed = ctypes.CDLL(None).sysctlbyname(
        name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return None if failed else value.value


def output_of(command: Sequence[str]) -> str | None:
    """What a program of macOS prints; None on other systems, or when it fails."""
    if not ON_MACOS:
        return None
    try:
        done = subprocess.run(
            command, capture_output=True, check=True, timeout=LONGEST_S, text=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def swapped_in_bytes(output: Output = output_of) -> int | None:
    """Read back from swap since start-up, in bytes; None where the system does not tell."""
    text = output(VM_STAT) or ""
    page = re.search(r"page size of (\d+) bytes", text)
    pages = re.search(r"^Swapins:\s+(\d+)", text, re.MULTILINE)
    return None if page is None or pages is None else int(page[1]) * int(pages[1])


class AppleGraphics:
    """The graphics part of Apple's chips, which shares the machine's memory."""

    def __init__(self, output: Output = output_of) -> None:
        self._output = output

    def look(self) -> tuple[GraphicsDevice, ...]:
        """Nothing while a request is under way: the program that tells would take its time."""
        return ()

    def look_closely(self, server: frozenset[int]) -> tuple[GraphicsDevice, ...]:  # noqa: ARG002
        """Each device with the memory in its use; whose it is, is not told."""
        parts = re.split(r"^\+-o ", self._output(ACCELERATORS) or "", flags=re.MULTILINE)
        return tuple(device for part in parts if (device := _device(part)) is not None)

    def close(self) -> None:
        """Nothing is kept open."""


def _device(text: str) -> GraphicsDevice | None:
    name = re.search(r'"model" = <?"([^"]+)"', text)
    used = re.search(r'"In use system memory"=(\d+)', text)
    if name is None:
        return None
    return GraphicsDevice(
        name=name[1], shared_memory_used_bytes=None if used is None else int(used[1])
    )
