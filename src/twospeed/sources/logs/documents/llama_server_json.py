"""Answers of llama-server: the `timings` object, alone, in an answer, or in a captured stream.

Open WebUI shows the same numbers flat beside the usage. `prompt_n` counts new tokens, `cache_n`
reused ones (missing in old builds); `predicted_ms` starts at the first token.

| text | tells | cannot tell |
|---|---|---|
| llama-server answer | both phases, cached tokens, per request | waiting, whole time |

    {"usage": {"prompt_tokens": 611, "completion_tokens": 96},
     "timings": {"cache_n": 209, "prompt_n": 402, "prompt_ms": 222.98,
                 "predicted_n": 96, "predicted_ms": 1510.32}}
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from msgspec.structs import replace

from twospeed.records.request_record import RequestRecord, ServerSigns, TokenCounts
from twospeed.runtimes.fields import at, counted_tokens, number, text
from twospeed.runtimes.llama_timings import completed_by, llama_times
from twospeed.runtimes.usage import part_of, token_counts
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.requests import Requests, common


def recognises(text: str) -> bool:
    """By the names of its times, which others copy only with their meaning."""
    return "predicted_ms" in text or "prompt_ms" in text


def read(text: str) -> Content | None:
    """One record per request with times; pieces of a stream and repeated numbers are one."""
    requests, names = Requests(), []
    keys: dict[Hashable, Hashable] = {}
    for found in wanted_in(text, has_timings):
        record = _record(found.value, found.line)
        if record is None:
            continue
        times = _identity(found.value)
        if times in keys and record.counts.prompt_tokens is None:
            continue
        names.append(record.model)
        requests.add(record, key=keys.setdefault(times, answer_key(found.value) or times))
    if not requests.records:
        return None
    return Content(runtime="llama-server", model=common(names), records=requests.records)


def answer_key(value: Json) -> str | None:
    """The identifier that pieces of one stream share; a whole answer needs none."""
    named = _text(value, "id")
    return named if named and str(value.get("object"))[-5:] == "chunk" else None


def has_timings(value: Json) -> bool:
    """Whether the object is an answer with times, or these times themselves."""
    return "predicted_ms" in value or "prompt_ms" in value or _has_phases(value.get("timings"))


def _has_phases(value: object) -> bool:
    return isinstance(value, dict) and ("predicted_ms" in value or "prompt_ms" in value)


def _record(value: Json, line: int) -> RequestRecord | None:
    timings = _timings(value)
    if value.get("stop") is False:  # a piece of a stream that tells its times as it goes
        return None
    times = llama_times(timings)
    if times is None:
        return None
    counts = _counts(value, timings)
    return RequestRecord(
        number=0,
        model=_text(value, "model"),
        counts=counts,
        server=times,
        signs=_signs(value, timings),
        finish_reason=_finish_reason(value),
        line=line,
    )


def _counts(value: Json, timings: Json) -> TokenCounts:
    """By usage or the fields of the native answer, and by the times.

    Builds without `cache_n` tell the whole prompt and what was processed of it.
    """
    inner = value.get("usage")
    usage = inner if isinstance(inner, dict) else value
    if "tokens_evaluated" in value and "prompt_tokens" not in usage:
        usage = {
            "prompt_tokens": value.get("tokens_evaluated"),
            "completion_tokens": value.get("tokens_predicted"),
        }
    counts = completed_by(token_counts(usage, zero_cached_is_known=True), timings)
    prompt, processed = counts.prompt_tokens, counted_tokens(timings, "prompt_n")
    if counts.cached_prompt_tokens is None and prompt is not None and processed is not None:
        return replace(counts, cached_prompt_tokens=part_of(max(prompt - processed, 0), prompt))
    return counts


def _timings(value: Json) -> dict[str, Any]:
    inner = value.get("timings")
    return inner if isinstance(inner, dict) else dict(value)


def _signs(value: Json, timings: Json) -> ServerSigns | None:
    drafted = counted_tokens(timings, "draft_n")
    accepted = part_of(counted_tokens(timings, "draft_n_accepted"), drafted)
    slot = counted_tokens(value, "id_slot")
    cut = True if value.get("truncated") is True else None
    if drafted is None and slot is None and cut is None:
        return None
    return ServerSigns(slot=slot, drafted_tokens=drafted, accepted_tokens=accepted, context_cut=cut)


def _finish_reason(value: Json) -> str | None:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return text(first, "finish_reason")


def _identity(value: Json) -> Hashable:
    """Times to a microsecond: two requests never share all of them."""
    timings = _timings(value)
    names = ("prompt_n", "prompt_ms", "predicted_n", "predicted_ms")
    return tuple(number(timings, name) for name in names)


def _text(value: Json, name: str) -> str | None:
    found = at(value, name)
    return found[:200] if isinstance(found, str) and found else None
