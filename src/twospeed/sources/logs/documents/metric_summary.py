"""Summaries of AIPerf and genai-perf: CSV, JSON, or the table in the terminal.

Numbers of all requests together. A first-token time holds waiting and network.

| text | tells | cannot tell |
|---|---|---|
| AIPerf and genai-perf summaries | first-token and inter-token times | phases of one request |

    Metric,avg,min,max,p99,p95,p90,p75,p50,p25
    Time To First Token (ms),"4,136.72","1,654.69","8,687.11","8,273.44",...,"3,929.88",...
    Inter Token Latency (ms),16.86,6.74,35.41,33.72,...,16.02,...
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from twospeed.runtimes.fields import at, number
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.plain_text import number_in
from twospeed.sources.logs.documents.summaries import summary_of
from twospeed.sources.logs.documents.tables import csv_rows, pipe_rows

_NAME = re.compile(r"([a-z][a-z0-9 _/-]{2,60}?)(?: \(([^()]{1,24})\))?")
_TO_MS = {None: 1.0, "ms": 1.0, "s": 1e3, "sec": 1e3, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}
_SPELLINGS = (
    "time_to_first_token",
    "ime To First Token",
    "ime to First Token",
    "ime to first token",
)
_LATENCIES = {"time to first token": "ttft", "inter token latency": "itl"}
_KEPT = (
    "mean_ttft_ms",
    "median_ttft_ms",
    "p99_ttft_ms",
    "mean_itl_ms",
    "median_itl_ms",
)
_STATISTICS = {"avg": "mean", "p50": "median", "p99": "p99"}
_COUNTS = {
    "request count": "completed",
    "error request count": "failed",
    "total input tokens": "total_input_tokens",
    "total output tokens": "total_output_tokens",
}


def recognises(text: str) -> bool:
    """By the name of the first-token time in any of the spellings."""
    return any(name in text for name in _SPELLINGS)


def read(text: str) -> Content | None:
    """The first number of each name."""
    told: dict[str, float | None] = {}
    for name, unit, cells in _metrics(text):
        for key, value in _numbers(name, unit, cells):
            told.setdefault(key, value)
    summary = summary_of(told)
    return None if summary is None else Content(summary=summary)


def _metrics(text: str) -> Iterator[tuple[str, str | None, dict[str, float | None]]]:
    """Name in lower case, unit, and statistics by name, of every metric in the text."""
    rows = [
        (row.cells[column], row.cells)
        for column, *needed in (("metric", "avg"), ("metric", "value"), ("statistic", "avg"))
        for row in (*csv_rows(text, column, *needed), *pipe_rows(text, column, *needed))
    ]
    for label, cells in rows:
        found = _NAME.fullmatch(label.casefold()[:100])
        if found:
            numbers = {key: number_in(cell) for key, cell in cells.items()}
            yield found[1].replace("-", " "), found[2], numbers
    for document in wanted_in(text, _is_summary):
        for key, value in document.value.items():
            if isinstance(value, dict) and ("avg" in value or "p50" in value):
                numbers = {name: number(value, name) for name in ("avg", "p50", "p99")}
                unit = at(value, "unit")
                yield key.replace("_", " "), unit if isinstance(unit, str) else None, numbers


def _is_summary(value: Json) -> bool:
    return number(value, "time_to_first_token", "avg") is not None


def _numbers(
    name: str, unit: str | None, cells: dict[str, float | None]
) -> Iterator[tuple[str, float]]:
    latency = _LATENCIES.get(name)
    factor = _TO_MS.get(unit)
    value = cells.get("value", cells.get("avg"))
    if latency and factor:
        for column, statistic in _STATISTICS.items():
            key, told = f"{statistic}_{latency}_ms", cells.get(column)
            if told is not None and key in _KEPT:
                yield key, told * factor
    elif name in _COUNTS and value is not None:
        yield _COUNTS[name], value
    elif name == "benchmark duration" and value is not None:
        yield "duration_s", value
