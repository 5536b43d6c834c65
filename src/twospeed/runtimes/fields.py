"""Typed looks into JSON of unknown make: a wrong type or an impossible value is unknown, None.

Endpoints are strangers. A count may be a string, a time negative or infinite, an object a list;
none of that may raise or pass for a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LARGEST_WHOLE = 2**53
"""The last whole number that every JSON reader keeps exactly; nothing counted here is larger."""
MOST_TOKENS = 10**9
"""Of one request or context: a thousand times what any model takes."""
SHORTEST_S = 1e-9
LONGEST_S = 1e9
"""Thirty years: beyond both, a number is an accident and no duration."""


def at(value: object, *path: str) -> object:
    """What lies under the keys of `path`; None where the way ends early."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def whole(value: object, *path: str) -> int | None:
    """A count: a whole number that is not negative."""
    found = at(value, *path)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if 0 <= found <= LARGEST_WHOLE else None


def counted_tokens(value: object, *path: str) -> int | None:
    """A count of tokens that one request can have."""
    found = whole(value, *path)
    return found if found is not None and found <= MOST_TOKENS else None


def context_tokens(value: object, *path: str) -> int | None:
    """A context size: 0 stands for "not set" in every runtime here."""
    return counted_tokens(value, *path) or None


def number(value: object, *path: str) -> float | None:
    """A finite number that is not negative."""
    found = at(value, *path)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    if isinstance(found, int):
        return float(found) if 0 <= found <= LARGEST_WHOLE else None
    return found if math.isfinite(found) and found >= 0 else None


def text(value: object, *path: str) -> str | None:
    """A string that is not empty."""
    found = at(value, *path)
    return found if isinstance(found, str) and found else None


def flag(value: object, *path: str) -> bool | None:
    """A truth value."""
    found = at(value, *path)
    return found if isinstance(found, bool) else None


def objects(value: object, *path: str) -> list[Mapping[str, Any]]:
    """The objects of a list; other entries are left out, and what is no list is empty."""
    found = at(value, *path)
    if not isinstance(found, list):
        return []
    return [entry for entry in found if isinstance(entry, Mapping)]


def duration_s(value: object, key: str, *, per_second: float = 1.0) -> float | None:
    """A time that really passed, in seconds: 0 stands for "not measured" in every runtime here.

    Args:
        value: the object that holds it.
        key: its name there.
        per_second: how many of its units make a second (1e3 for ms, 1e9 for ns).
    """
    seconds = (number(value, key) or 0) / per_second
    return seconds if SHORTEST_S <= seconds <= LONGEST_S else None
