"""One word of `--what-if`: how it is read, and the change that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twospeed.cures.pace import Change
from twospeed.findings.observed import Observed

MOST_TOKENS = 10_000_000
MOST_TIMES = 1000.0
_FORMS: Mapping[str, bool] = {"on": True, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A module of this room has one as `KNOB` where its change can be asked for."""

    key: str
    form: str
    """What its value looks like, for messages."""
    read: Callable[[str], Any]
    """The value from its text; ValueError where it has another form."""
    change: Callable[[Observed, Any], Change | None]
    """The change; None where this run does not show what it starts from."""
    needs: str
    """What a run must show for it."""
    rank: int = 0
    """Changes of what a token costs (0) come before those of how many there are."""


def amount(text: str) -> float:
    """Tokens, or a part of them: `2000`, `0.5`, `50%`.

    Returns:
        Tokens; a part is negative, from -1 to 0, so that the two cannot be mistaken.
    """
    if text.endswith("%"):
        return -_between(float(text[:-1]) / 100.0, 0.0, 1.0)
    if "." in text or text in {"0", "1"}:
        return -_between(float(text), 0.0, 1.0)
    return float(_between(whole(text), 1, MOST_TOKENS))


def of(wanted: float, present: float) -> float:
    """Tokens that an amount stands for, beside the present ones."""
    return -wanted * present if wanted <= 0 else wanted


def whole(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isascii() or not text.isdigit() or len(text) > len(str(MOST_TOKENS)):
        raise ValueError(text)
    return int(_between(int(text), 0, MOST_TOKENS))


def times(text: str) -> float:
    """A factor above 0: `2`, `1.5`."""
    value = float(text)
    if not 1.0 / MOST_TIMES <= value <= MOST_TIMES:  # also where it is no number
        raise ValueError(text)
    return value


def switch(text: str) -> bool:
    """`on` or `off`."""
    if text not in _FORMS:
        raise ValueError(text)
    return _FORMS[text]


def _between(value: float, low: float, high: float) -> float:
    if not low <= value <= high:
        raise ValueError(str(value))
    return value
