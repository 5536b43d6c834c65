"""This machine under the server: its limits before the experiment, its state during it."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from pathlib import Path

from msgspec.structs import replace

from twospeed.cli.measuring.book import Book
from twospeed.cli.terminal.progress import Progress
from twospeed.limits.gguf_header import read_header
from twospeed.limits.machine_probe import measure as probe_machine
from twospeed.records.errors import InputError
from twospeed.records.run import Blind
from twospeed.sources.engine.engine import Engine
from twospeed.sources.live.endpoint import Endpoint
from twospeed.sources.machine.cpu_use import HostWatch
from twospeed.sources.machine.graphics import graphics_devices
from twospeed.sources.machine.processes import listener_pid, process_facts
from twospeed.sources.machine.watch import MachineWatch

FIRST_GLANCE_S = 0.3
GLANCE_S = 2.0
"""A look takes up to a few milliseconds, which the server may need."""


class RunWatch:
    """Watches the load of this machine and, under a local server, its state."""

    def __init__(self, endpoint: Endpoint, engine: Engine | None) -> None:
        """Watch for an endpoint.

        Args:
            endpoint: what is measured.
            engine: the embedded engine, where that is what answers.
        """
        self.pid = server_pid(endpoint, engine)
        self._local = engine is not None or endpoint.source().local is True
        self._host = HostWatch(self.pid, server_is_local=self._local)
        self._machine = MachineWatch(self.pid, server_is_local=self._local)

    def start(self) -> None:
        """Begin to watch."""
        self._machine.start()
        self._host.start()

    def sample(self) -> None:
        """Look at the server's processes between two requests."""
        self._machine.sample()

    async def glances(self) -> None:
        """Look at the machine from time to time while a request is under way."""
        await asyncio.sleep(FIRST_GLANCE_S)
        while True:
            self._machine.glance()
            await asyncio.sleep(GLANCE_S)

    def stop(self, book: Book) -> None:
        """Take up what was seen, and what could not be."""
        foreign = (r.other_requests for r in book.run.records if r.step != "together")
        others = [seen for seen in foreign if seen is not None]
        book.add(replace(self._host.stop(), other_requests=max(others, default=None)))
        if not self._local:
            return
        facts, unseen = self._machine.stop()
        book.add(facts)
        for blind in unseen:
            book.add(blind)


def host_watch(endpoint: Endpoint) -> HostWatch:
    """A watch over this machine that does not take the server's own work for someone else's."""
    local = endpoint.source().local is True
    return HostWatch(server_pid(endpoint, None), server_is_local=local)


def server_pid(endpoint: Endpoint, engine: Engine | None) -> int | None:
    """The process that serves, when it runs here and is known."""
    if engine is not None:
        return engine.pid
    port = endpoint.port_here
    return None if port is None else listener_pid(port)


def look_at_machine(
    args: Namespace, endpoint: Endpoint, pid: int | None, book: Book, progress: Progress
) -> None:
    """Read the model's header and probe this machine, where both describe the server."""
    if not endpoint.source().local:
        book.add(
            Blind(
                what="the limits of the server's machine", needs="running twospeed on that machine"
            )
        )
        return
    read_model_header(pid, book)
    if args.no_probe:
        return
    progress.show("Measuring this machine's memory and processor (2 s) ...", force=True)
    if (probe := probe_machine(threads=book.run.facts.threads)) is not None:
        book.add(replace(probe, graphics_devices=graphics_devices()))


def read_model_header(pid: int | None, book: Book) -> None:
    """Read the header of the model file, if the runtime names it and it can be read here."""
    named = book.run.facts.model_path
    if named is None:
        return
    path = Path(named)
    if not path.is_absolute():
        process = process_facts(pid) if pid is not None else None
        if process is None or process.cwd is None:
            return
        path = Path(process.cwd) / path
    try:
        book.add(read_header(path))
    except InputError as error:
        book.add(Blind(what="bytes per token", needs=f"a readable model file ({error.what})"))
