"""inference-perf's lifecycle report, in seconds.

| text | tells | cannot tell |
|---|---|---|
| inference-perf report | first-token and inter-token times | phases of one request |

    {"load_summary": {"count": 64}, "successes": {"count": 64, "latency": {
     "time_to_first_token": {"mean": 0.41, "median": 0.39, "p99": 0.93},
     "inter_token_latency": {"mean": 0.013, "median": 0.012}}}, "failures": {"count": 0}}
"""

from __future__ import annotations

from twospeed.runtimes.fields import number
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.summaries import summary_of


def recognises(text: str) -> bool:
    """By its successes beside the summary of the load."""
    return '"successes"' in text and "time_to_first_token" in text


def read(text: str) -> Content | None:
    """The first report in the text."""
    for found in wanted_in(text, _is_report):
        summary = summary_of(_told(found.value))
        if summary is not None:
            return Content(summary=summary)
    return None


def _is_report(value: Json) -> bool:
    return number(value, "successes", "latency", "time_to_first_token", "mean") is not None


def _told(report: Json) -> dict[str, float | None]:
    return {
        "completed": number(report, "successes", "count"),
        "failed": number(report, "failures", "count"),
        "duration_s": number(report, "benchmark_time_seconds"),
        "concurrency_max": number(report, "load_summary", "concurrency"),
        "mean_ttft_ms": _ms(report, "time_to_first_token", "mean"),
        "median_ttft_ms": _median_ms(report, "time_to_first_token"),
        "p99_ttft_ms": _ms(report, "time_to_first_token", "p99"),
        "mean_tpot_ms": _ms(report, "time_per_output_token", "mean"),
        "mean_itl_ms": _ms(report, "inter_token_latency", "mean"),
        "median_itl_ms": _median_ms(report, "inter_token_latency"),
    }


def _median_ms(report: Json, name: str) -> float | None:
    """The half, which older versions call p50."""
    found = _ms(report, name, "median")
    return _ms(report, name, "p50") if found is None else found


def _ms(report: Json, name: str, statistic: str) -> float | None:
    seconds = number(report, "successes", "latency", name, statistic)
    return None if seconds is None else seconds * 1e3
