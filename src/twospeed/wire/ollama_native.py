"""Dialect of Ollama's /api/chat and /api/generate: one JSON object a line, clocks in the last."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from twospeed.records.request_record import TextKind
from twospeed.wire.collecting import (
    Message,
    Texts,
    take_aside,
    take_error,
    take_finish,
    take_model,
    take_texts,
)
from twospeed.wire.json_values import as_text, get_dict, get_dicts, get_str
from twospeed.wire.reading import StreamReading, TextEvent

_TEXT_KEYS = ("message", "response", "thinking", "context")


class _Said(Struct, frozen=True, gc=False):
    """A message with nothing in it but answer text or reasoning."""

    content: str | None = None
    thinking: str | None = None
    tool_calls: tuple[()] | None = None


class _Line(Struct, frozen=True, gc=False):
    """A line in mid-stream of a chat; whatever means more than text has no room here."""

    message: _Said
    model: str | None = None
    object: str | None = None
    type: str | None = None
    done: bool = False
    response: None = None
    thinking: None = None
    error: None = None


_line_of = msgspec.json.Decoder(_Line).decode


def read_plain(reading: StreamReading, raw: bytes, at_ns: int, read: int) -> bool:
    """Enter a line that holds one piece of text and nothing else; decline all others.

    Args:
        reading: what is being filled.
        raw: the line.
        at_ns: its stamp.
        read: index of its socket read.
    """
    try:
        line = _line_of(raw)
    except (ValueError, RecursionError):
        return False
    said = line.message
    named = line.object == "error" or line.type == "error"
    if named or line.done or bool(said.content) == bool(said.thinking):
        return False
    if reading.model is None:
        take_aside(reading, line.model, None)
    kind: TextKind = "reasoning" if said.thinking else "answer"
    text = said.thinking or said.content or ""
    reading.text.append(TextEvent(at_ns=at_ns, read=read, kind=kind, text=text))
    return True


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
