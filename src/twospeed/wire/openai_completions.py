"""Dialect of /v1/completions: the text of each choice stands directly in it."""

from __future__ import annotations

from typing import Any

from twospeed.wire.collecting import Message, Texts
from twospeed.wire.json_values import get_str
from twospeed.wire.openai_chunk import read_chunk
from twospeed.wire.reading import StreamReading


def read_event(reading: StreamReading, message: Message) -> None:
    """Enter one chunk of the stream into the reading.

    Args:
        reading: what is being filled.
        message: the chunk.
    """
    read_chunk(reading, message, _texts_of)


def read_body(reading: StreamReading, message: Message) -> None:
    """Enter an answer that came whole into the reading.

    Args:
        reading: what is being filled.
        message: the answer, at the moment of its end.
    """
    read_chunk(reading, message, _texts_of)


def _texts_of(choice: dict[str, Any]) -> Texts:
    return Texts(answer=get_str(choice, "text"))
