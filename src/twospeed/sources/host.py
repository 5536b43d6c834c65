"""What else this machine was doing while it measured, and which process serves a port."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from twospeed.records.run import Conditions

MOST_FOREIGN_LOAD = 0.20
"""Above this share of the processors, other programs visibly slow both phases."""
MOST_STEAL = 0.10
MOST_PRESSURE = 0.25
"""Where no model runs: above this share of time, something had to wait for a processor."""
PRESSURE = Path("/proc/pressure/cpu")

# Listeners that only pass connections on: the server's own process is somewhere else.
FORWARDERS = (
    "docker-proxy",
    "rootlessport",
    "com.docker",
    "vpnkit",
    "wslrelay",
    "ssh",
    "slirp4netns",
    "pasta",
    "gvproxy",
)
SECRET_FLAGS = ("--api-key", "--api_key", "--token", "--hf-token", "--password")

Gone = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """What a process shows of itself; None where this user may not look."""

    pid: int
    name: str | None = None
    cmdline: tuple[str, ...] | None = None
    """Words of its command line, keys and tokens blanked."""
    cwd: str | None = None
    threads: int | None = None
    rss_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSample:
    """Processor seconds spent so far, by whom."""

    total_s: float
    """All processors together, idle included."""
    idle_s: float
    steal_s: float
    own_s: float
    """This process."""
    ours_s: float | None
    """This process, its children, and the server with its children; None when that is unknown."""
    at_s: float = 0.0
    """Monotonic moment of the sample."""
    waited_s: float | None = None
    """Time in which some task waited for a processor; None where the system does not tell."""


class HostWatch:
    """Tells how much of this machine others used between `start` and `stop`.

    The share is (busy - ours) / all processor time. Ours is this process, its children and the
    server's process tree.
    """

    def __init__(self, server_pid: int | None = None, *, server_is_local: bool = False) -> None:
        """Watch this machine.

        Args:
            server_pid: process of the model server, when it runs here and is known.
            server_is_local: it runs here. Without its process, its load cannot be told from that
                of others, and the load stays unknown.
        """
        self._server_pid = server_pid
        self._server_is_local = server_is_local
        self._blind = server_is_local and server_pid is None
        self._start: CpuSample | None = None

    def start(self) -> None:
        """Begin to watch."""
        self._start = self._sample()

    def stop(self) -> Conditions:
        """Say what the conditions were since `start`; can be called again for a longer span."""
        if self._start is None:
            return Conditions()
        return conditions_between(
            self._start,
            self._sample(),
            load_average=_load_average(),
            server_is_local=self._server_is_local,
        )

    def _sample(self) -> CpuSample:
        times = psutil.cpu_times()
        # Guest time is already part of user and nice time.
        total_s = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        own = psutil.Process().cpu_times()
        return CpuSample(
            total_s=total_s,
            idle_s=times.idle + getattr(times, "iowait", 0.0),
            steal_s=getattr(times, "steal", 0.0),
            own_s=own.user + own.system,
            ours_s=None if self._blind else _tree_cpu_s([psutil.Process().pid, self._server_pid]),
            at_s=time.monotonic(),
            waited_s=cpu_waited_s(),
        )


def conditions_between(
    before: CpuSample,
    after: CpuSample,
    *,
    load_average: float | None = None,
    server_is_local: bool = True,
) -> Conditions:
    """Conditions of the span between two samples.

    Args:
        before: sample at its start.
        after: sample at its end.
        load_average: of the last minute, for the warning.
        server_is_local: the model runs here too. Its own threads may then wait for each other, so
            that pressure tells nothing about other programs.

    Returns:
        Shares as None where the span is too short, or the server's process is not known.
    """
    total_s = after.total_s - before.total_s
    own_s = after.own_s - before.own_s
    if total_s <= 0:
        return Conditions(own_cpu_s=own_s)
    steal = min(1.0, max(0.0, (after.steal_s - before.steal_s) / total_s))
    foreign = None
    if before.ours_s is not None and after.ours_s is not None:
        busy_s = total_s - (after.idle_s - before.idle_s) - (after.steal_s - before.steal_s)
        foreign = min(1.0, max(0.0, (busy_s - (after.ours_s - before.ours_s)) / total_s))
    pressure = _pressure_between(before, after)
    warnings = (
        *_load_warning(foreign, load_average),
        *_steal_warning(steal),
        *_pressure_warning(None if server_is_local else pressure),
    )
    return Conditions(
        host_load=foreign,
        steal=steal,
        cpu_pressure=pressure,
        own_cpu_s=own_s,
        trusted=not warnings,
        warnings=warnings,
    )


def _load_warning(foreign: float | None, load_average: float | None) -> list[str]:
    if foreign is None or foreign <= MOST_FOREIGN_LOAD:
        return []
    average = "" if load_average is None else f" (load average {load_average:.1f})"
    return [
        (
            f"Other programs used {foreign:.0%} of this machine's processors during the run"
            f"{average}: both phases may look slower than they are. Stop them and measure again."
        )
    ]


def _steal_warning(steal: float) -> list[str]:
    if steal <= MOST_STEAL:
        return []
    return [
        (
            f"The hypervisor gave {steal:.0%} of this machine's processor time to others: both"
            " phases may look slower than they are. Measure again at a quieter time."
        )
    ]


def _pressure_warning(pressure: float | None) -> list[str]:
    if pressure is None or pressure <= MOST_PRESSURE:
        return []
    return [
        (
            f"Programs of this machine waited for a processor during {pressure:.0%} of the run:"
            " arrivals may be read late. Stop some of them and measure again."
        )
    ]


def _pressure_between(before: CpuSample, after: CpuSample) -> float | None:
    span_s = after.at_s - before.at_s
    if before.waited_s is None or after.waited_s is None or span_s <= 0:
        return None
    return min(1.0, max(0.0, (after.waited_s - before.waited_s) / span_s))


def cpu_waited_s(pressure: Path = PRESSURE) -> float | None:
    """Time since start-up in which some task waited for a processor, in seconds.

    Args:
        pressure: Linux's file of pressure stall information.

    Returns:
        None where the system does not tell.

    Source: Documentation/accounting/psi.rst of Linux.
    """
    try:
        text = pressure.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = re.search(r"^some .*total=(\d+)", text, re.MULTILINE)
    return None if found is None else int(found[1]) / 1e6


def listener_pid(port: int) -> int | None:
    """Which process of this machine listens on a TCP port.

    Args:
        port: TCP port number.

    Returns:
        Its process id; None when there is none, this user may not see it, or the listener only
        forwards to another machine or container.
    """
    found = next(_listening_pids(port), None)
    if found is None:
        return None
    facts = process_facts(found)
    name = (facts.name or "").lower() if facts else ""
    return None if name.startswith(FORWARDERS) else found


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


def process_facts(pid: int) -> ProcessFacts | None:
    """What a process shows of itself.

    Args:
        pid: process id.

    Returns:
        Facts, None where not allowed; None altogether when the process is gone.
    """
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None
    memory = _asked(process, "memory_info")
    cmdline = _asked(process, "cmdline")
    return ProcessFacts(
        pid=pid,
        name=_asked(process, "name"),
        cmdline=None if cmdline is None else _without_secrets(cmdline),
        cwd=_asked(process, "cwd"),
        threads=_asked(process, "num_threads"),
        rss_bytes=None if memory is None else memory.rss,
    )


def _asked(process: psutil.Process, what: str) -> Any:  # noqa: ANN401  (whatever psutil has)
    """One fact of a process, None where it cannot be had."""
    try:
        return getattr(process, what)()
    except (*Gone, OSError):
        return None


def _without_secrets(cmdline: Iterable[str]) -> tuple[str, ...]:
    words = []
    blank_next = False
    for word in cmdline:
        flag, equals, _ = word.partition("=")
        secret = flag in SECRET_FLAGS
        words.append("***" if blank_next else f"{flag}=***" if secret and equals else word)
        blank_next = secret and not equals
    return tuple(words)


def _listens(connection: Any, port: int) -> bool:  # noqa: ANN401
    at = connection.laddr
    return connection.status == psutil.CONN_LISTEN and bool(at) and at.port == port


def _listening_pids(port: int) -> Iterator[int]:
    """Processes that listen on a port; each is looked at alone where the table is not shown."""
    try:
        table = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:  # macOS
        for process in psutil.process_iter():
            if any(_listens(c, port) for c in _asked(process, "net_connections") or ()):
                yield process.pid
    else:
        yield from (c.pid for c in table if c.pid and _listens(c, port))


def _tree_cpu_s(roots: Iterable[int | None]) -> float:
    """Processor seconds of processes and all their descendants, ended children included."""
    found: dict[int, psutil.Process] = {}
    for pid in roots:
        if pid is None:
            continue
        try:
            process = psutil.Process(pid)
            found |= {p.pid: p for p in (process, *process.children(recursive=True))}
        except Gone:
            continue
    times = (_asked(process, "cpu_times") for process in found.values())
    return float(
        sum(t.user + t.system + t.children_user + t.children_system for t in times if t is not None)
    )


def _load_average() -> float | None:
    try:
        return float(psutil.getloadavg()[0])
    except OSError:
        return None
