"""Server-sent events as the simulated runtimes write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twospeed.simulator.exchange import as_json

DONE = b"data: [DONE]\n\n"
PLACE = "text comes here"
"""Stands for the text in the value given to `TextEvent.of`."""


def event(value: Mapping[str, Any]) -> bytes:
    """One unnamed event."""
    return b"data: " + as_json(value) + b"\n\n"


def named_event(name: str, value: Mapping[str, Any]) -> bytes:
    """One event with a name."""
    return b"event: " + name.encode() + b"\n" + event(value)


class TextEvent:
    """An event that is the same each time but for its text: encoded once, filled in quickly.

    Args:
        before, after: the bytes around the JSON string.
    """

    __slots__ = ("_after", "_before")

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before = before
        self._after = after

    @classmethod
    def of(cls, value: Mapping[str, Any], start: bytes = b"data: ") -> TextEvent:
        """The event whose JSON is `value`, with PLACE where the text belongs."""
        before, _, after = as_json(value).partition(as_json(PLACE))
        return cls(start + before, after + b"\n\n")

    def filled(self, text: str) -> bytes:
        """The event with a text."""
        return self._before + as_json(text) + self._after
