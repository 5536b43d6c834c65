"""How much of this machine's processors others used while it measured."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from twospeed.records.run import Conditions
from twospeed.sources.machine.pressure import share_between, stalled_s
from twospeed.sources.machine.processes import asked, tree_of

MOST_FOREIGN_LOAD = 0.20
"""Above this share of the processors, other programs visibly slow both phases."""
MOST_STEAL = 0.10
MOST_PRESSURE = 0.25
"""Where no model runs: above this share of time, something had to wait for a processor."""


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
            waited_s=stalled_s("cpu"),
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
    pressure = share_between(before.waited_s, after.waited_s, after.at_s - before.at_s)
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


def _tree_cpu_s(roots: Iterable[int | None]) -> float:
    """Processor seconds of processes and all their descendants, ended children included."""
    times = (asked(process, "cpu_times") for process in tree_of(roots))
    return float(
        sum(t.user + t.system + t.children_user + t.children_system for t in times if t is not None)
    )


def _load_average() -> float | None:
    try:
        return float(psutil.getloadavg()[0])
    except OSError:
        return None
