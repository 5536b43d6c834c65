"""Numbers and durations as programs print them."""

from __future__ import annotations

import re

LONGEST_S = 1e9
MOST_DIGITS = 12
"""Of a count; more are beyond what a record holds."""
MOST_CHARS = 23
MOST_BYTES = 2.0**53
NUMBER = r"(?:\d[\d.,]*|inf|nan)"
"""For the expressions of the formats: digits with either mark, or no value."""
_DIGITS = re.compile(r"[0-9][0-9.,]*")
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?")
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_PART = re.compile(r"(\d+(?:[.,]\d+)?)(h|ms|µs|μs|us|ns|m|s)")
_UNIT_S = {
    "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ns": 1e-9,
}  # fmt: skip
_GO_DURATION = re.compile(rf"(?:{_PART.pattern})+")


def number(text: str | None) -> float | None:
    """A printed number with either decimal mark; None for no value (`inf`, `nan`, nothing).

    One mark alone is the decimal mark, for the programs read here do not group digits of plain
    numbers; with two kinds of marks, or one of them repeated, the last kind is.
    """
    if not text or len(text) > MOST_CHARS:
        return None
    if _PLAIN.fullmatch(text):
        return float(text)
    if not _DIGITS.fullmatch(text):
        return None
    text = text.rstrip(".,")
    marks = [mark for mark in text if mark in ".,"]
    if len(marks) > 1:
        if not _GROUPED.fullmatch(text):
            return None
        last = marks[-1]
        if marks.count(last) == 1:
            whole, _, part = text.rpartition(last)
            text = re.sub("[.,]", "", whole) + "." + part
        else:
            text = text.replace(last, "")
    text = text.replace(",", ".")
    return float(text) if _PLAIN.fullmatch(text) else None


def whole(text: str | None) -> int | None:
    """A printed count; None when it is none, or beyond belief."""
    if not text or len(text) > MOST_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    return int(text)


def seconds(text: str | None, per_second: float = 1.0) -> float | None:
    """A printed time in seconds; None for 0, which stands for "not measured", and for no value."""
    value = number(text)
    if value is None or not 0 < value / per_second <= LONGEST_S:
        return None
    return value / per_second


def go_seconds(text: str) -> float | None:
    """A duration as Go prints it (`1m43s`, `32.8561ms`), in seconds; None when it is none."""
    if len(text) > 40 or not _GO_DURATION.fullmatch(text):
        return None
    total = sum(float(n.replace(",", ".")) * _UNIT_S[unit] for n, unit in _PART.findall(text))
    return total if total <= LONGEST_S else None


def bytes_of(text: str, unit: str) -> int | None:
    """A size with a binary (`MiB`) or decimal (`MB`) unit."""
    value = number(text)
    base = 1024.0 if "i" in unit else 1000.0
    power = "KMGT".find(unit[:1].upper()) + 1
    size = None if value is None else value * base**power
    return None if size is None or size > MOST_BYTES else round(size)
