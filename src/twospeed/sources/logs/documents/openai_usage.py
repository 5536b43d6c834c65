"""Usage of OpenAI-compatible answers that tell no llama.cpp times: tokens, seldom seconds.

One answer, several, or a captured stream, whose last usage counts. mistral.rs and TabbyAPI put
seconds of both phases into usage.

| text | tells | cannot tell |
|---|---|---|
| usage of an answer | tokens, cached tokens | times, but for mistral.rs and TabbyAPI |

    {"model": "heron-8b", "usage": {"prompt_tokens": 611, "completion_tokens": 96,
     "total_tokens": 707, "prompt_tokens_details": {"cached_tokens": 512}}}
"""

from __future__ import annotations

from twospeed.records.request_record import RequestRecord, ServerTimes, TokenCounts
from twospeed.runtimes.fields import counted_tokens, duration_s, text
from twospeed.runtimes.phases import after_first, phase_times, uncached
from twospeed.runtimes.usage import token_counts
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents import lmstudio_json, ollama_json
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.llama_server_json import answer_key, has_timings
from twospeed.sources.logs.documents.requests import Requests, common

_SECONDS = (
    ("mistralrs", "total_prompt_time_sec", "total_completion_time_sec", "total_time_sec"),
    ("tabbyapi", "prompt_time", "completion_time", "total_time"),
)
"""Names of prefill, decode and whole time, by the runtime that writes them."""


def recognises(text: str) -> bool:
    """By the count of generated tokens."""
    return "completion_tokens" in text or "output_tokens_details" in text


def read(text: str) -> Content | None:
    """One record per request with usage that no other reader takes."""
    requests, names, told_by = Requests(), [], set[str | None]()
    found = list(wanted_in(text, _is_answer))
    taken = {_id(one.value) for one in found if _is_of_others(one.value)} - {None}
    for one in found:
        if _is_of_others(one.value) or _id(one.value) in taken:
            continue
        usage = _usage(one.value)
        counts = token_counts(usage, zero_cached_is_known=False)
        runtime, times = _times(usage, counts)
        if counts.prompt_tokens is None and counts.output_tokens is None:
            continue
        told_by.add(runtime)
        names.append(_text(one.value, "model"))
        requests.add(
            RequestRecord(number=0, model=names[-1], counts=counts, server=times, line=one.line),
            key=answer_key(one.value) or _answer(one.value, counts),
        )
    if not requests.records:
        return None
    return Content(
        runtime=told_by.pop() if len(told_by) == 1 else None,
        model=common(names),
        records=requests.records,
    )


def _is_answer(value: Json) -> bool:
    return _is_of_others(value) or _usage(value) is not None


def _is_of_others(value: Json) -> bool:
    return has_timings(value) or ollama_json.is_final(value) or lmstudio_json.has_stats(value)


def _usage(value: Json) -> Json | None:
    """The usage object of an answer, or the object itself where only usage was pasted."""
    inner = value.get("usage")
    for one in (inner, value):
        if isinstance(one, dict) and (
            counted_tokens(one, "completion_tokens") is not None
            or ("input_tokens_details" in one and counted_tokens(one, "output_tokens") is not None)
        ):
            return one
    return None


def _times(usage: Json | None, counts: TokenCounts) -> tuple[str | None, ServerTimes | None]:
    for runtime, prefill, decode, total in _SECONDS:
        times = phase_times(
            "usage",
            prefill_s=duration_s(usage, prefill),
            prefill_tokens=uncached(counts),
            decode_s=duration_s(usage, decode),
            decode_steps=after_first(counts.output_tokens),
            total_s=duration_s(usage, total),
        )
        if times is not None:
            return runtime, times
    return None, None


def _answer(value: Json, counts: TokenCounts) -> tuple[str, TokenCounts] | None:
    """A whole answer, by its identifier and counts: some servers number all of them alike."""
    named = _id(value)
    return (named, counts) if named else None


def _id(value: Json) -> str | None:
    return _text(value, "id")


def _text(value: Json, name: str) -> str | None:
    found = text(value, name)
    return found[:200] if found else None
