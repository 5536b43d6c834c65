"""Dialect of Ollama's /api/chat and /api/generate: one JSON object a line, clocks in the last."""

from __future__ import annotations

from typing import Any

from twospeed.wire.collecting import (
    Message,
    Texts,
    take_error,
    take_finish,
    take_model,
    take_texts,
)
from twospeed.wire.json_values import as_text, get_dict, get_dicts, get_str
from twospeed.wire.reading import StreamReading

_TEXT_KEYS = ("message", "response", "thinking", "context")


def read_event(reading: StreamReading, message: Message) -> None:
    """Enter one line of the stream into the reading.

    The final object goes whole into `timings`, except for its text: its counts and durations
    belong together.

    Args:
        reading: what is being filled.
        message: the line.
    """
    value = message.value
    take_error(reading, message)
    take_model(reading, get_str(value, "model"))
    spoke = take_texts(reading, message, _texts_of(value))
    if value.get("done") is True:
        reading.timings = {k: v for k, v in value.items() if k not in _TEXT_KEYS}
        take_finish(reading, message, get_str(value, "done_reason"))
        reading.finish_ns = message.at_ns
        reading.done = True
    elif not spoke and ("message" in value or "response" in value):
        reading.empty_events += 1


def read_body(reading: StreamReading, message: Message) -> None:
    """Enter an answer that came whole into the reading: it looks like the final line.

    Args:
        reading: what is being filled.
        message: the answer, at the moment of its end.
    """
    read_event(reading, message)


def _texts_of(value: dict[str, Any]) -> Texts:
    said = get_dict(value, "message")
    calls = [get_dict(call, "function") for call in get_dicts(said, "tool_calls")]
    return Texts(
        answer=get_str(said, "content") + get_str(value, "response"),
        reasoning=get_str(said, "thinking") + get_str(value, "thinking"),
        tool="".join(get_str(call, "name") + as_text(call.get("arguments")) for call in calls),
    )
