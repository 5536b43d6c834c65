"""The arms in being: opened, started where they are ours, one active at a time, and ended.

Both arms stay loaded where memory allows. Where it does not, the one that is not needed is ended
before the other is started, and the seconds that takes are kept off the trial's clock.
"""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
from msgspec.structs import asdict, replace

from twospeed.cli.diagnose import api_key
from twospeed.cli.measuring.conduct import limits_of
from twospeed.cli.measuring.connection_options import access_options
from twospeed.cli.measuring.embedded import facts_of_engine, source_of_engine
from twospeed.cli.measuring.this_machine import host_watch
from twospeed.cli.terminal.progress import Progress
from twospeed.cli.verifying.arms import ArmSpec
from twospeed.records.errors import EndpointError, EngineError
from twospeed.records.run import RuntimeFacts, Source
from twospeed.sources.engine.engine import Engine
from twospeed.sources.engine.model import fetch_model
from twospeed.sources.engine.settings import describe, parse_settings, with_defaults
from twospeed.sources.launched import LaunchedServer
from twospeed.sources.live.endpoint import Endpoint
from twospeed.sources.machine.cpu_use import HostWatch

ROOM = 1.2


@dataclass(slots=True)
class Opened:
    """An arm that answers."""

    endpoint: Endpoint
    watch: HostWatch
    source: Source
    facts: RuntimeFacts
    settings: dict[str, str]
    round_trip_s: float | None


class Stage:
    """Both arms, or the one beside a saved run.

    Args:
        arms: as asked for.
        args: the command line.
        runner: event loop that all requests run in.
        progress: where to say what happens.
        room: so many times the memory of the first server must be free for a second one.

    Attributes:
        outside_s: seconds spent on starting arms anew, kept by whoever has them started.
        start_s: seconds that the last start of each arm of ours took, by its index.
        known: what each arm was like when it was last open, by its index.
        alternates: only one of them fits into memory.
    """

    def __init__(
        self,
        arms: Sequence[ArmSpec],
        args: Namespace,
        runner: asyncio.Runner,
        progress: Progress,
        *,
        room: float = ROOM,
    ) -> None:
        self.arms = tuple(arms)
        self.outside_s = 0.0
        self.start_s: dict[int, float] = {}
        self.known: dict[int, Opened] = {}
        self.alternates = False
        self._args = args
        self._runner = runner
        self._progress = progress
        self._room = room
        self._servers: dict[int, Engine | LaunchedServer] = {}
        self._open: dict[int, Opened] = {}

    def open_all(self) -> None:
        """Open every arm.

        Raises:
            TwospeedError: one of them cannot be had.
        """
        for index in range(len(self.arms)):
            if index and self._is_tight():
                self._alternate(index)
                continue
            try:
                self._start(index)
            except (EngineError, EndpointError):
                if not (self.arms[index].launched and set(self._servers) - {index}):
                    raise
                self._alternate(index)

    def is_open(self, index: int) -> bool:
        """Whether the arm can be used without being started first."""
        return index in self._open

    def use(self, index: int) -> Opened:
        """The arm, ready for a request; the other one is idle or ended."""
        if index not in self._open:
            self._end_others(index)
            self._start(index)
        return self._open[index]

    def renew(self, ours: Sequence[int]) -> None:
        """End the servers of these arms and start them anew, in this order.

        Raises:
            TwospeedError: one does not start again.
        """
        for index in ours:
            self._end(index)
        for index in ours if not self.alternates else ():
            self._start(index)

    def refresh_facts(self) -> None:
        """Ask again what each runtime says about itself: some know only once a model is loaded."""
        for index, opened in self._open.items():
            if self.arms[index].engine is None:
                opened.facts = self._runner.run(opened.endpoint.refresh_facts())

    def close(self) -> None:
        """Close every connection and end every server of ours."""
        for opened in self._open.values():
            opened.endpoint.close()
        self._open.clear()
        for server in self._servers.values():
            server.stop()
        self._servers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _alternate(self, index: int) -> None:
        self._progress.note("Not enough memory for both at once: they are started in turn.")
        self.alternates = True
        self._end_others(index)
        self._start(index)

    def _is_tight(self) -> bool:
        """Whether a second server like the first would not fit beside it."""
        pids = [server.pid for server in self._servers.values() if server.pid is not None]
        if not pids:
            return False
        family = [psutil.Process(pid) for pid in pids]
        family += [child for one in family for child in one.children(recursive=True)]
        used_bytes: int = sum(one.memory_info().rss for one in family)
        return bool(psutil.virtual_memory().available < self._room * used_bytes)

    def _end_others(self, index: int) -> None:
        if not self.arms[index].launched:
            return
        for other in list(self._servers):
            if other != index:
                self._end(other)

    def _end(self, index: int) -> None:
        if index in self._open:
            self._open.pop(index).endpoint.close()
        if index in self._servers:
            self._servers.pop(index).stop()

    def _start(self, index: int) -> None:
        began_s = time.monotonic()
        arm = self.arms[index]
        settings, engine = {}, None
        if arm.engine is not None:
            engine = Engine(engine_settings(arm, self._args.model, self._progress))
            settings = {flag: value for flag, value in describe(engine.settings) if flag != "port"}
            self._servers[index] = engine
            engine.start(waiting=self._tell(f"Starting {arm.name}"))
        elif arm.command is not None:
            settings = {"command": arm.command}
            self._servers[index] = LaunchedServer(arm.command)
            self._servers[index].start(
                timeout_s=self._args.timeout, waiting=self._tell("Starting the server")
            )
        else:
            settings = {name: str(value) for name, value in arm.fields.items()}
        self._open[index] = self._opened(index, engine, settings)
        self.known[index] = self._open[index]
        if arm.launched:
            self.start_s[index] = time.monotonic() - began_s

    def _opened(self, index: int, engine: Engine | None, settings: dict[str, str]) -> Opened:
        arm = self.arms[index]
        url = arm.url if arm.url is not None else self._servers[index].url
        endpoint = self._runner.run(
            Endpoint.open(
                url or "",
                model=self._args.model if engine is None else None,
                api_key=api_key(self._args) if arm.url is not None else None,
                reach=access_options(self._args) if arm.url is not None else None,
                runtime_id=self._args.runtime if arm.url is not None else None,
                limits=limits_of(self._args.timeout),
                load_wait_s=self._args.timeout,
                on_loading=self._tell(f"{url} is loading its model"),
                extra=dict(arm.fields),
            )
        )
        source = endpoint.source("live") if engine is None else source_of_engine(endpoint)
        if arm.command is not None:
            source = replace(source, where="started by --command")
        return Opened(
            endpoint=endpoint,
            watch=host_watch(endpoint),
            source=source,
            facts=endpoint.facts if engine is None else facts_of_engine(engine, endpoint.facts),
            settings=settings,
            round_trip_s=self._runner.run(endpoint.round_trip_s()),
        )

    def _tell(self, what: str) -> Callable[[float], None]:
        return lambda waited_s: self._progress.show(f"{what} ({waited_s:.0f} s) ...")


def engine_settings(arm: ArmSpec, model: str | None, progress: Progress) -> Any:  # noqa: ANN401
    """All settings of an embedded engine; its model is fetched where it names none."""
    asked = parse_settings([*(arm.engine or ()), *([f"model={model}"] if model else [])])

    def fetching(done_bytes: int, total_bytes: int | None) -> None:
        total = f" of {total_bytes / 1e6:.0f}" if total_bytes else ""
        progress.show(f"Fetching the model: {done_bytes / 1e6:.0f}{total} MB")

    named = asked.get("model")
    path = fetch_model(progress=fetching) if named is None else Path(str(named))
    return with_defaults(asked, path)


def told_facts(facts: RuntimeFacts) -> dict[str, Any]:
    """Facts that are known."""
    return {name: value for name, value in asdict(facts).items() if value is not None}
