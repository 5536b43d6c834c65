"""JSON objects anywhere in a text: alone, one per line, in an array, a stream, or between prose.

Every "{" that can begin an object is tried from left to right, and what was read is stepped over.
The work is bounded: a piece is first tried within a window, and a text with thousands of broken
pieces is given up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from json import JSONDecodeError, JSONDecoder
from typing import Any, NamedTuple

WINDOW_CHARS = 65_536
MOST_BROKEN = 4_096
"""Pieces that begin like an object and are none; a text with more is no JSON."""
MOST_LARGE = 64
"""Tries beyond the window: each may read the rest of the text."""
DEEPEST = 16
MOST_NODES = 1_000_000

_START = re.compile(r'\{\s{0,64}["}]')
_HEADLESS = re.compile(r'\s{0,64}"[^"\n]{1,64}"\s{0,8}:')
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("?)|[][{},]', re.DOTALL)
_DECODER = JSONDecoder(strict=False)

Json = Mapping[str, Any]


class FoundObject(NamedTuple):
    """One JSON object and the line of the text that it begins on, counted from 1."""

    value: Json
    line: int


def objects_in(text: str) -> Iterator[FoundObject]:
    """The outermost objects of a text that can be read, in order.

    A document that is cut off at the end of the text is closed after its last complete value; of
    one that is cut off before, the complete objects inside it are found.
    """
    if _HEADLESS.match(text):
        text = "{" + text  # copied one character short
    position, counted, line, broken, large, mended = 0, 0, 1, 0, 0, False
    while (start := _START.search(text, position)) and broken < MOST_BROKEN:
        at = start.start()
        read = _line_object(text, at) or _object_at(text, at, WINDOW_CHARS)
        if read is _CUT and large < MOST_LARGE and at + WINDOW_CHARS < len(text):
            large += 1
            read = _object_at(text, at, len(text))
        if read is _CUT and not mended:
            mended, read = True, _mended(text, at)
        if read is None or read is _CUT:
            broken, position = broken + 1, at + 1
            continue
        value, position = read
        line, counted = line + text.count("\n", counted, at), at
        if value:
            yield FoundObject(value, line)


def wanted_in(text: str, is_wanted: Callable[[Json], bool]) -> Iterator[FoundObject]:
    """Objects at any depth that answer to `is_wanted`; nothing is searched inside of these."""
    for found in objects_in(text):
        for value in _nested(found.value, is_wanted):
            yield FoundObject(value, found.line)


_Read = tuple[dict[str, Any], int]
_CUT: _Read = ({}, -1)
"""Stands for a piece that may go on behind the window."""


def _line_object(text: str, at: int) -> _Read | None:
    """The object where it ends on its line, as in JSON lines and streams."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    if end - at > WINDOW_CHARS or "}" not in text[max(end - 4, at) : end]:
        return None
    read = _object_at(text, at, end - at)
    return None if read is _CUT else read


def _object_at(text: str, at: int, window: int) -> _Read | None:
    whole = window >= len(text) - at
    piece = text if whole else text[at : at + window]
    start = at if whole else 0
    try:
        value, end = _DECODER.raw_decode(piece, start)
    except JSONDecodeError as problem:
        cut = problem.pos > len(piece) - 4096 or problem.msg.startswith("Unterminated")
        return _CUT if cut else None
    except (RecursionError, ValueError):  # nested too deep; an integer of thousands of digits
        return None
    return value, at + end - start


def _mended(text: str, at: int) -> _Read | None:
    """The object that begins at `at` and is cut off by the end of the text.

    A list of numbers that is cut off is left out: half of it would pass for all of it.
    """
    closing: list[str] = []
    complete: tuple[int, str] | None = None
    for token in _TOKEN.finditer(text, at):
        sign = token[0][0]
        if sign in "{[":
            closing.append("}" if sign == "{" else "]")
        elif sign in "}]" and closing:
            closing.pop()
        if not closing or len(closing) > DEEPEST * 2:
            return None
        if sign in "}]" or (sign == "," and closing[-1] == "}"):
            end = token.start() if sign == "," else token.end()
            complete = (end, "".join(reversed(closing)))
    if complete is None:
        return None
    try:
        value = _DECODER.decode(text[at : complete[0]] + complete[1])
    except (RecursionError, ValueError):
        return None
    return value, len(text)


def _nested(top: Json, is_wanted: Callable[[Json], bool]) -> Iterator[Json]:
    waiting: list[tuple[Any, int]] = [(top, 0)]
    for _ in range(MOST_NODES):
        if not waiting:
            return
        value, depth = waiting.pop()
        if isinstance(value, dict):
            if is_wanted(value):
                yield value
                continue
            inside = list(value.values())
        else:
            inside = value
        if depth < DEEPEST:
            inner = [(one, depth + 1) for one in inside if isinstance(one, dict | list)]
            waiting.extend(reversed(inner))
