"""llama-benchy: llama-bench's tests, measured through an endpoint; Markdown, CSV and JSON.

Speeds of prefill rest on the time to the first response less the round trip, so they hold waiting.
With several requests at a time the speed of one answer is kept for decode, the sum for prefill.
Unless prefix caching is measured, "pp128 @ d256" is the speed of all 384 tokens, read from the
first one: speed times estimated processing time tells which it was.

| text | tells | cannot tell |
|---|---|---|
| llama-benchy table or export | speed and spread per test, depth | waiting apart from prefill |

    | model    |           test |            t/s |     peak t/s |      ttfr (ms) |
    |:---------|---------------:|---------------:|-------------:|---------------:|
    | heron-8b | pp2048 @ d4096 | 2011.4 ± 10.20 |              | 1034.8 ± 5.20  |
    | heron-8b |   tg32 @ d4096 |   57.91 ± 0.33 | 59.00 ± 0.00 |                |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twospeed.records.run import BenchmarkPoint
from twospeed.runtimes.fields import (
    context_tokens,
    counted_tokens,
    flag,
    number,
    objects,
    text,
    whole,
)
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.bench_rows import (
    Settings,
    Test,
    benchmark_point,
    learn_common,
    parse_test,
    speed_and_spread,
    unique,
)
from twospeed.sources.logs.documents.json_objects import Json, wanted_in
from twospeed.sources.logs.documents.plain_text import number_in
from twospeed.sources.logs.documents.tables import csv_rows, pipe_rows


def recognises(text: str) -> bool:
    """By the time to the first response, a word of its own."""
    return "ttfr" in text or "pp_throughput" in text


def read(text: str) -> Content | None:
    """Every test of every table and export in the text."""
    content = Content()
    content.points = unique(
        (*_table_points(text), *_csv_points(text), *_json_points(text, content))
    )
    if not content.points:
        return None
    learn_common(content, content.points)
    return content


def _table_points(text: str) -> Iterator[BenchmarkPoint | None]:
    for row in pipe_rows(text, "model", "test", "ttfr (ms)"):
        test = parse_test(row.cells["test"])
        one, together = row.cells.get("t/s (req)"), row.cells.get("t/s (total)")
        whole_speed = row.cells.get("t/s") or together
        cell = one if one and test and test.phase == "decode" else whole_speed
        if test is not None and cell:
            tps, sd = speed_and_spread(cell)
            each, _ = speed_and_spread(one or cell)
            read_ms, _ = speed_and_spread(row.cells.get("est_ppt (ms)", ""))
            yield _point(_as_read(test, each, read_ms), tps, sd, row.cells.get("model"), row.line)


def _csv_points(text: str) -> Iterator[BenchmarkPoint | None]:
    for row in csv_rows(text, "model", "test_name", "t_s_mean"):
        test = parse_test(row.cells["test_name"])
        if test is not None:
            name = _csv_speed(test, row.cells)
            tps, sd = (number_in(row.cells.get(f"{name}_{kind}")) for kind in ("mean", "std"))
            each = number_in(row.cells.get("t_s_req_mean")) or tps
            read_ms = number_in(row.cells.get("est_ppt_mean"))
            yield _point(_as_read(test, each, read_ms), tps, sd, row.cells.get("model"), row.line)


def _csv_speed(test: Test, cells: Mapping[str, str]) -> str:
    return "t_s_req" if test.phase == "decode" and cells.get("t_s_req_mean") else "t_s"


def _json_points(text_: str, content: Content) -> Iterator[BenchmarkPoint | None]:
    for report in wanted_in(text_, _is_report):
        model = text(report.value, "model")
        content.learn(prefix_cache_enabled=flag(report.value, "prefix_caching_enabled"))
        for run in objects(report.value, "benchmarks"):
            yield from _run_points(run, model, report.line)


def _is_report(value: Json) -> bool:
    return any(
        "pp_throughput" in run or "tg_throughput" in run for run in objects(value, "benchmarks")
    )


def _run_points(run: Json, model: str | None, line: int) -> Iterator[BenchmarkPoint | None]:
    depth = counted_tokens(run, "context_size") or 0
    together = whole(run, "concurrency")
    if run.get("is_context_prefill_phase") is True:
        prefill = Test("prefill", depth, 0, together) if depth else None
        decode = Test("decode", None, depth, together)
    else:
        asked = context_tokens(run, "prompt_size")
        prefill = Test("prefill", asked, depth, together) if asked else None
        each, read_ms = number(run, "pp_req_throughput", "mean"), number(run, "est_ppt", "mean")
        prefill = prefill and _as_read(prefill, each, read_ms)
        decode = Test("decode", context_tokens(run, "response_size"), depth, together)
    for test, names in (
        (prefill, ("pp_throughput", "pp_req_throughput")),
        (decode, ("tg_req_throughput", "tg_throughput")),
    ):
        name = next((one for one in names if number(run, one, "mean")), None)
        if test is not None and name is not None:
            yield _point(test, number(run, name, "mean"), number(run, name, "std"), model, line)


def _as_read(test: Test, each_tps: float | None, read_ms: float | None) -> Test:
    """The test with the tokens that its speed counts.

    Args:
        test: as it is named.
        each_tps: speed of one prompt.
        read_ms: estimated processing time of one prompt.
    """
    if test.phase != "prefill" or not test.tokens or each_tps is None or read_ms is None:
        return test
    counted, from_start = each_tps * read_ms / 1e3, test.tokens + test.depth_tokens
    if abs(counted - from_start) < abs(counted - test.tokens):
        return test._replace(tokens=from_start, depth_tokens=0)
    return test


def _point(
    test: Test, tps: float | None, sd: float | None, model: str | None, line: int
) -> BenchmarkPoint | None:
    settings: Settings = {}
    if model:
        settings["model"] = model[:200]
    if test.together is not None:
        settings["slots"] = test.together
    return benchmark_point(
        test.phase, test.tokens, test.depth_tokens, tps, sd=sd, settings=settings, line=line
    )
