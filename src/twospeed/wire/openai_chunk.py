"""The object that OpenAI-style chat and completion answers share, whole or in chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twospeed.wire.collecting import (
    Message,
    Texts,
    take_error,
    take_finish,
    take_model,
    take_progress,
    take_texts,
    take_timings,
    take_usage,
)
from twospeed.wire.json_values import get_dict, get_dicts, get_int, get_str
from twospeed.wire.reading import StreamReading


def read_chunk(
    reading: StreamReading, message: Message, texts_of: Callable[[dict[str, Any]], Texts]
) -> None:
    """Enter one chunk, or a whole answer, into the reading.

    A chunk with choices that neither speak, nor finish, nor report progress counts as empty:
    the early role-only chunk, and a token that is only part of a character.

    Args:
        reading: what is being filled.
        message: the chunk.
        texts_of: the text of one of its choices.
    """
    chunk = message.value
    take_error(reading, message)
    take_model(reading, get_str(chunk, "model"))
    usage = get_dict(chunk, "usage")
    take_usage(reading, usage)
    take_timings(reading, chunk)
    says_something = take_progress(reading, message)
    choices = get_dicts(chunk, "choices")
    for choice in choices:
        spoke = take_texts(
            reading,
            message,
            texts_of(choice),
            output_tokens=get_int(usage, "completion_tokens"),
        )
        finished = take_finish(reading, message, get_str(choice, "finish_reason"))
        says_something = says_something or spoke or finished
    if choices and not says_something:
        reading.empty_events += 1
