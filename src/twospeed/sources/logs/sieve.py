"""Finds the few lines of a long text that matter, without looking at the others one by one.

Each format names signs and, by sign, marks (`MARKS` of its module). A sign is a long word that some
line near every line of the format holds; only in blocks with a sign, and in those beside them,
lines with its marks are read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from functools import cache
from itertools import chain

import numpy as np

from twospeed.sources.logs.grams import Grams
from twospeed.sources.logs.registry import marks_by_sign

Found = Generator[tuple[int, bytes], None, int]
"""Lines by number; ends with the number of the line after the block."""
NEWLINE = 10
_NOTHING: frozenset[bytes] = frozenset()


def marked_lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that may matter, by number.

    Args:
        blocks: of whole lines, about a megabyte each.
    """
    number, earlier, here = 1, _NOTHING, _NOTHING
    waiting = b""
    for block in chain(blocks, (b"",)):
        signs = _grams_of_signs().words_in(block)
        number = yield from _marked(waiting, earlier | here | signs, number)
        earlier, here, waiting = here, signs, block


def _marked(block: bytes, signs: frozenset[bytes], number: int) -> Found:
    """The lines of a block that hold a mark of one of the signs."""
    newlines = np.flatnonzero(np.frombuffer(block, np.uint8) == NEWLINE)
    if signs:
        marks, grams = _marks_of(signs)
        lines = np.searchsorted(newlines, grams.places(block))
        lines = lines[np.diff(lines, prepend=-1) > 0]
        bounds = np.concatenate(([-1], newlines, [len(block)]))
        starts, ends = bounds[lines] + 1, bounds[lines + 1]
        for line, start, end in zip(lines.tolist(), starts.tolist(), ends.tolist(), strict=True):
            raw = block[start:end]
            for mark in marks:
                if mark in raw:
                    yield number + line, raw
                    break
    return number + len(newlines)


@cache
def _grams_of_signs() -> Grams:
    return Grams(marks_by_sign().keys())


@cache
def _marks_of(signs: frozenset[bytes]) -> tuple[tuple[bytes, ...], Grams]:
    """All marks of some signs, none of them part of another, and where they may stand."""
    found = {mark for sign in signs for mark in marks_by_sign()[sign]}
    least = [one for one in found if not any(two in one for two in found - {one})]
    marks = tuple(sorted(least, key=len))
    return marks, Grams(marks)
