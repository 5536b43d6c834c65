"""A scenario of the lab: what is done, and the cause that must be named first."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trials import Seen

from twospeed.sources.engine.engine import Engine
from twospeed.sources.engine.model import fetch_model
from twospeed.sources.engine.settings import parse_settings, with_defaults

NO_FAULT = ("prompt.large", "decode.output_long", "decode.bandwidth_bound")
"""What may be said of a machine without a fault."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One fault.

    Attributes:
        name: what is done.
        causes: of which the first finding must be one; empty for a healthy control.
        run: does it and says what was seen.
        hidden: the same with the server's process out of sight; None where that is not tried.
        seeds: how often it is run.
    """

    name: str
    causes: tuple[str, ...]
    run: Callable[[int], Seen]
    seeds: int | None = None
    hidden: tuple[str, ...] | None = None

    @property
    def rows(self) -> tuple[Scenario, ...]:
        """Itself and, where it is tried, its twin without the process."""
        if self.hidden is None:
            return (self,)
        twin = f"{self.name}, process hidden"
        return self, Scenario(twin, self.hidden, self.run, self.seeds)


@contextlib.contextmanager
def engine(*pairs: str, model: Path | None = None) -> Iterator[Engine]:
    """A real llama.cpp of our own."""
    settings = with_defaults(parse_settings([*pairs]), model or fetch_model())
    with Engine(settings) as running:
        yield running.start()


@contextlib.contextmanager
def simulator(*words: str) -> Iterator[str]:
    """A paced server; yields its URL."""
    server = subprocess.Popen(
        [sys.executable, "-m", "twospeed", "simulate", "--port", "0", "--duration", "300", *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = server.stdout.readline() if server.stdout else ""
        found = re.search(r"http://[\d.]+:\d+", line)
        if found is None:
            raise SystemExit(f"the simulator did not start: {line!r}")
        yield found[0]
    finally:
        server.kill()
        server.wait()
