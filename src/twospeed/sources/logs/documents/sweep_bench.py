"""llama-sweep-bench (ik_llama.cpp) and llama-batched-bench: both phases in one row.

Tables and JSON lines. A sweep measures at growing depth (N_KV); a batch reads the prompts of B
sequences and then decodes them together, so that its S_TG is B times the speed of one answer: kept
here is the speed of one.

| text | tells | cannot tell |
|---|---|---|
| sweep-bench, batched-bench | both speeds per depth or number of sequences | spread, waiting |

    |    PP |     TG |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |
    |-------|--------|--------|----------|----------|----------|----------|
    |   512 |    128 |   4096 |    1.021 |   501.47 |    7.190 |    17.80 |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from twospeed.records.run import BenchmarkPoint
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.bench_rows import (
    agreeing,
    benchmark_point,
    learn_common,
    settings_of,
    unique,
)
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.plain_text import number_in, whole_in
from twospeed.sources.logs.documents.tables import pipe_rows

_COLUMNS = {
    "pp": "pp",
    "tg": "tg",
    "b": "pl",
    "n_kv": "n_kv",
    "t_pp s": "t_pp",
    "s_pp t/s": "speed_pp",
    "t_tg s": "t_tg",
    "s_tg t/s": "speed_tg",
}
"""Columns of the tables by the names of the JSON lines."""
_HEAD = re.compile(r"\bn_kv_max = \d{1,9},[^\n]{1,400}")
_PAIR = re.compile(
    r"(n_batch|n_ubatch|flash_attn|n_gpu_layers|n_threads|is_pp_shared) = (\w{1,16})"
)


def recognises(text: str) -> bool:
    """By the speed of prefill, whose name no other program uses."""
    return "S_PP t/s" in text or "speed_pp" in text or '"t_pp"' in text


def read(text: str) -> Content | None:
    """Two points per row."""
    told = _head(text)
    points = unique(point for row, line in _rows(text) for point in _points(told | row, line))
    if not points:
        return None
    content = Content(runtime="llama-server", points=points)
    learn_common(content, points)
    return content


def _head(text: str) -> dict[str, str]:
    """Settings that the program prints once, above the table."""
    found = _HEAD.search(text)
    return dict(_PAIR.findall(found[0])) if found else {}


def _rows(text: str) -> Iterator[tuple[dict[str, str], int]]:
    for row in pipe_rows(text, "pp", "tg", "s_pp t/s", "s_tg t/s"):
        yield {_COLUMNS.get(name, name): cell for name, cell in row.cells.items()}, row.line
    for found in wanted_in(text, _is_row):
        plain = {
            name: str(value)
            for name, value in found.value.items()
            if isinstance(value, str | int | float)
        }
        yield plain, found.line


def _is_row(value: Json) -> bool:
    return "pp" in value and "tg" in value and ("t_pp" in value or "speed_pp" in value)


def _points(row: Mapping[str, str], line: int) -> Iterator[BenchmarkPoint]:
    prompt, output = whole_in(row.get("pp")) or 0, whole_in(row.get("tg")) or 0
    together = whole_in(row.get("pl"))
    settings = settings_of(row)
    if together is not None:
        settings["slots"] = together
    prompts = 1 if _shares_prompt(row, prompt, output, together) else together or 1
    depth = whole_in(row.get("n_kv")) or 0 if together is None else None
    prefill_tps = agreeing(_number(row, "speed_pp"), _rate(prompts * prompt, row, "t_pp"))
    decode_tps = agreeing(
        _shared(_number(row, "speed_tg"), together or 1), _rate(output, row, "t_tg")
    )
    found = (
        benchmark_point("prefill", prompt, depth or 0, prefill_tps, settings=settings, line=line)
        if prompt
        else None,
        benchmark_point(
            "decode",
            output,
            prompt if depth is None else depth,
            decode_tps,
            settings=settings,
            line=line,
        )
        if output
        else None,
    )
    yield from (point for point in found if point is not None)


def _shares_prompt(row: Mapping[str, str], prompt: int, output: int, together: int | None) -> bool:
    """Whether all sequences begin with one prompt; the size of the cache tells where no flag is."""
    flag = row.get("is_pp_shared")
    if flag is not None:
        return flag in {"1", "True"}
    return together is not None and whole_in(row.get("n_kv")) == prompt + together * output


def _number(row: Mapping[str, str], name: str) -> float | None:
    return number_in(row.get(name))


def _rate(tokens: int, row: Mapping[str, str], name: str) -> float | None:
    seconds = _number(row, name)
    return tokens / seconds if seconds and tokens else None


def _shared(tps: float | None, together: int) -> float | None:
    return None if tps is None or not together else tps / together
