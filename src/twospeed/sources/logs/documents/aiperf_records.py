"""AIPerf's `profile_export.jsonl`: one request per line, with the gaps between chunks.

The first-token time holds waiting and network; `usage_prompt_tokens` is what the server counted,
`input_sequence_length` leaves the chat template out.

| text | tells | cannot tell |
|---|---|---|
| AIPerf records | first token, decode, connection, gaps, whole time | queue and prefill apart |

    {"metadata": {"request_start_ns": 1780000000000000000}, "metrics": {
     "time_to_first_token": {"value": 103.6, "unit": "ms"},
     "inter_chunk_latency": {"value": [11.4, 11.6], "unit": "ms"},
     "request_latency": {"value": 126.6, "unit": "ms"},
     "usage_prompt_tokens": {"value": 221, "unit": "tokens"},
     "usage_completion_tokens": {"value": 3, "unit": "tokens"}}}
"""

from __future__ import annotations

from msgspec.structs import replace

from twospeed.records.request_record import RequestRecord
from twospeed.runtimes.fields import at, number
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.client_requests import client_request, most_others
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.requests import Requests

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}


def recognises(text: str) -> bool:
    """By the latency of a request inside its metrics."""
    return '"metrics"' in text and "request_latency" in text


def read(text: str) -> Content | None:
    """One record per request that was not cancelled, warm-up left out."""
    requests, spans, content = Requests(), list[tuple[float, float]](), Content()
    for found in wanted_in(text, _is_request):
        record = _record(found.value, found.line)
        if record is None:
            continue
        requests.add(record, key=_key(found.value))
        if record.client.ttft_s is None:
            content.end_to_end += 1
        spans.append(_span(found.value))
    records = requests.records
    if len(spans) == len(records) and all(end > start for start, end in spans):
        others = most_others(spans)
        records = [
            replace(record, other_requests=count)
            for record, count in zip(records, others, strict=True)
        ]
    content.records = records
    return content if records else None


def _is_request(value: Json) -> bool:
    return at(value, "metrics", "request_latency", "value") is not None and "metadata" in value


def _record(value: Json, line: int) -> RequestRecord | None:
    metadata, metrics = value.get("metadata"), value["metrics"]
    if at(metadata, "was_cancelled") is True or at(metadata, "benchmark_phase") == "warmup":
        return None
    ttft = _seconds(metrics, "time_to_first_token")
    decode = _seconds(metrics, "decode_duration")
    end = _seconds(metrics, "request_latency")
    last = ttft + decode if ttft is not None and decode is not None else end
    return client_request(
        prompt_tokens=_first(metrics, "usage_prompt_tokens", "input_sequence_length"),
        cached_prompt_tokens=at(metrics, "usage_prompt_cache_read_tokens", "value"),
        output_tokens=_first(metrics, "usage_completion_tokens", "output_sequence_length"),
        ttft_s=ttft,
        gaps_s=_gaps(metrics),
        end_s=end,
        last_s=last,
        connect_s=_seconds(metrics, "http_req_connecting"),
        line=line,
    )


def _seconds(metrics: Json, name: str) -> float | None:
    value = number(metrics, name, "value")
    unit = _UNITS.get(str(at(metrics, name, "unit"))[:16])
    return value * unit if value is not None and unit is not None else None


def _gaps(metrics: Json) -> list[float] | None:
    values = at(metrics, "inter_chunk_latency", "value")
    unit = _UNITS.get(str(at(metrics, "inter_chunk_latency", "unit"))[:16])
    if not isinstance(values, list) or unit is None:
        return None
    known = [number({"": value}, "") for value in values]
    if None in known:
        return None
    return [value * unit for value in known if value is not None]


def _first(metrics: Json, *names: str) -> object:
    found = (at(metrics, name, "value") for name in names)
    return next((value for value in found if value is not None), None)


def _key(value: Json) -> str | None:
    found = at(value, "metadata", "x_request_id")
    return found if isinstance(found, str) else None


def _span(value: Json) -> tuple[float, float]:
    """Seconds between which the request ran; both 0 where it does not tell."""
    start = at(value, "metadata", "request_start_ns")
    end = at(value, "metadata", "request_end_ns")
    if isinstance(start, int) and isinstance(end, int) and 0 < start < end < 2**63:
        return start / 1e9, end / 1e9
    return 0.0, 0.0
