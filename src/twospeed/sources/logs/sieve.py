"""Finds the few lines of a long text that matter, without looking at the others one by one.

Each format names signs and, by sign, marks (`MARKS` of its module). A sign is a long word, which is
found quickly; only in blocks with a sign, and in those beside them, lines with its marks are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain

from twospeed.sources.logs.registry import marks_by_sign


def marked_lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that may matter, by number.

    Args:
        blocks: of whole lines, about a megabyte each.
    """
    number, earlier, here = 1, _NOTHING, _NOTHING
    waiting = b""
    for block in chain(blocks, (b"",)):
        signs = _signs_in(block)
        at = 0
        for start in _starts(waiting, _marks_of(earlier | here | signs)):
            number += waiting.count(b"\n", at, start)
            at = start
            end = waiting.find(b"\n", start)
            yield number, waiting[start : end if end >= 0 else None]
        number += waiting.count(b"\n", at)
        earlier, here, waiting = here, signs, block


_NOTHING: frozenset[bytes] = frozenset()


def _signs_in(block: bytes) -> frozenset[bytes]:
    return frozenset(sign for sign in marks_by_sign() if sign in block)


@cache
def _marks_of(signs: frozenset[bytes]) -> tuple[bytes, ...]:
    """All marks of some signs; none is part of another."""
    found = {mark for sign in signs for mark in marks_by_sign()[sign]}
    return tuple(sorted(one for one in found if not any(two in one for two in found - {one})))


def _starts(block: bytes, marks: Iterable[bytes]) -> list[int]:
    """Where the lines begin that carry a mark, ascending."""
    starts: set[int] = set()
    for mark in marks:
        at = block.find(mark)
        while at >= 0:
            starts.add(block.rfind(b"\n", 0, at) + 1)
            end = block.find(b"\n", at)
            if end < 0:
                break
            at = block.find(mark, end)
    return sorted(starts)
