"""How one decoded event enters the reading of a response: the moves that all dialects share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import Struct

from twospeed.records.request_record import TextKind
from twospeed.wire.error_object import stream_error
from twospeed.wire.json_values import as_text, get_dict, get_int, get_str
from twospeed.wire.reading import Progress, StreamError, StreamReading, TextEvent

_CLOCK_OBJECTS = ("timings", "metrics", "stats")
_REASONING_TYPES = ("thinking", "reasoning", "reasoning_text", "summary_text")


class Message(Struct, frozen=True, kw_only=True, gc=False):
    """One event, or a whole body, decoded and stamped."""

    at_ns: int
    read: int
    name: str | None = None
    """Name of the event where the stream names its events."""
    value: dict[str, Any]


class Texts(NamedTuple):
    """The text of one event by kind; empty where it has none."""

    answer: str = ""
    reasoning: str = ""
    tool: str = ""


def joined(texts: Iterable[Texts]) -> Texts:
    """Text of a whole answer from the texts of its items.

    Args:
        texts: the items, in their order.
    """
    items = list(texts)
    return Texts(*("".join(kind) for kind in zip(*items, strict=True))) if items else Texts()


def take_texts(
    reading: StreamReading, message: Message, texts: Texts, *, output_tokens: int | None = None
) -> bool:
    """Add the text of one event; True when there was any (white space is text).

    Args:
        reading: what is being filled.
        message: the event, for its stamp.
        texts: its text.
        output_tokens: generated up to this event, where the event tells.
    """
    # A model reasons before it answers: the order holds when one event carries both.
    kinds: tuple[tuple[TextKind, str], ...] = (
        ("reasoning", texts.reasoning),
        ("answer", texts.answer),
        ("tool", texts.tool),
    )
    for kind, text in kinds:
        if text:
            event = TextEvent(
                at_ns=message.at_ns,
                read=message.read,
                kind=kind,
                text=text,
                output_tokens=output_tokens,
            )
            reading.text.append(event)
    return any(texts)


def take_aside(
    reading: StreamReading, model: str | None, usage: dict[str, Any] | None
) -> int | None:
    """Enter what an event tells besides its text; its running count of output tokens.

    Args:
        reading: what is being filled.
        model: its name, None when the event gives none.
        usage: raw object, None when the event has none.
    """
    if model:
        take_model(reading, model)
    if not usage:
        return None
    take_usage(reading, usage)
    return get_int(usage, "completion_tokens")


def take_finish(reading: StreamReading, message: Message, reason: str) -> bool:
    """Note why and when generation ended, from the first event that says so.

    Args:
        reading: what is being filled.
        message: the event, for its stamp.
        reason: the runtime's word, empty when the event gives none.
    """
    if reason and reading.finish_reason is None:
        reading.finish_reason = reason
        reading.finish_ns = message.at_ns
    return bool(reason)


def take_usage(reading: StreamReading, usage: dict[str, Any]) -> None:
    """Merge a usage object over earlier ones; an unknown never erases a known count.

    Args:
        reading: what is being filled.
        usage: raw object, empty when the event has none.
    """
    if not usage:
        return
    merged = dict(reading.usage or {})
    merged.update({k: v for k, v in usage.items() if v is not None or k not in merged})
    reading.usage = merged


def take_timings(reading: StreamReading, value: dict[str, Any]) -> None:
    """Keep the newest server clock object of an event, if it has one.

    Args:
        reading: what is being filled.
        value: the event, with llama-server's `timings`, vLLM's `metrics` or LM Studio's `stats`.
    """
    for key in _CLOCK_OBJECTS:
        found = get_dict(value, key)
        if found:
            reading.timings = found
            return


def take_progress(reading: StreamReading, message: Message) -> bool:
    """Add llama-server's prefill progress, if the event reports any.

    Args:
        reading: what is being filled.
        message: the event.
    """
    found = get_dict(message.value, "prompt_progress")
    processed, total = get_int(found, "processed"), get_int(found, "total")
    if processed is None or total is None:
        return False
    progress = Progress(
        at_ns=message.at_ns, processed=processed, total=total, cached=get_int(found, "cache")
    )
    reading.progress.append(progress)
    return True


def take_model(reading: StreamReading, name: str) -> None:
    """Note the model that answered, from the first event that names it.

    Args:
        reading: what is being filled.
        name: its name, empty when the event gives none.
    """
    if name and reading.model is None:
        reading.model = name


def take_error(reading: StreamReading, message: Message) -> None:
    """Note the first error object inside the response; what came before it stays.

    Args:
        reading: what is being filled.
        message: the event.
    """
    found = stream_error(message.value, message.name)
    if found is not None and reading.error is None:
        reading.error = StreamError(kind="stream", message=found)


def parted_text(value: object) -> Texts:
    """Text of a content field: a string, or a list of typed parts.

    Args:
        value: the field.
    """
    if not isinstance(value, list):
        return Texts(answer=as_text(value) if isinstance(value, str) else "")
    answer: list[str] = []
    reasoning: list[str] = []
    for part in value:
        if isinstance(part, str):
            answer.append(as_text(part))
        elif isinstance(part, dict):
            target = reasoning if part.get("type") in _REASONING_TYPES else answer
            target.append(_part_text(part))
    return Texts(answer="".join(answer), reasoning="".join(reasoning))


def _part_text(part: dict[str, Any]) -> str:
    for key in ("text", "thinking", "reasoning", "refusal"):
        found = part.get(key)
        if isinstance(found, list):
            return "".join(get_str(item, "text") for item in found if isinstance(item, dict))
        if isinstance(found, str) and found:
            return as_text(found)
    return ""
