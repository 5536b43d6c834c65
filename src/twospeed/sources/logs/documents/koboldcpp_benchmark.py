"""KoboldCpp's `--benchmark`: one request that fills the context, printed as a block or CSV.

The prompt is what the context leaves beside the answer: MaxCtx - GenAmount.

| text | tells | cannot tell |
|---|---|---|
| KoboldCpp benchmark | both phases at a full context, whole time | other depths, spread |

    Backend: koboldcpp_cublas.dll
    MaxCtx: 4096
    GenAmount: 100
    ProcessingTime: 1.820s
    ProcessingSpeed: 2195.60T/s
    GenerationTime: 2.410s
    GenerationSpeed: 41.49T/s
    TotalTime: 4.230s
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from twospeed.records.request_record import RequestRecord, TokenCounts
from twospeed.runtimes.fields import LONGEST_S, MOST_TOKENS
from twospeed.runtimes.phases import phase_times
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.plain_text import number_in, whole_in
from twospeed.sources.logs.documents.requests import Requests
from twospeed.sources.logs.documents.tables import csv_rows

_FIELD = re.compile(
    r"^\W{0,8}(Backend|Layers|Model|MaxCtx|GenAmount|ProcessingTime|ProcessingSpeed"
    r"|GenerationTime|GenerationSpeed|TotalTime): ?(.{1,200})$",
    re.MULTILINE,
)


def recognises(text: str) -> bool:
    """By the name of the prefill time."""
    return "ProcessingTime" in text and "GenAmount" in text


def read(text: str) -> Content | None:
    """One record per run."""
    requests, content = Requests(), Content(runtime="koboldcpp")
    for row, line in (*_blocks(text), *_csv(text)):
        record = _record(row, line)
        if record is None:
            continue
        requests.add(record, key=record.server)
        content.model = content.model or row.get("model")
        content.learn(n_ctx=whole_in(row.get("maxctx")))
    content.records = requests.records
    return content if content.records else None


def _blocks(text: str) -> Iterator[tuple[Mapping[str, str], int]]:
    row: dict[str, str] = {}
    line, counted = 1, 0
    for found in _FIELD.finditer(text):
        line, counted = line + text.count("\n", counted, found.start()), found.start()
        row[found[1].casefold()] = found[2].strip()
        if found[1] == "TotalTime":
            yield row, line
            row = {}


def _csv(text: str) -> Iterator[tuple[Mapping[str, str], int]]:
    for row in csv_rows(text, "maxctx", "genamount", "processingtime", "generationtime"):
        yield row.cells, row.line


def _record(row: Mapping[str, str], line: int) -> RequestRecord | None:
    context, output = whole_in(row.get("maxctx")), whole_in(row.get("genamount"))
    if context is None or output is None or not 0 < output < context <= MOST_TOKENS:
        return None
    prompt = context - output
    times = phase_times(
        "benchmark",
        prefill_s=_seconds(row, "processingtime"),
        prefill_tokens=prompt,
        decode_s=_seconds(row, "generationtime"),
        decode_steps=output,
        total_s=_seconds(row, "totaltime"),
    )
    if times is None:
        return None
    return RequestRecord(
        number=0,
        model=row.get("model"),
        counts=TokenCounts(prompt_tokens=prompt, output_tokens=output),
        server=times,
        line=line,
    )


def _seconds(row: Mapping[str, str], name: str) -> float | None:
    found = number_in(row.get(name))
    return found if found is not None and 0 < found <= LONGEST_S else None
