"""What the server's processes did over a run: processor time, page faults, memory, storage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from twospeed.records.run import ServerProcess
from twospeed.sources.machine.cores import allowed_cores
from twospeed.sources.machine.processes import Gone, asked, process_facts, tree_of
from twospeed.sources.machine.system_files import ROOT, named_number, text_of

SHORTEST_SPAN_S = 0.3
"""Systems count processor time in ticks of 10 ms: over less than this they say too little."""
WORKING_FRAC = 0.2
"""Of the busiest thread's time: threads that compute together take nearly the same."""
MAJOR_FAULTS_AT = 9
"""Place of the major faults in /proc/PID/stat, counted behind the name in brackets (proc(5))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a process has used since it began; None where this user may not look."""

    cpu_s: float | None = 0.0
    major_faults: int | None = 0
    read_bytes: int | None = 0
    resident_bytes: int | None = None
    swapped_bytes: int | None = None


def counters_of(process: psutil.Process, root: Path = ROOT) -> Counters:
    """What a process has used until now.

    Raises:
        psutil.NoSuchProcess: it has ended.
    """
    if not process.is_running():
        raise psutil.NoSuchProcess(process.pid)
    times = asked(process, "cpu_times")
    memory = asked(process, "memory_info")
    here = root / "proc" / str(process.pid)
    swapped = named_number(here / "status", "VmSwap")
    faults = _major_faults(here)
    return Counters(
        cpu_s=None if times is None else times.user + times.system,
        major_faults=getattr(memory, "pageins", None) if faults is None else faults,
        read_bytes=named_number(here / "io", "read_bytes"),
        resident_bytes=None if memory is None else memory.rss,
        swapped_bytes=None if swapped is None else swapped * 1024,
    )


def _thread_times(process: psutil.Process) -> dict[int, float]:
    """Processor time of each thread, by its id; empty where this user may not look."""
    told = asked(process, "threads") or ()
    return {one.id: one.user_time + one.system_time for one in told}


def _major_faults(here: Path) -> int | None:
    fields = (text_of(here / "stat") or "").rpartition(")")[2].split()
    return int(fields[MAJOR_FAULTS_AT]) if len(fields) > MAJOR_FAULTS_AT else None


class ServerWatch:
    """Follows the server's process and its descendants, those included that begin in the run."""

    def __init__(
        self,
        pid: int,
        *,
        root: Path = ROOT,
        tree: Callable[[Iterable[int]], list[psutil.Process]] = tree_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Follow a process.

        Args:
            pid: its id.
            root: below it lies /proc.
            tree: gives the process and its descendants.
            clock: seconds that only grow.
        """
        self.pid = pid
        self._root = root
        self._tree = tree
        self._clock = clock
        self._first: dict[psutil.Process, Counters] = {}
        self._last: dict[psutil.Process, Counters] = {}
        self._threads_first: dict[psutil.Process, dict[int, float]] = {}
        self._at_s = 0.0
        self._busy: float | None = None

    @property
    def pids(self) -> frozenset[int]:
        """All processes that were seen."""
        return frozenset(process.pid for process in self._last)

    def start(self) -> None:
        """Count from here on."""
        self._first = self._last = self._look()
        self._threads_first = {process: _thread_times(process) for process in self._first}
        self._at_s = self._clock()

    def sample(self) -> None:
        """Count on; call it between requests, so that the busiest span is that of one request."""
        now = self._look()
        span_s = self._clock() - self._at_s
        if span_s < SHORTEST_SPAN_S:
            return
        spent_s = [
            each.cpu_s - (self._last.get(process, Counters()).cpu_s or 0.0)
            for process, each in now.items()
            if each.cpu_s is not None
        ]
        if spent_s:
            self._busy = max(self._busy or 0.0, sum(spent_s) / span_s)
        self._last = self._last | now
        self._at_s += span_s

    def stop(self) -> ServerProcess | None:
        """What the processes did since `start`; None when nothing of them could be seen."""
        self.sample()
        self._last = self._last | self._look()
        if not self._last:
            return None
        facts = process_facts(self.pid)
        worker = max(self._last, key=self._cpu_s)
        return ServerProcess(
            command=() if facts is None or facts.cmdline is None else facts.cmdline,
            threads=asked(worker, "num_threads"),
            working_threads=self._working(worker),
            busy_threads=self._busy,
            allowed_cores=allowed_cores(self.pid, self._root),
            resident_bytes=self._held("resident_bytes"),
            swapped_bytes=self._held("swapped_bytes"),
            major_faults=self._added("major_faults"),
            read_bytes=self._added("read_bytes"),
        )

    def _look(self) -> dict[psutil.Process, Counters]:
        found = {}
        for process in self._tree([self.pid]):
            try:
                found[process] = counters_of(process, self._root)
            except Gone:
                continue
        return found

    def _working(self, process: psutil.Process) -> int | None:
        """Threads that shared the work of the run; None where it was too short to tell."""
        before = self._threads_first.get(process, {})
        took_s = [end_s - before.get(one, 0.0) for one, end_s in _thread_times(process).items()]
        busiest_s = max(took_s, default=0.0)
        if busiest_s < SHORTEST_SPAN_S:
            return None
        return sum(one_s >= WORKING_FRAC * busiest_s for one_s in took_s)

    def _cpu_s(self, process: psutil.Process) -> float:
        before = self._first.get(process, Counters()).cpu_s or 0.0
        return (self._last[process].cpu_s or 0.0) - before

    def _added(self, what: str) -> int | None:
        """Sum over the processes of what was added; None when one of them does not tell."""
        total = 0
        for process, last in self._last.items():
            after = getattr(last, what)
            before = getattr(self._first.get(process, Counters()), what)
            if after is None or before is None:
                return None
            total += after - before
        return total

    def _held(self, what: str) -> int | None:
        """Sum over the processes of what each held when it was last seen."""
        told = [getattr(each, what) for each in self._last.values()]
        known = [size for size in told if size is not None]
        return sum(known) if known else None
