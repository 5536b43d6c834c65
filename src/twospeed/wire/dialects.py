"""Which dialects there are, and the one way to read a response in any of them.

A dialect is a module of this room with `read_event` and `read_body`; adding the file adds the
dialect.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import cast

from twospeed.wire.http_response import ResponseReader
from twospeed.wire.reading import StreamReading
from twospeed.wire.response_reading import Dialect, ResponseReading


@cache
def dialect_names() -> tuple[str, ...]:
    """Names of all dialects, found among the modules of this room."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    others = Path(__file__).stem
    return tuple(n for n in names if n != others and hasattr(_module(n), "read_event"))


def reading_of(dialect: str, reader: ResponseReader) -> ResponseReading:
    """Begin to read a response, for a long one while it still arrives.

    Args:
        dialect: one of dialect_names().
        reader: the response; a reading that advances takes the segments out of it.

    Raises:
        KeyError: there is no such dialect; only a mistake in a runtime module causes it.
    """
    if dialect not in dialect_names():
        raise KeyError(dialect)
    return ResponseReading(cast("Dialect", _module(dialect)), reader)


def read_response(dialect: str, reader: ResponseReader) -> StreamReading:
    """What a response said, with the arrival of every text, and what was wrong with it.

    Args:
        dialect: one of dialect_names().
        reader: the response, complete or not.

    Raises:
        KeyError: there is no such dialect; only a mistake in a runtime module causes it.
    """
    return reading_of(dialect, reader).finish()


@cache
def _module(name: str) -> object:
    return import_module(f"{__package__}.{name}")
