"""The readers of lines: a module of `lines` with `MARKS` and `READER` is one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from twospeed.sources.logs import lines
from twospeed.sources.logs.collector import Collector, Reader

MakeReader = Callable[[Collector], Reader]


@cache
def makers() -> tuple[MakeReader, ...]:
    """What makes a reader of each format."""
    return tuple(module.READER for module in _modules())


@cache
def marks_by_sign() -> dict[bytes, frozenset[bytes]]:
    """Bytes (four or more) of which one is in every line that matters, by a sign they are near.

    A sign is in each megabyte in which lines of its format matter, or in the one beside it.
    """
    found: dict[bytes, frozenset[bytes]] = {}
    for module in _modules():
        for sign, marks in module.MARKS.items():
            found[sign] = found.get(sign, frozenset()) | frozenset(marks)
    return found


def _modules() -> list[ModuleType]:
    names = [f"{lines.__name__}.{module.name}" for module in iter_modules(lines.__path__)]
    return [import_module(name) for name in names]
