"""servebench's run file: every request of every load level, in seconds.

Chunk arrivals give decode; where the server told its own prefill and decode, these are kept as the
server's. Queueing is only a difference there and is left out.

| text | tells | cannot tell |
|---|---|---|
| servebench run | first token, decode, whole time, the server's phases where told | queue |

    {"config": {"model": "heron-8b"}, "levels": [{"mode": "concurrency", "value": 1,
     "requests": [{"index": 0, "ok": true, "ttft": 0.11, "e2e": 0.13, "chunk_times": [0.11, 0.12],
                   "prompt_tokens": 256, "output_tokens": 2}]}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from twospeed.records.request_record import RequestRecord
from twospeed.runtimes.fields import at, counted_tokens, duration_s, number, objects, text
from twospeed.runtimes.phases import after_first, phase_times
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.client_requests import client_request
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.requests import Requests
from twospeed.sources.logs.documents.summaries import summary_of


def recognises(text: str) -> bool:
    """By arrivals of chunks within levels."""
    return "chunk_times" in text and '"levels"' in text


def read(text: str) -> Content | None:
    """One record per request that succeeded; the sums of a run with one level."""
    requests, content = Requests(), Content()
    for found in wanted_in(text, _is_run):
        content.model = content.model or _model(found.value)
        levels = objects(found.value, "levels")
        for level in levels:
            for record in _records(level, found.line):
                requests.add(record, key=(record.client, record.counts))
        if len(levels) == 1 and content.summary is None:
            content.summary = summary_of(_told(levels[0]))
    content.records = requests.records
    return content if content.records else None


def _is_run(value: Json) -> bool:
    return any("requests" in level for level in objects(value, "levels"))


def _records(level: Json, line: int) -> Iterator[RequestRecord]:
    together = number(level, "value") if at(level, "mode") == "concurrency" else None
    others = int(together) - 1 if together and 1 <= together < 1e6 else None
    for request in objects(level, "requests"):
        output = counted_tokens(request, "output_tokens")
        record = client_request(
            prompt_tokens=at(request, "prompt_tokens"),
            output_tokens=output,
            ttft_s=at(request, "ttft"),
            gaps_s=_gaps(request),
            end_s=at(request, "e2e"),
            server=phase_times(
                "server_prefill_ms",
                prefill_s=duration_s(request, "server_prefill_ms", per_second=1e3),
                decode_s=duration_s(request, "server_decode_ms", per_second=1e3),
                decode_steps=after_first(output),
            ),
            other_requests=others,
            line=line,
        )
        if record is not None and request.get("ok") is not False:
            yield record


def _gaps(request: Json) -> list[float] | None:
    times = at(request, "chunk_times")
    if not isinstance(times, list):
        return None
    known = [number({"": time}, "") for time in times]
    stamps = [time for time in known if time is not None]
    if len(stamps) < max(len(known), 2):
        return None
    gaps = [after - before for before, after in pairwise(stamps)]
    return gaps if min(gaps) >= 0 else None


def _told(level: Json) -> dict[str, float | None]:
    told = {
        "completed": number(level, "summary", "completed"),
        "failed": number(level, "summary", "failed"),
        "duration_s": number(level, "summary", "duration"),
    }
    for name, statistic, key in (
        ("ttft", "mean", "mean_ttft_ms"),
        ("ttft", "p50", "median_ttft_ms"),
        ("ttft", "p99", "p99_ttft_ms"),
        ("tpot", "mean", "mean_tpot_ms"),
        ("itl", "mean", "mean_itl_ms"),
        ("itl", "p50", "median_itl_ms"),
    ):
        seconds = number(level, "summary", name, statistic)
        told[key] = None if seconds is None else seconds * 1e3
    return told


def _model(run: Json) -> str | None:
    named = text(run, "config", "model")
    return named[:200] if named else None
