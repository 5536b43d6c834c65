"""How the values of engine settings are read: each reader names what it expects when refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

Value = int | float | bool | str | list[float]
"""As JSON can carry it."""

Reader = Callable[[str], Value]
"""Raises ValueError with the words that complete "expected …"."""

ON = {"on", "true", "1", "yes", "enabled"}
OFF = {"off", "false", "0", "no", "disabled"}


def whole(low: int, high: int = 2**31 - 1, **words: int) -> Reader:
    """Read a whole number within bounds, or one of the words that stand for a number."""

    def read(text: str) -> int:
        if text in words:
            return words[text]
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            also = "".join(f" or {word}" for word in words)
            raise ValueError(f"a whole number from {low} to {high}{also}")
        return value

    return read


def number(low: float = -math.inf, high: float = math.inf) -> Callable[[str], float]:
    """Read a finite number within bounds."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (low <= value <= high and math.isfinite(value)):
            raise ValueError(f"a number from {low} to {high}")
        return value

    return read


def switch(text: str) -> bool:
    """Read on or off."""
    word = text.lower()
    if word not in ON | OFF:
        raise ValueError("on or off")
    return word in ON


def words(text: str) -> str:
    """Read any text."""
    return text


def existing_file(text: str) -> str:
    """Read the path of a file that is there."""
    path = Path(text).expanduser()
    if not path.is_file():
        raise ValueError("the path of an existing file")
    return str(path.absolute())


def shares(text: str) -> list[float]:
    """Read a comma-separated list of numbers."""
    one = number(0.0)
    return [one(part) for part in text.split(",")]


@dataclass(frozen=True, slots=True)
class Choice:
    """A closed list of words, each a member of an enum of xllamacpp."""

    enum: str
    members: Mapping[str, str]
    """Word of the command line → member name."""
    listed: bool = False
    """True when the attribute holds a list of members."""

    def __call__(self, text: str) -> str:
        """Read one of the words."""
        word = text.lower()
        if word not in self.members:
            raise ValueError("one of " + ", ".join(self.members))
        return word


def members(prefix: str, names: Iterable[str]) -> dict[str, str]:
    """Words that differ from the member names only by prefix, case and hyphens."""
    return {name: prefix + name.upper().replace("-", "_") for name in names}
