"""The result block of `vllm bench serve` and of SGLang's serving benchmark.

Sums over many requests: a first-token time there holds waiting, all of it when every request was
sent at once. Of several blocks the first is kept.

| text | tells | cannot tell |
|---|---|---|
| serving benchmark, printed | first-token and inter-token times, counts | phases of one request |

    ============ Serving Benchmark Result ============
    Successful requests:                     64
    Mean TTFT (ms):                          181.39
    Mean ITL (ms):                           12.21
"""

from __future__ import annotations

import re

from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.plain_text import number_in
from twospeed.sources.logs.documents.summaries import summary_of

_TITLE = "Serving Benchmark Result"
_LINE = re.compile(r"([A-Za-z][\w ().,/-]{3,60}?) ?: {0,64}([\d.,]{1,32}|inf|nan)[ \t]{0,64}$")
_NAMES = {
    "successful requests": "completed",
    "failed requests": "failed",
    "benchmark duration (s)": "duration_s",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "maximum request concurrency": "concurrency_max",
    "max request concurrency": "concurrency_max",
    "mean ttft (ms)": "mean_ttft_ms",
    "median ttft (ms)": "median_ttft_ms",
    "p99 ttft (ms)": "p99_ttft_ms",
    "mean tpot (ms)": "mean_tpot_ms",
    "mean itl (ms)": "mean_itl_ms",
    "median itl (ms)": "median_itl_ms",
}
LONGEST_LINE = 1_000


def recognises(text: str) -> bool:
    """By the title of the block, or by its first-token line where the title is cut off."""
    return _TITLE in text or "Mean TTFT (ms)" in text


def read(text: str) -> Content | None:
    """The numbers of the first block."""
    told: dict[str, float | None] = {}
    sglang = False
    for raw in text.split("\n"):
        line = raw.strip(" \t*|`<-")
        if _TITLE in line and told:
            break
        found = _LINE.search(line) if len(line) <= LONGEST_LINE else None
        sglang = sglang or (line.startswith("Backend:") and "sglang" in line.casefold())
        name = _NAMES.get(found[1].casefold()) if found else None
        if found and name and name not in told:
            told[name] = number_in(found[2])
    summary = summary_of(told)
    if summary is None:
        return None
    return Content(runtime="sglang" if sglang else None, summary=summary)
