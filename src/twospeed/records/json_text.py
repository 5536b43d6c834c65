"""JSON that can always be written, whatever a server or a file system gave as a name."""

from __future__ import annotations

import msgspec


def encoded(value: object) -> bytes:
    """The value as JSON; half a character becomes "?", a number that is not finite null."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a file name that is not UTF-8, or half an escape of a server
        return msgspec.json.encode(_without_half_characters(msgspec.to_builtins(value)))


def _without_half_characters(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _without_half_characters(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_half_characters(item) for item in value]
    return value
