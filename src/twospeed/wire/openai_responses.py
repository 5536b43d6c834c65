"""Dialect of /v1/responses: typed events around one response object that grows.

transformers serve leaves the event names out, so the type inside the data decides.
"""

from __future__ import annotations

from typing import Any

from twospeed.wire.collecting import (
    Message,
    Texts,
    joined,
    parted_text,
    take_error,
    take_finish,
    take_model,
    take_texts,
    take_timings,
    take_usage,
)
from twospeed.wire.json_values import as_text, get_dict, get_dicts, get_str
from twospeed.wire.reading import StreamReading

_ANSWER_DELTAS = ("response.output_text.delta", "response.refusal.delta")
_REASONING_DELTAS = (
    "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning.delta",
)
_TOOL_DELTAS = (
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
    "response.mcp_call_arguments.delta",
)
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def read_event(reading: StreamReading, message: Message) -> None:
    """Enter one event of the stream into the reading.

    Args:
        reading: what is being filled.
        message: the event.
    """
    kind = get_str(message.value, "type") or message.name or ""
    take_error(reading, message)
    take_timings(reading, message.value)
    take_model(reading, get_str(get_dict(message.value, "response"), "model"))
    if kind.endswith(".delta"):
        _read_delta(reading, message, kind)
    elif kind == "response.output_item.added":
        name = _call_text(get_dict(message.value, "item"))
        take_texts(reading, message, Texts(tool=name))
    elif kind in _ENDS:
        _read_end(reading, message, get_dict(message.value, "response"))
        reading.done = True


def read_body(reading: StreamReading, message: Message) -> None:
    """Enter an answer that came whole into the reading.

    Args:
        reading: what is being filled.
        message: the answer, at the moment of its end.
    """
    items = get_dicts(message.value, "output")
    take_texts(reading, message, joined(_item_texts(item) for item in items))
    take_model(reading, get_str(message.value, "model"))
    _read_end(reading, message, message.value)


def _read_delta(reading: StreamReading, message: Message, kind: str) -> None:
    text = get_str(message.value, "delta")
    if kind in _ANSWER_DELTAS:
        texts = Texts(answer=text)
    elif kind in _REASONING_DELTAS:
        texts = Texts(reasoning=text)
    elif kind in _TOOL_DELTAS:
        texts = Texts(tool=text)
    else:
        return
    if not take_texts(reading, message, texts):
        reading.empty_events += 1


def _read_end(reading: StreamReading, message: Message, response: dict[str, Any]) -> None:
    take_usage(reading, get_dict(response, "usage"))
    take_timings(reading, response)
    take_timings(reading, message.value)
    # The response carries its own error, below the event that ends the stream.
    nested = Message(at_ns=message.at_ns, read=message.read, value=response)
    take_error(reading, nested)
    reason = get_str(get_dict(response, "incomplete_details"), "reason")
    take_finish(reading, message, reason or get_str(response, "status"))


def _item_texts(item: dict[str, Any]) -> Texts:
    kind = get_str(item, "type")
    if kind == "reasoning":
        parts = parted_text(item.get("content") or item.get("summary"))
        return Texts(reasoning=parts.reasoning + parts.answer)
    if kind.endswith("_call"):
        return Texts(tool=_call_text(item))
    return parted_text(item.get("content"))


def _call_text(item: dict[str, Any]) -> str:
    return get_str(item, "name") + as_text(item.get("arguments") or item.get("input"))
