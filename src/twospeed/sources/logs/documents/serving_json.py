"""The result file of `vllm bench serve` and of SGLang's serving benchmark.

Sums over many requests; with `--save-detailed` the first-token times and gaps of each request are
there too and give one record per request. A first-token time holds waiting.

| text | tells | cannot tell |
|---|---|---|
| serving benchmark, saved | first-token and inter-token times, counts | queue and prefill apart |

    {"backend": "vllm", "completed": 64, "duration": 33.4, "total_input_tokens": 33920,
     "mean_ttft_ms": 181.4, "p99_ttft_ms": 272.1, "mean_itl_ms": 12.2}
"""

from __future__ import annotations

from collections.abc import Iterator

from twospeed.records.request_record import RequestRecord
from twospeed.runtimes.fields import counted_tokens, number, text
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.client_requests import client_request
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.requests import Requests
from twospeed.sources.logs.documents.summaries import summary_of

_SAME = (
    "completed",
    "failed",
    "total_input_tokens",
    "total_output_tokens",
    "mean_ttft_ms",
    "median_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "mean_itl_ms",
    "median_itl_ms",
)
MOST_REQUESTS = 100_000


def recognises(text: str) -> bool:
    """By the mean first-token time."""
    return "mean_ttft_ms" in text


def read(text: str) -> Content | None:
    """The first result in the text."""
    for found in wanted_in(text, _is_result):
        told = {name: number(found.value, name) for name in _SAME}
        told["duration_s"] = number(found.value, "duration")
        told["concurrency_max"] = number(found.value, "max_concurrency")
        summary = summary_of(told)
        if summary is not None:
            return Content(
                runtime=_runtime(found.value),
                model=_model(found.value),
                summary=summary,
                records=list(_records(found.value, found.line)),
            )
    return None


def _is_result(value: Json) -> bool:
    return "mean_ttft_ms" in value and ("completed" in value or "mean_tpot_ms" in value)


def _records(result: Json, line: int) -> Iterator[RequestRecord]:
    """One per request, where the lists of a detailed result are there and equally long."""
    lists = [result.get(name) for name in ("ttfts", "itls", "input_lens", "output_lens")]
    columns = [one for one in lists if isinstance(one, list)]
    if len(columns) < len(lists) or len({len(one) for one in columns}) != 1:
        return
    requests = Requests()
    others = _others(result)
    for ttft, gaps, prompt, output in list(zip(*columns, strict=True))[:MOST_REQUESTS]:
        record = client_request(
            prompt_tokens=prompt,
            output_tokens=output,
            ttft_s=ttft,
            gaps_s=gaps,
            line=line,
            other_requests=others,
        )
        if record is not None:
            requests.add(record)
    yield from requests.records


def _others(result: Json) -> int | None:
    """Requests beside each: as many as were allowed, or all where all were sent at once."""
    together = counted_tokens(result, "max_concurrency")
    if together is None and result.get("request_rate") == "inf":
        together = counted_tokens(result, "completed")
    return together - 1 if together else None


def _runtime(result: Json) -> str | None:
    named = (text(result, "backend") or "").casefold()
    return next((one for one in ("vllm", "sglang") if named.startswith(one)), None)


def _model(result: Json) -> str | None:
    named = text(result, "model_id") or text(result, "model")
    return named[:200] if named else None
