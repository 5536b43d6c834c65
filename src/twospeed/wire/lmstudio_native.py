"""Dialect of LM Studio's /api/v1/chat: named events for load, prompt processing and answer.

Source: https://lmstudio.ai/docs/developer/rest/streaming-events (repository lmstudio-ai/docs).
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
    take_usage,
)
from twospeed.wire.json_values import as_text, get_dict, get_dicts, get_float, get_str
from twospeed.wire.reading import Stage, StreamReading

_STAGES = ("model_load.", "prompt_processing.")


def read_event(reading: StreamReading, message: Message) -> None:
    """Enter one event of the stream into the reading.

    Args:
        reading: what is being filled.
        message: the event.
    """
    value = message.value
    kind = get_str(value, "type") or message.name or ""
    take_error(reading, message)
    take_model(reading, get_str(value, "model_instance_id"))
    if kind.startswith(_STAGES):
        _read_stage(reading, message, kind)
    elif kind.endswith(".delta"):
        _read_delta(reading, message, kind)
    elif kind in ("tool_call.start", "tool_call.arguments"):
        # The arguments come whole, with the tool named again.
        named = get_str(value, "tool") if kind == "tool_call.start" else ""
        take_texts(reading, message, Texts(tool=named + as_text(value.get("arguments"))))
    elif kind == "chat.end":
        _read_end(reading, message, get_dict(value, "result"))
        reading.done = True


def read_body(reading: StreamReading, message: Message) -> None:
    """Enter an answer that came whole into the reading.

    Args:
        reading: what is being filled.
        message: the answer, at the moment of its end.
    """
    take_error(reading, message)
    items = get_dicts(message.value, "output")
    take_texts(reading, message, joined(_item_texts(item) for item in items))
    _read_end(reading, message, message.value)


def _read_stage(reading: StreamReading, message: Message, kind: str) -> None:
    progress_frac = get_float(message.value, "progress")
    stage = Stage(at_ns=message.at_ns, name=kind, progress_frac=progress_frac)
    reading.stages.append(stage)
    if kind == "model_load.end":
        load_s = get_float(message.value, "load_time_seconds")
        if load_s is not None:
            reading.timings = {**(reading.timings or {}), "model_load_time_seconds": load_s}


def _read_delta(reading: StreamReading, message: Message, kind: str) -> None:
    text = get_str(message.value, "content")
    texts = Texts(reasoning=text) if kind == "reasoning.delta" else Texts(answer=text)
    if not take_texts(reading, message, texts):
        reading.empty_events += 1


def _read_end(reading: StreamReading, message: Message, result: dict[str, Any]) -> None:
    stats = get_dict(result, "stats")
    take_model(reading, get_str(result, "model_instance_id"))
    take_usage(reading, {k: v for k, v in stats.items() if k.endswith("_tokens")})
    if stats:
        reading.timings = {**(reading.timings or {}), **stats}
    take_finish(reading, message, get_str(stats, "stop_reason"))
    reading.finish_ns = message.at_ns


def _item_texts(item: dict[str, Any]) -> Texts:
    kind = get_str(item, "type")
    if kind == "reasoning":
        return Texts(reasoning=get_str(item, "content"))
    if kind == "tool_call":
        return Texts(tool=get_str(item, "tool") + as_text(item.get("arguments")))
    return Texts(answer=get_str(item, "content"))
