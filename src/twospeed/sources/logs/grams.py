"""Where some words stand in a text, found without looking at its bytes one by one.

A word of n bytes holds an aligned group of four (a gram), whatever its place in the text, if n is
at least 7; from 5 on it does in a text that is also read two bytes later. So the text is looked at
as 32-bit numbers, each once; a table tells which of them are grams of a word, and at those few
places eight bytes are compared.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]
GRAM = 4
SEEN = 8
"""Of a word so many bytes are compared, the last ones: many words begin alike."""
BITS = 13
"""The table (32 KiB) stays in the fastest cache."""
_PIECE = 1 << 16
"""Grams that are looked up together: what is computed of them stays in the second cache."""


class _Clue(NamedTuple):
    """A gram that leads to a word."""

    gram: int
    offset: int
    """Of the gram in the bytes that are compared."""
    end: np.uint64
    mask: np.uint64
    word: bytes


class Grams:
    """The grams of some words, each at a place of its own in a table.

    Args:
        words: one or more, of four bytes or more.
    """

    def __init__(self, words: Collection[bytes]) -> None:
        shortest = min(map(len, words))
        self._step = next(step for step in (4, 2, 1) if shortest >= GRAM - 1 + step)
        self._clues = [clue for word in words for clue in _clues(word, self._step)]
        values = np.array(sorted({clue.gram for clue in self._clues}), np.uint32)
        self._shift = np.uint32(32 - BITS)
        self._factor = self._factor_for(values)
        self._table = np.zeros(1 << BITS, np.uint32)
        self._table[self._slots(values)] = values

    def places(self, text: bytes) -> Places:
        """Where words stand, ascending: a place within each, and few that only look like one."""
        found = [places for _, places in self._found(text)]
        return np.sort(np.concatenate(found)) if found else np.empty(0, np.intp)

    def words_in(self, text: bytes) -> frozenset[bytes]:
        """The words that stand in a text."""
        likely = {word for word, places in self._found(text) if len(places)}
        return frozenset(word for word in likely if word in text)

    def _found(self, text: bytes) -> Iterator[tuple[bytes, Places]]:
        """Words, and where their ends begin."""
        if len(text) < SEEN:
            text = text.ljust(SEEN, b"\0")
        places, grams = self._hits(text)
        ends = np.ndarray((len(text) - SEEN + 1,), "<u8", text, strides=(1,))
        for clue in self._clues:
            begins = places[grams == clue.gram] - clue.offset
            begins = begins[begins >= 0]
            # What reaches beyond the text is left to whoever compares the whole word.
            beyond = begins >= len(ends)
            same = ends[np.minimum(begins, len(ends) - 1)] & clue.mask == clue.end
            yield clue.word, begins[same | beyond]

    def _hits(self, text: bytes) -> tuple[Places, NDArray[np.uint32]]:
        """Places of grams, and the grams."""
        places, found = [], []
        for first in range(0, GRAM, self._step):
            grams = np.frombuffer(text, "<u4", (len(text) - first) // GRAM, first)
            for begin in range(0, len(grams), _PIECE):
                piece = grams[begin : begin + _PIECE]
                hits = np.flatnonzero(self._table[self._slots(piece)] == piece)
                places.append((hits + begin) * GRAM + first)
                found.append(piece[hits])
        return np.concatenate(places), np.concatenate(found)

    def _slots(self, grams: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Places in the table: the upper bits of a product, which depend on all lower ones."""
        return (grams * self._factor) >> self._shift

    def _factor_for(self, values: NDArray[np.uint32]) -> np.uint32:
        """An odd factor that gives each gram a place of its own."""
        chance = random.Random(1)  # noqa: S311 (no secret)
        while True:
            self._factor = np.uint32(chance.randrange(1 << 32) | 1)
            if len(np.unique(self._slots(values))) == len(values):
                return self._factor


def _clues(word: bytes, step: int) -> Iterator[_Clue]:
    end = word[-SEEN:]
    value = int.from_bytes(end, "little")
    mask = (1 << 8 * len(end)) - 1
    last = len(end) - GRAM
    for offset in range(last - step + 1, last + 1):
        gram = int.from_bytes(end[offset : offset + GRAM], "little")
        yield _Clue(gram, offset, np.uint64(value), np.uint64(mask), word)
