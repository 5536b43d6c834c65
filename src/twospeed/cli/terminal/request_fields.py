"""Request fields and settings written with commas between them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from twospeed.records.errors import UsageError

_NEXT = re.compile(r",(?=\s*-{0,2}[A-Za-z])")


def parts_of(text: str) -> tuple[str, ...]:
    """`cache-type-k=q8_0,flash-attn=on` one by one.

    A comma inside a value (`tensor-split=3,1`) is one that no name follows.
    """
    return tuple(part.strip() for part in _NEXT.split(text) if part.strip())


def request_fields(text: str) -> dict[str, Any]:
    """Fields of a request: `temperature=0,cache_prompt=true`; values are JSON, else plain text.

    Raises:
        UsageError: no `=`.
    """
    found = {}
    for part in parts_of(text):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise UsageError(f"--request {text}: expected FIELD=VALUE.")
        try:
            found[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            found[name] = value
    return found
