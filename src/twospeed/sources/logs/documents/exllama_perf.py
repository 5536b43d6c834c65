"""The lists of exllamav3's `eval/perf.py`: prefill by prompt length, decode by context.

| text | tells | cannot tell |
|---|---|---|
| exllamav3 perf lists | both speeds over length and depth | spread, waiting |

    Prefill:
    Length     512:     223.40 tokens/s
    Length    1024:     371.80 tokens/s
    Generation:
    Context   4096: S=1      17.91 tokens/s
"""

from __future__ import annotations

import re

from twospeed.records.run import BenchmarkPoint
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.bench_rows import benchmark_point, unique
from twospeed.sources.logs.documents.plain_text import number_in

_ROW = re.compile(
    r"\b(Length|Context) {1,24}(\d{1,9}): {1,24}(?:S=1 {1,24})?([\d.,]{1,16}) tokens/s"
)


def recognises(text: str) -> bool:
    """By the word before a length and the unit behind the speed."""
    return "tokens/s" in text and _ROW.search(text) is not None


def read(text: str) -> Content | None:
    """One point per line; of several sequences at once only the speed of one is a decode speed."""
    points, line, counted = list[BenchmarkPoint](), 1, 0
    for found in _ROW.finditer(text):
        line, counted = line + text.count("\n", counted, found.start()), found.start()
        tokens, tps = int(found[2]), number_in(found[3])
        point = (
            benchmark_point("prefill", tokens, 0, tps, line=line)
            if found[1] == "Length"
            else benchmark_point("decode", None, tokens, tps, line=line)
        )
        if point is not None:
            points.append(point)
    return Content(points=unique(points)) if points else None
