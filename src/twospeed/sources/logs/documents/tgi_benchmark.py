"""The tables of text-generation-benchmark (TGI): one step of prefill and of decode per batch.

Averages of a step: prefill reads the prompts of all sequences of a batch, a decode step gives one
token to each of them.

| text | tells | cannot tell |
|---|---|---|
| text-generation-benchmark | both speeds per batch size | depth, spread, waiting |

    | Parameter       | Value |
    | Sequence Length | 512   |
    | Step           | Batch Size | Average  | Lowest   | Highest  |
    | Prefill        | 1          | 41.20 ms | 40.11 ms | 44.90 ms |
    | Decode (token) | 1          | 18.02 ms | 17.95 ms | 18.20 ms |
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from twospeed.records.run import BenchmarkPoint
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.bench_rows import benchmark_point, unique
from twospeed.sources.logs.documents.plain_text import number_in, whole_in
from twospeed.sources.logs.documents.tables import TableRow, pipe_rows

_TIME = re.compile(r"([\d.,]{1,24}) ?(ns|µs|us|ms|s)")
_UNITS = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def recognises(text: str) -> bool:
    """By the name of the decode step beside the batch size."""
    return "Decode (token)" in text and "Batch Size" in text


def read(text: str) -> Content | None:
    """Two points per batch size."""
    prompt = output = None
    for row in pipe_rows(text, "parameter", "value"):
        name = row.cells["parameter"].casefold()
        if name == "sequence length":
            prompt = whole_in(row.cells["value"])
        elif name == "decode length":
            output = whole_in(row.cells["value"])
    points, step = list[BenchmarkPoint](), ""
    for row in pipe_rows(text, "step", "batch size", "average"):
        step = row.cells["step"].casefold() or step  # named once, for all batch sizes
        points += _points(step, row, prompt, output)
    return Content(points=unique(points)) if points else None


def _points(
    step: str, row: TableRow, prompt: int | None, output: int | None
) -> Iterator[BenchmarkPoint]:
    together = whole_in(row.cells["batch size"])
    seconds = _seconds(row.cells["average"])
    if not together or not seconds:
        return
    point = None
    if step == "prefill" and prompt:
        point = benchmark_point(
            "prefill",
            prompt,
            0,
            together * prompt / seconds,
            settings={"slots": together},
            line=row.line,
        )
    elif step == "decode (token)":
        point = benchmark_point(
            "decode", output, prompt, 1 / seconds, settings={"slots": together}, line=row.line
        )
    if point is not None:
        yield point


def _seconds(cell: str) -> float | None:
    found = _TIME.search(cell)
    number = number_in(found[1]) if found else None
    return number * _UNITS[found[2]] if found and number else None
