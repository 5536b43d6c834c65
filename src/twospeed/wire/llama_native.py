"""Dialect of llama-server's own /completion: events without names, the last with `stop: true`.

There is no usage object here: the counts of the final event stand in for it, with `truncated`,
which tells an exhausted context from a reached limit.
"""

from __future__ import annotations

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
from twospeed.wire.json_values import get_str
from twospeed.wire.reading import StreamReading

_COUNTS = ("tokens_evaluated", "tokens_predicted", "tokens_cached", "truncated")
_OLD_STOPS = (("stopped_limit", "limit"), ("stopped_eos", "eos"), ("stopped_word", "word"))


def read_event(reading: StreamReading, message: Message) -> None:
    """Enter one event of the stream into the reading.

    Args:
        reading: what is being filled.
        message: the event.
    """
    value = message.value
    take_error(reading, message)
    take_model(reading, get_str(value, "model"))
    take_timings(reading, value)
    spoke = take_texts(reading, message, Texts(answer=get_str(value, "content")))
    progressed = take_progress(reading, message)
    if value.get("stop") is True:
        take_usage(reading, {key: value[key] for key in _COUNTS if key in value})
        take_finish(reading, message, _stop_reason(value))
        reading.done = True
    elif "content" in value and not spoke and not progressed:
        reading.empty_events += 1


def read_body(reading: StreamReading, message: Message) -> None:
    """Enter an answer that came whole into the reading: it looks like the final event.

    Args:
        reading: what is being filled.
        message: the answer, at the moment of its end.
    """
    read_event(reading, message)


def _stop_reason(value: dict[str, Any]) -> str:
    # Builds before 2025 have one flag for each reason instead of stop_type.
    old = next((reason for key, reason in _OLD_STOPS if value.get(key) is True), "")
    return get_str(value, "stop_type") or old or "stop"
