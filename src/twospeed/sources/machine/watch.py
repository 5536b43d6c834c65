"""The machine under a local server, over the span of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import psutil
from msgspec.structs import replace

from twospeed.records.run import Blind, MachineFacts
from twospeed.sources.machine.clocks import (
    being_cooled,
    clock_hz,
    clock_max_hz,
    governor,
    standing_limits,
)
from twospeed.sources.machine.cores import numa_nodes, performance_cores, physical_cores
from twospeed.sources.machine.counts import Counts, counts_now, with_counts
from twospeed.sources.machine.graphics import GraphicsWatch, open_readers
from twospeed.sources.machine.memory import available_bytes
from twospeed.sources.machine.others import OthersWatch
from twospeed.sources.machine.processes import tree_of
from twospeed.sources.machine.server import ServerWatch
from twospeed.sources.machine.system_files import ROOT


class MachineWatch:
    """Reads the machine between `start` and `stop`; of one far away it reads nothing.

    `glance` belongs into a request that is under way and takes a few milliseconds at most; `sample`
    belongs between requests. Both may be left out: the fewer there are, the less is known.
    """

    def __init__(self, server_pid: int | None, *, server_is_local: bool, root: Path = ROOT) -> None:
        """Watch this machine.

        Args:
            server_pid: process of the model server, when it runs here and is known.
            server_is_local: it runs here.
            root: below it lie /proc, /sys and /dev of Linux.
        """
        self._pid = server_pid
        self._local = server_is_local
        self._root = root
        self._server = None if server_pid is None else ServerWatch(server_pid, root=root)
        self._others = OthersWatch()
        self._graphics = GraphicsWatch([])
        self._unseen: tuple[Blind, ...] = ()
        self._before: Counts | None = None
        self._clocks_hz: list[float] = []
        self._cooled = False
        self._available: list[int] = []

    def start(self) -> None:
        """Begin to watch."""
        if not self._local:
            return
        readers, self._unseen = open_readers(self._root)
        self._graphics = GraphicsWatch(readers)
        self._others.start()
        if self._server is not None:
            self._server.start()
        self._available = [available_bytes(self._pid, self._root)]
        self._before = counts_now(self._pid, self._root)

    def glance(self) -> None:
        """Look at clocks and graphics devices while a request is under way."""
        if self._before is None:
            return
        self._graphics.look()
        self._cooled = self._cooled or being_cooled(self._root)
        clock = clock_hz(self._root)
        if clock is not None:
            self._clocks_hz.append(clock)

    def sample(self) -> None:
        """Look at the server's processes and at memory between two requests."""
        if self._before is None:
            return
        if self._server is not None:
            self._server.sample()
        self._available.append(available_bytes(self._pid, self._root))
        self._graphics.look_closely(self._server_pids())

    def stop(self) -> tuple[MachineFacts, tuple[Blind, ...]]:
        """What was seen since `start`, and what could not be."""
        if self._before is None:
            return MachineFacts(), ()
        self.sample()
        facts = with_counts(self._state(), self._before, counts_now(self._pid, self._root))
        server = None if self._server is None else self._server.stop()
        ours = {process.pid for process in tree_of([os.getpid()])} | self._server_pids()
        facts = replace(
            facts,
            busiest=self._others.stop(ours),
            graphics=self._graphics.stop(),
            server=server,
        )
        return facts, (*self._unseen, *unseen_in(facts))

    def _state(self) -> MachineFacts:
        """What does not add up over a run: the machine's parts, and how they were at work."""
        root = self._root
        return MachineFacts(
            logical_cores=psutil.cpu_count(),
            physical_cores=physical_cores(),
            performance_cores=performance_cores(root),
            numa_nodes=numa_nodes(root),
            governor=governor(root),
            clock_hz=median(self._clocks_hz) if self._clocks_hz else None,
            clock_max_hz=clock_max_hz(root),
            throttled_by=(*(["thermal"] if self._cooled else []), *standing_limits(root)),
            memory_available_bytes=min(self._available),
        )

    def _server_pids(self) -> frozenset[int]:
        return frozenset() if self._server is None else self._server.pids


def unseen_in(facts: MachineFacts) -> Iterator[Blind]:
    """What these facts leave open that a verdict would have used."""
    if facts.server is None:
        yield Blind(
            what="the server's process",
            needs="running twospeed as the server's user, and outside any container",
        )
    elif facts.server.major_faults is None:
        yield Blind(
            what="whether the server waited for storage",
            needs="Linux or macOS, and running twospeed as the server's user",
        )
    if facts.clock_max_hz is None:
        yield Blind(
            what="the processor's clock",
            needs="a system that shows it: Linux, and not in a virtual machine",
        )
