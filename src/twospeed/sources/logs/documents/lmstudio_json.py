"""Statistics of LM Studio: REST v0 and v1, and the SDK.

The time to the first token may hold waiting and is no prefill time. Where `generation_time` is
missing, decode is tokens / `tokens_per_second`.

| text | tells | cannot tell |
|---|---|---|
| LM Studio answer | first token, decode, load when it loaded | prefill alone, cached tokens |

    {"usage": {"prompt_tokens": 930, "completion_tokens": 390},
     "stats": {"tokens_per_second": 51.06, "time_to_first_token": 1.713,
               "generation_time": 7.523, "stop_reason": "eosFound"}}
"""

from __future__ import annotations

from typing import NamedTuple

from twospeed.records.request_record import ClientTimes, RequestRecord, ServerTimes, TokenCounts
from twospeed.runtimes.fields import (
    LONGEST_S,
    context_tokens,
    counted_tokens,
    duration_s,
    number,
    text,
)
from twospeed.runtimes.phases import after_first, phase_times
from twospeed.runtimes.usage import part_of
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.requests import Requests, common

_BACKENDS = ("cuda", "metal", "vulkan", "rocm")


class _Names(NamedTuple):
    """How one interface spells the statistics."""

    first_token: str
    speed: str
    prompt: str
    output: str
    reasoning: str
    generation: str
    load: str
    total: str


_FORMS = (
    _Names(
        "time_to_first_token_seconds",
        "tokens_per_second",
        "input_tokens",
        "total_output_tokens",
        "reasoning_output_tokens",
        "",
        "model_load_time_seconds",
        "",
    ),
    _Names(
        "timeToFirstTokenSec",
        "tokensPerSecond",
        "promptTokensCount",
        "predictedTokensCount",
        "",
        "",
        "",
        "totalTimeSec",
    ),
    _Names(
        "time_to_first_token",
        "tokens_per_second",
        "prompt_tokens",
        "completion_tokens",
        "",
        "generation_time",
        "",
        "",
    ),
)


def recognises(text: str) -> bool:
    """By the names of the first-token time beside its speed."""
    return (
        "time_to_first_token" in text and "tokens_per_second" in text
    ) or "timeToFirstTokenSec" in text


def read(text: str) -> Content | None:
    """One record per object with statistics."""
    requests, names, content = Requests(), [], Content(runtime="lmstudio")
    for found in wanted_in(text, has_stats):
        record = _record(found.value, found.line)
        if record is None:
            continue
        names.append(record.model)
        requests.add(record, key=_id(found.value) or record.server)
        _learn(content, found.value)
    content.records, content.model = requests.records, common(names)
    return content if content.records else None


def has_stats(value: Json) -> bool:
    """Whether the object is an answer with statistics, or these themselves."""
    return _form_of(value) is not None


def _form_of(value: Json) -> tuple[Json, _Names] | None:
    """The object that holds the statistics, and their spelling; only with a speed beside."""
    inner = value.get("stats")
    for stats in (inner, value):
        for names in _FORMS:
            if (
                isinstance(stats, dict)
                and number(stats, names.first_token) is not None
                and number(stats, names.speed) is not None
            ):
                return stats, names
    return None


def _record(value: Json, line: int) -> RequestRecord | None:
    form = _form_of(value)
    if form is None:
        return None
    stats, names = form
    counts = _counts(value, stats, names)
    return RequestRecord(
        number=0,
        model=_short(text(value, "model") or text(value, "model_instance_id")),
        counts=counts,
        client=ClientTimes(
            ttft_s=duration_s(stats, names.first_token),
            ttft_is_upper_bound=True,  # it holds waiting
        ),
        server=_times(stats, names, counts.output_tokens),
        finish_reason=text(stats, "stop_reason") or text(stats, "stopReason"),
        line=line,
    )


def _counts(value: Json, stats: Json, names: _Names) -> TokenCounts:
    usage = value.get("usage")
    counted = usage if isinstance(usage, dict) else stats
    output = counted_tokens(counted, names.output)
    return TokenCounts(
        prompt_tokens=counted_tokens(counted, names.prompt),
        output_tokens=output,
        reasoning_tokens=part_of(counted_tokens(stats, names.reasoning), output),
    )


def _times(stats: Json, names: _Names, output: int | None) -> ServerTimes | None:
    decode_s, steps = duration_s(stats, names.generation), after_first(output)
    speed = number(stats, names.speed)
    if decode_s is None and speed and output and output > 1 and output / speed <= LONGEST_S:
        decode_s, steps = output / speed, output
    return phase_times(
        "stats",
        load_s=duration_s(stats, names.load),
        decode_s=decode_s,
        decode_steps=steps,
        total_s=duration_s(stats, names.total),
    )


def _learn(content: Content, value: Json) -> None:
    program = (text(value, "runtime", "name") or "").casefold()
    content.learn(
        n_ctx=context_tokens(value, "model_info", "context_length"),
        quantization=_short(text(value, "model_info", "quant")),
        backend=next((name for name in _BACKENDS if name in program), None),
        reports_cached_tokens=False,
    )


def _id(value: Json) -> str | None:
    return text(value, "id") or text(value, "response_id")


def _short(word: str | None) -> str | None:
    return word[:200] if word else None
