"""Dialect of /v1/messages: named events around content blocks.

Usage comes in two parts. llama-server counts only uncached tokens as `input_tokens`; vLLM sends the
whole prompt first and the uncached rest at the end: the later part is merged over the earlier.
"""

from __future__ import annotations

from typing import Any

from twospeed.wire.collecting import (
    Message,
    Texts,
    joined,
    take_error,
    take_finish,
    take_model,
    take_texts,
    take_timings,
    take_usage,
)
from twospeed.wire.json_values import as_text, get_dict, get_dicts, get_str
from twospeed.wire.reading import StreamReading

_TEXT_DELTAS = ("text_delta", "thinking_delta", "input_json_delta")


def read_event(reading: StreamReading, message: Message) -> None:
    """Enter one event of the stream into the reading.

    Args:
        reading: what is being filled.
        message: the event.
    """
    value = message.value
    kind = get_str(value, "type") or message.name or ""
    take_error(reading, message)
    take_timings(reading, value)
    if kind == "message_start":
        _read_start(reading, get_dict(value, "message"))
    elif kind == "content_block_start":
        take_texts(reading, message, _block_texts(get_dict(value, "content_block")))
    elif kind == "content_block_delta":
        _read_delta(reading, message, get_dict(value, "delta"))
    elif kind == "message_delta":
        take_usage(reading, get_dict(value, "usage"))
        take_finish(reading, message, get_str(get_dict(value, "delta"), "stop_reason"))
    elif kind == "message_stop":
        reading.done = True
    elif kind == "ping":
        reading.keepalives.append((message.at_ns, "ping"))


def read_body(reading: StreamReading, message: Message) -> None:
    """Enter an answer that came whole into the reading.

    Args:
        reading: what is being filled.
        message: the answer, at the moment of its end.
    """
    value = message.value
    take_error(reading, message)
    blocks = get_dicts(value, "content")
    take_texts(reading, message, joined(_block_texts(block) for block in blocks))
    _read_start(reading, value)
    take_timings(reading, value)
    take_finish(reading, message, get_str(value, "stop_reason"))


def _read_start(reading: StreamReading, start: dict[str, Any]) -> None:
    take_model(reading, get_str(start, "model"))
    take_usage(reading, get_dict(start, "usage"))


def _read_delta(reading: StreamReading, message: Message, delta: dict[str, Any]) -> None:
    texts = Texts(
        answer=get_str(delta, "text"),
        reasoning=get_str(delta, "thinking"),
        tool=get_str(delta, "partial_json"),
    )
    # A signature closes a thinking block; it is no token.
    if not take_texts(reading, message, texts) and delta.get("type") in _TEXT_DELTAS:
        reading.empty_events += 1


def _block_texts(block: dict[str, Any]) -> Texts:
    tool = get_str(block, "name") + as_text(block.get("input"))
    return Texts(answer=get_str(block, "text"), reasoning=get_str(block, "thinking"), tool=tool)
