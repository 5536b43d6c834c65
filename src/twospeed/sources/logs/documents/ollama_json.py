"""Answers of Ollama's own API, whose last object holds counts and nanoseconds.

One object, one per line of a stream, or as Open WebUI shows them; `/api/ps` tells where the model
lies. `total_duration` less the parts is seconds only when the request waited: from one second on
that rest is taken as the queue.

| text | tells | cannot tell |
|---|---|---|
| Ollama answer | both phases, load, whole time, long waiting | cached tokens before autumn 2026 |

    {"model": "heron:8b", "done": true, "total_duration": 3440003643,
     "load_duration": 66312403, "prompt_eval_count": 388, "prompt_eval_duration": 423074006,
     "eval_count": 140, "eval_duration": 2943752852}
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from twospeed.records.request_record import RequestRecord, ServerTimes
from twospeed.runtimes.fields import context_tokens, counted_tokens, number, text, whole
from twospeed.runtimes.ollama import Ollama
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.requests import Requests, common
from twospeed.wire.reading import StreamReading

SHORTEST_QUEUE_S = 1.0
"""Less is templates, tokenizing and the network."""
_DURATIONS = ("eval_duration", "prompt_eval_duration", "total_duration")


def recognises(text: str) -> bool:
    """By its durations, or by the part of a loaded model that is in graphics memory."""
    return "eval_duration" in text or "size_vram" in text or '"load_duration"' in text


def read(text: str) -> Content | None:
    """One record per last object, and the sizes of loaded models."""
    requests, names, content = Requests(), [], Content(runtime="ollama")
    known = False
    for found in wanted_in(text, _is_wanted):
        if not is_final(found.value):
            known = True
            _learn_sizes(content, found.value)
            continue
        record = _record(found.value, found.line)
        if record is not None:
            names.append(record.model)
            requests.add(record, key=_identity(found.value))
    content.records, content.model = requests.records, common(names)
    return content if content.records or known else None


def is_final(value: Json) -> bool:
    """Whether the object is the last one of an answer."""
    return value.get("done") is not False and any(
        number(value, name) is not None for name in _DURATIONS
    )


def _is_wanted(value: Json) -> bool:
    return is_final(value) or (whole(value, "size_vram") is not None and "size" in value)


def _record(value: Json, line: int) -> RequestRecord | None:
    ollama, reading = Ollama(), StreamReading(usage=dict(value))
    counts = ollama.counts(reading)
    times = ollama.server_times(reading, counts)
    if times is None:
        return None
    return RequestRecord(
        number=0,
        model=_name(value),
        counts=counts,
        server=replace(times, queue_s=_queue_s(times)),
        finish_reason=text(value, "done_reason"),
        line=line,
    )


def _queue_s(times: ServerTimes) -> float | None:
    """Waiting before the load, which no field tells."""
    if times.total_s is None or times.prefill_s is None or times.decode_s is None:
        return None
    rest = times.total_s - (times.load_s or 0.0) - times.prefill_s - times.decode_s
    return rest if rest >= SHORTEST_QUEUE_S else None


def _learn_sizes(content: Content, value: Json) -> None:
    content.learn(
        size_bytes=whole(value, "size"),
        size_vram_bytes=whole(value, "size_vram"),
        n_ctx=context_tokens(value, "context_length"),
        quantization=text(value, "details", "quantization_level"),
    )


def _identity(value: Json) -> Hashable:
    names = (*_DURATIONS, "load_duration")
    return (counted_tokens(value, "eval_count"), *(number(value, name) for name in names))


def _name(value: Json) -> str | None:
    found = text(value, "model")
    return found[:200] if found else None
