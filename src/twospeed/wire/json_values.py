"""JSON as untrusted servers write it: a value of the expected type, or nothing.

Runtimes differ in what they send, and a proxy can send anything. Reading a response must never
fail for that, so every access states the type it can use.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec


class NotJsonError(ValueError):
    """The text is not JSON."""


def decode(text: str) -> Any:  # noqa: ANN401 - JSON has any shape
    """Value of a JSON text.

    Python servers write NaN and JavaScript servers write halves of surrogate pairs; both are
    refused by the fast decoder and accepted by the slow one. NaN is unknown, so it becomes None.

    Args:
        text: one JSON value.

    Raises:
        NotJsonError: it is not JSON, or nested too deeply to be an answer.
    """
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(text, parse_constant=_unknown)
    except (ValueError, RecursionError) as error:
        raise NotJsonError(str(error)) from error


def _unknown(_name: str) -> None:
    return None


def get_str(value: dict[str, Any], key: str) -> str:
    """String under a key, empty when there is none.

    Args:
        value: a JSON object.
        key: its member.
    """
    found = value.get(key)
    if not isinstance(found, str):
        return ""
    # A lone surrogate could neither be printed nor saved.
    return found if found.isascii() else found.encode("utf-8", "replace").decode("utf-8")


def get_dict(value: dict[str, Any], key: str) -> dict[str, Any]:
    """Object under a key, empty when there is none.

    Args:
        value: a JSON object.
        key: its member.
    """
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def get_dicts(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Objects in the array under a key; other elements are passed over.

    Args:
        value: a JSON object.
        key: its member.
    """
    found = value.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def get_int(value: dict[str, Any], key: str) -> int | None:
    """Whole number under a key; None when there is none.

    Args:
        value: a JSON object.
        key: its member.
    """
    found = value.get(key)
    if isinstance(found, bool):
        return None
    if isinstance(found, float) and found.is_integer():
        return int(found)
    return found if isinstance(found, int) else None


def get_float(value: dict[str, Any], key: str) -> float | None:
    """Number under a key; None when there is none.

    Args:
        value: a JSON object.
        key: its member.
    """
    found = value.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        return float(found)
    except OverflowError:
        return None


def as_text(value: object) -> str:
    """Text as it is; an object or array as compact JSON; empty for nothing.

    Args:
        value: tool-call arguments, which some runtimes send as text and others as an object.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if not value or not isinstance(value, dict | list):
        return ""
    try:
        return json.dumps(value, separators=(",", ":"))
    except (ValueError, RecursionError):
        return ""
