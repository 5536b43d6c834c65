"""Finds the few lines of a long text that matter, without looking at the others one by one.

Each format names signs and, by sign, marks (`MARKS` of its module). A sign is a long word, which is
found quickly; only in blocks with a sign, and in those beside them, lines with its marks are read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain

from twospeed.sources.logs.registry import marks_by_sign

DENSE = 4
"""With a mark on more than every fourth line of a sample, each line is looked at."""
SAMPLE_BYTES = 1 << 15
Found = Generator[tuple[int, bytes], None, int]
"""Lines by number; ends with the number of the line after the block."""


def marked_lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that may matter, by number.

    Args:
        blocks: of whole lines, about a megabyte each.
    """
    number, earlier, here = 1, _NOTHING, _NOTHING
    waiting = b""
    for block in chain(blocks, (b"",)):
        signs = _signs_in(block)
        marks = _marks_of(earlier | here | signs)
        find = _each if _is_dense(waiting[:SAMPLE_BYTES], marks) else _leaping
        number = yield from find(waiting, marks, number)
        earlier, here, waiting = here, signs, block


def _is_dense(sample: bytes, marks: Sequence[bytes]) -> bool:
    lines = sample.count(b"\n")
    return any(sample.count(mark) * DENSE > lines for mark in marks)


def _each(block: bytes, marks: Sequence[bytes], number: int) -> Found:
    """The marked lines where most lines are."""
    line = number
    marks = sorted(marks, key=block[:SAMPLE_BYTES].count, reverse=True)
    for line, raw in enumerate(block.split(b"\n"), start=number):
        for mark in marks:
            if mark in raw:
                yield line, raw
                break
    return line


def _leaping(block: bytes, marks: Sequence[bytes], number: int) -> Found:
    """The marked lines where few lines are."""
    at = 0
    for start in _starts(block, marks):
        number += block.count(b"\n", at, start)
        at = start
        end = block.find(b"\n", start)
        yield number, block[start : end if end >= 0 else None]
    return number + block.count(b"\n", at)


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
