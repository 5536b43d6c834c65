"""Garbage collection held back while streams are timed: it stops the process for milliseconds."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


class _Holders:
    """How many parts of the program want no collection now."""

    count = 0
    was_enabled = False


@contextmanager
def collection_held() -> Iterator[None]:
    """Hold cyclic garbage collection back; whoever leaves last brings it back as it was.

    Streams make no cycles, so that nothing piles up meanwhile.
    """
    if not _Holders.count:
        _Holders.was_enabled = gc.isenabled()
        gc.disable()
    _Holders.count += 1
    try:
        yield
    finally:
        _Holders.count -= 1
        if not _Holders.count and _Holders.was_enabled:
            gc.enable()
