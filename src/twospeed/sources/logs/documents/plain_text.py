"""A paste without what terminals, mail and browsers put around its lines, and numbers in it."""

from __future__ import annotations

import math
import re

_DECORATION = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # colours and cursor moves
    r"|\x1b\][^\x07\x1b\n]{0,256}\x07"  # window titles
    r"|\ufeff|\u200b"
)
_QUOTE_MARKS = re.compile(r"^[ \t]{0,8}>(?:[> \t]{0,8})", re.MULTILINE)
_PREFIXES = (
    re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.,]{8,20}(?:Z|[+-]\d\d:?\d\d)?(?: |$)"),  # docker logs -t
    re.compile(
        r"\S{1,9} {1,2}\d{1,2} \d\d:\d\d:\d\d (?:\S{1,64} )?\S{1,64}\[\d{1,9}\]: ?"
    ),  # journald
)
_CONTAINER = re.compile(r"[\w.-]{1,64} {1,32}\| ?")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d{1,3})?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+")
_LONGEST_NUMBER = 64
LARGEST = 1e15
"""Beyond any count, size or rate here: an accident."""


def cleaned(text: str) -> str:
    """The text without colours, quote marks and byte order marks, with plain line ends."""
    if "\x1b" in text or "\ufeff" in text or "\u200b" in text:
        text = _DECORATION.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if ">" in text:
        text = _QUOTE_MARKS.sub("", text)
    lines = [line.rstrip() for line in text.replace("\xa0", " ").split("\n")]
    return "\n".join(_without_prefixes(lines))


def _without_prefixes(lines: list[str]) -> list[str]:
    """Lines without the name of the container or the stamps that every one of them begins with."""
    for pattern in _PREFIXES:
        if all(pattern.match(line) for line in lines if line) and any(lines):
            lines = [pattern.sub("", line, count=1) for line in lines]
    first = next((line for line in lines if line), "")
    container = _CONTAINER.match(first)
    if container and all(line.startswith(container[0].rstrip()) for line in lines if line):
        return [line[container.end() :] for line in lines]
    return lines


def numbers_in(text: str) -> list[float]:
    """Every number of a short text, in order, by either decimal mark.

    "1,146.31" and "1.146,31" have both marks, the last being the decimal one; "4454,16" has a
    decimal comma, "1,146" a thousands separator. What is too large to mean anything is left out.
    """
    found = [_number(piece) for piece in _NUMBER.findall(text)]
    return [number for number in found if number is not None]


def number_in(text: str | None) -> float | None:
    """The first number of a short text that is not negative; None without one."""
    if text is None or "inf" in text.casefold() or "nan" in text.casefold():
        return None
    found = numbers_in(text[:_LONGEST_NUMBER])
    return found[0] if found and found[0] >= 0 else None


def whole_in(text: str | None) -> int | None:
    """The first number of a short text where it is whole; None otherwise."""
    number = number_in(text)
    return int(number) if number is not None and number.is_integer() else None


def _number(piece: str) -> float | None:
    piece = piece.rstrip(".,")[:_LONGEST_NUMBER]
    if piece.rfind(",") > piece.rfind("."):
        grouped = _GROUPED.fullmatch(piece) is not None
        piece = piece.replace(",", "") if grouped else piece.replace(".", "").replace(",", ".")
    try:
        number = float(piece.replace(",", ""))
    except ValueError:  # "1.2.3" is a version
        return None
    return number if math.isfinite(number) and abs(number) <= LARGEST else None
