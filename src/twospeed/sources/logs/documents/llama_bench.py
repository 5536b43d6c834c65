"""llama-bench: tests of prefill (pp), decode (tg) or both, each with its spread.

Markdown, CSV, JSON, JSON lines and SQL carry the same numbers; columns came and went since 2023, so
they are read by name. Speeds are of model work alone, without tokenizing and sampling.

| text | tells | cannot tell |
|---|---|---|
| llama-bench table or export | speed and spread per test, depth, settings | waiting, caching |

    | model         |     size |  params | backend | ngl |   test |           t/s |
    | ------------- | -------: | ------: | ------- | --: | -----: | ------------: |
    | heron 8B Q4_K | 4.60 GiB | 8.03 B  | CUDA    |  99 |  pp512 | 4211.5 ± 13.7 |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from twospeed.records.run import BenchmarkPoint
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.bench_rows import (
    Test,
    benchmark_point,
    learn_common,
    parse_test,
    settings_of,
    speed_and_spread,
    unique,
)
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.plain_text import number_in, whole_in
from twospeed.sources.logs.documents.tables import csv_rows, pipe_rows

_FOREIGN = frozenset({"ttfr (ms)", "peak t/s", "est_ppt (ms)"})
"""Columns of llama-benchy, which has its own reader."""
_HEADERS = ("| test", "|test", "test |", "test|")
_BUILD = re.compile(r"^build: ([0-9a-f]{6,40}) \((\d{1,7})\)", re.MULTILINE)
_INSERT = re.compile(r"INSERT INTO \S{1,64} ?\(([^()]{1,4000})\) VALUES ?\(", re.IGNORECASE)
_SQL_VALUE = re.compile(r"\s{0,8}(?:'((?:[^'\n]|''){0,2000})'|([^,')\s]{1,64}))\s{0,8}([,)])")
MOST_VALUES = 128


def recognises(text: str) -> bool:
    """By the speed beside the test, in any of the forms."""
    named = "avg_ts" in text or "avg_ns" in text
    return named or ("t/s" in text and any(header in text for header in _HEADERS))


def read(text: str) -> Content | None:
    """Every test of every table and export in the text."""
    builds: set[str] = set()
    tables = [
        _table_point(row.cells, row.line) for row in pipe_rows(text, "test") if _is_ours(row.cells)
    ]
    found = list(tables)
    for row, line in _named_rows(text):
        found.append(_named_point(row, line))
        builds.add(_word(row, "build_number"))
    points = unique(found)
    if not points:
        return None
    content = Content(runtime="llama-server", points=points)
    content.unread = sum(point is None for point in tables)
    learn_common(content, points)
    builds |= {match[2] for match in _BUILD.finditer(text)}
    builds.discard("")
    content.runtime_version = f"b{builds.pop()}" if len(builds) == 1 else None
    return content


def _is_ours(cells: Mapping[str, str]) -> bool:
    return "t/s" in cells and not _FOREIGN & set(cells)


def _table_point(cells: Mapping[str, str], line: int) -> BenchmarkPoint | None:
    test = parse_test(cells["test"])
    if test is None:
        return None
    tps, sd = speed_and_spread(cells["t/s"])
    return _point(test, tps, sd, cells, line)


def _named_rows(text: str) -> Iterator[tuple[Mapping[str, object], int]]:
    """Rows of CSV, SQL and JSON."""
    if "INSERT" in text or "insert" in text:
        yield from _sql_rows(text)
    yield from csv_rows(text, "n_prompt", "n_gen", "avg_ts")
    yield from wanted_in(text, _is_test)


def _is_test(value: Json) -> bool:
    return ("avg_ts" in value or "avg_ns" in value) and ("n_prompt" in value or "n_gen" in value)


def _sql_rows(text: str) -> Iterator[tuple[Mapping[str, object], int]]:
    line, counted = 1, 0
    for head in _INSERT.finditer(text):
        names = [name.strip(" \"'`\n").casefold() for name in head[1].split(",")]
        values = _sql_values(text, head.end())
        line, counted = line + text.count("\n", counted, head.start()), head.start()
        if {"n_prompt", "n_gen", "avg_ts"} <= set(names) and len(values) >= len(names):
            yield dict(zip(names, values[-len(names) :], strict=True)), line


def _sql_values(text: str, at: int) -> list[str]:
    values: list[str] = []
    while len(values) < MOST_VALUES and (found := _SQL_VALUE.match(text, at)):
        values.append((found[1] or found[2] or "").replace("''", "'"))
        at = found.end()
        if found[3] == ")":
            break
    return values


def _named_point(row: Mapping[str, object], line: int) -> BenchmarkPoint | None:
    prompt, output = _whole(row, "n_prompt") or 0, _whole(row, "n_gen") or 0
    depth = _whole(row, "n_depth") or 0
    tokens = prompt + output
    if not tokens:
        return None
    tps = number_in(_word(row, "avg_ts"))
    took_ns = number_in(_word(row, "avg_ns"))
    if tps is None and took_ns:
        tps = tokens * 1e9 / took_ns
    test = Test("mixed" if prompt and output else "prefill" if prompt else "decode", tokens, depth)
    return _point(test, tps, number_in(_word(row, "stddev_ts")), row, line)


def _point(
    test: Test, tps: float | None, sd: float | None, row: Mapping[str, object], line: int
) -> BenchmarkPoint | None:
    return benchmark_point(
        test.phase,
        test.tokens,
        test.depth_tokens,
        tps,
        sd=sd,
        settings=settings_of(row),
        line=line,
    )


def _word(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    return str(value)[:64] if isinstance(value, str | int | float) else ""


def _whole(row: Mapping[str, object], name: str) -> int | None:
    return whole_in(_word(row, name))
