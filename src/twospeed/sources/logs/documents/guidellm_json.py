"""GuideLLM's JSON report: distributions over the successful requests of each benchmark.

`time_per_output_token_ms` contains the first token and is left out; `inter_token_latency_ms` does
not. Of several benchmarks (a sweep) the first is kept, which runs one request at a time.

| text | tells | cannot tell |
|---|---|---|
| GuideLLM report | first-token and inter-token times | phases of one request |

    {"benchmarks": [{"metrics": {"request_totals": {"successful": 40, "errored": 0},
     "time_to_first_token_ms": {"successful": {"mean": 357.9, "median": 354.3,
      "percentiles": {"p99": 536.8}}}}}]}
"""

from __future__ import annotations

from twospeed.runtimes.fields import number
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.summaries import summary_of


def recognises(text: str) -> bool:
    """By the name of the first-token time with its unit."""
    return "time_to_first_token_ms" in text


def read(text: str) -> Content | None:
    """The first benchmark in the text."""
    for found in wanted_in(text, _is_metrics):
        summary = summary_of(_told(found.value))
        if summary is not None:
            return Content(summary=summary)
    return None


def _is_metrics(value: Json) -> bool:
    return number(value, "time_to_first_token_ms", "successful", "mean") is not None


def _told(metrics: Json) -> dict[str, float | None]:
    ttft, itl = "time_to_first_token_ms", "inter_token_latency_ms"
    return {
        "completed": number(metrics, "request_totals", "successful"),
        "failed": number(metrics, "request_totals", "errored"),
        "total_input_tokens": number(metrics, "prompt_token_count", "successful", "total_sum"),
        "total_output_tokens": number(metrics, "output_token_count", "successful", "total_sum"),
        "mean_ttft_ms": number(metrics, ttft, "successful", "mean"),
        "median_ttft_ms": number(metrics, ttft, "successful", "median"),
        "p99_ttft_ms": number(metrics, ttft, "successful", "percentiles", "p99"),
        "mean_itl_ms": number(metrics, itl, "successful", "mean"),
        "median_itl_ms": number(metrics, itl, "successful", "median"),
    }
