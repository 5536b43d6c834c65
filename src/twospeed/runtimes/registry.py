"""All runtimes: every class of this room that is a Runtime, so adding one is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import twospeed.runtimes
from twospeed.records.run import Setting
from twospeed.runtimes.runtime import Answers, Ask, Runtime


@cache
def all_runtimes() -> tuple[Runtime, ...]:
    """One of each, by id; the base, which fits any OpenAI-compatible endpoint, last."""
    found = []
    for module in pkgutil.iter_modules(twospeed.runtimes.__path__, "twospeed.runtimes."):
        for kind in vars(importlib.import_module(module.name)).values():
            # A module also sees classes that it imports; only its own count.
            if isinstance(kind, type) and kind.__module__ == module.name:
                found.extend([kind()] if issubclass(kind, Runtime) else [])
    return tuple(sorted(found, key=lambda runtime: (type(runtime) is Runtime, runtime.id)))


def runtime_by_id(wanted: str) -> Runtime | None:
    """The runtime with this id; None where there is none."""
    return next((runtime for runtime in all_runtimes() if runtime.id == wanted), None)


def settings_of(runtime_id: str | None) -> dict[str, Setting]:
    """How a runtime spells its settings, by shared name; empty for one that is not known."""
    runtime = None if runtime_id is None else runtime_by_id(runtime_id)
    return {} if runtime is None else dict(runtime.settings)


def recognise(answers: Answers) -> Runtime:
    """The runtime that the answers fit best; the base where they fit none better.

    Args:
        answers: to the requests of `identify_asks`, by path. Those that got no answer may be
            left out.
    """
    *special, base = all_runtimes()
    best = max(special, key=lambda runtime: runtime.recognise(answers))
    return best if best.recognise(answers) else base


def identify_asks() -> tuple[Ask, ...]:
    """Every request that tells runtimes apart, each once."""
    return tuple(dict.fromkeys(ask for runtime in all_runtimes() for ask in runtime.identify))


def known_ports() -> tuple[int, ...]:
    """Ports to look at on this machine, in rising order."""
    return tuple(sorted({port for runtime in all_runtimes() for port in runtime.ports}))
