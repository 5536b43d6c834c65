"""The simulator's own tokenizer and chat template: small, lossless and the same everywhere.

A word with the space before it is one token, as is a run of up to three digits or marks; ids are
a checksum of the piece. One function counts for usage, timings, `/tokenize` and the prompt cache,
so these never contradict each other.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

PIECE = re.compile(r" ?[^\W\d_]{1,12}|\d{1,3}| ?[^\s\w]{1,3}|_{1,8}|\s{1,16}")

VOCABULARY = 131_072
BOS, START, END, NEWLINE = range(VOCABULARY, VOCABULARY + 4)
ALL_IDS = VOCABULARY + 4
TEMPLATE_HEAD_TOKENS = 4
"""Shared by every chat that opens with the same role: a cold prompt is never quite cold."""


class _Ids(dict[str, int]):
    """Ids by piece, computed once per piece and forgotten before they grow without bound."""

    def __missing__(self, piece: str) -> int:
        if len(self) > VOCABULARY:
            self.clear()
        found = self[piece] = crc32(piece.encode("utf-8", "surrogatepass")) % VOCABULARY
        return found


_IDS = _Ids()


def pieces(text: str) -> list[str]:
    """The text cut into tokens; joined they are the text again."""
    return PIECE.findall(text)


def encode(text: str) -> array[int]:
    """Token ids of a text."""
    return array("I", map(_IDS.__getitem__, PIECE.findall(text)))


def ids_of(parts: Iterable[str]) -> array[int]:
    """Token ids of pieces that are tokens already."""
    return array("I", map(_IDS.__getitem__, parts))


def render_chat(
    messages: Iterable[tuple[str, str]], tools: str = "", *, answer: bool = True
) -> array[int]:
    """Token ids of a conversation.

    Args:
        messages: role and text of each.
        tools: description of the tools, placed before all messages.
        answer: end with the opening of the answer.
    """
    tokens = array("I", (BOS,))
    if tools:
        messages = (("system", tools), *messages)
    for role, text in messages:
        tokens.extend((START, _IDS[role], NEWLINE))
        tokens.extend(encode(text))
        tokens.append(END)
    if answer:
        tokens.extend((START, _IDS["assistant"], NEWLINE))
    return tokens


def text_of(content: object) -> str | None:
    """Text of a message's content: a string, a list of parts, or nothing.

    Returns:
        None when it is none of these.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    return "".join(_text_of_part(part) for part in content)


def _text_of_part(part: object) -> str:
    if isinstance(part, str):
        return part
    found: Any = part.get("text") if isinstance(part, Mapping) else None
    return found if isinstance(found, str) else ""
