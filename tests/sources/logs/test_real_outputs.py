"""Logs, answers and exports that real runtimes wrote, against what their clients were told.

`real/README.md` says how each was made. The truth of llama-server is the `timings` object of every
answer; of the other runtimes what a client saw: their logs tell no time of a phase.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twospeed.cli.main import main
from twospeed.sources.logs import reading
from twospeed.sources.logs.reading import read_file, read_text

REAL = Path(__file__).parent / "real"
SERVER_LOGS = ("default", "verbose", "debug")


def truth_of(name: str) -> list[dict]:
    return json.loads((REAL / f"{name}.json").read_text("utf-8"))


def content_of(name: str):
    return read_text((REAL / name).read_text("utf-8"))


def verdict_of(name: str, capsys) -> tuple[int, dict]:
    capsys.readouterr()
    status = main(["read", str(REAL / name), "--json"])
    return status, json.loads(capsys.readouterr().out)


def assert_told(record, timings) -> None:
    """Counts exactly, times within 1 %."""
    counts, server = record.counts, record.server
    told = (counts.prompt_tokens, counts.cached_prompt_tokens, counts.output_tokens)
    prompt = timings["cache_n"] + timings["prompt_n"]
    assert told == (prompt, timings["cache_n"], timings["predicted_n"])
    assert server.prefill_tokens == timings["prompt_n"]
    assert server.prefill_s == pytest.approx(timings["prompt_ms"] / 1e3, rel=0.01)
    assert server.decode_s == pytest.approx(timings["predicted_ms"] / 1e3, rel=0.01)
    assert server.decode_steps == timings["predicted_n"] - 1


@pytest.mark.parametrize("verbosity", SERVER_LOGS)
def test_every_request_of_a_llama_server_log_is_what_its_answer_said(verbosity):
    content = content_of(f"llama-server-{verbosity}.log")
    truth = truth_of(f"llama-server-{verbosity}.truth")
    assert (content.runtime, content.unread, content.points) == ("llama-server", 0, [])
    assert len(content.records) == len(truth)
    for record, answer in zip(content.records, truth, strict=True):
        assert_told(record, answer["timings"])


@pytest.mark.parametrize("verbosity", SERVER_LOGS)
def test_a_streamed_log_tells_the_same_as_a_whole_one(verbosity, monkeypatch):
    path = str(REAL / f"llama-server-{verbosity}.log")
    at_once, _ = read_file(path)
    monkeypatch.setattr(reading, "MOST_WHOLE_BYTES", 0)
    streamed, dropped = read_file(path)
    assert streamed.records == at_once.records
    assert streamed.facts == at_once.facts
    assert dropped == 0


@pytest.mark.parametrize("verbosity", ["default", "verbose"])
def test_two_requests_at_once_are_seen_beside_each_other_and_no_others(verbosity):
    records = content_of(f"llama-server-{verbosity}.log").records
    truth = truth_of(f"llama-server-{verbosity}.truth")
    beside = [int(answer["request"].startswith("together")) for answer in truth]
    assert [record.other_requests for record in records] == beside


def test_a_prompt_in_several_batches_keeps_what_was_cached_before_the_first():
    log = (REAL / "llama-server-verbose.log").read_text("utf-8")
    assert "cached n_tokens = 408, memory_seq_rm [408, end)" in log  # of the last batch
    long = content_of("llama-server-verbose.log").records[5]
    assert (long.counts.prompt_tokens, long.counts.cached_prompt_tokens) == (445, 24)


def test_the_load_is_read_where_it_is_printed():
    facts = content_of("llama-server-verbose.log").facts
    assert (facts.n_ctx, facts.n_batch, facts.n_ubatch) == (2048, 128, 128)
    assert (facts.flash_attn, facts.graph_splits) == (True, 1)
    assert (facts.kv_type_k, facts.kv_type_v) == ("f16", "f16")
    assert (facts.threads, facts.threads_hw) == (1, 2)


def test_windows_of_a_long_answer_agree_with_its_whole_time():
    long = content_of("llama-server-debug.log").records[3]
    mean_s = long.server.decode_s / long.server.decode_steps
    windows = [window.per_token_s for window in long.signs.decode_windows]
    assert len(windows) == 2
    assert min(windows) < mean_s < max(windows)


@pytest.mark.parametrize("verbosity", SERVER_LOGS)
def test_a_healthy_server_gets_no_finding(verbosity, capsys):
    status, report = verdict_of(f"llama-server-{verbosity}.log", capsys)
    assert (status, report["slow_phase"], report["findings"]) == (0, "none", [])


def test_below_the_default_verbosity_the_server_says_nothing_and_so_do_we(capsys):
    assert len(truth_of("llama-server-quiet.truth")) == 4  # it did answer
    status, report = verdict_of("llama-server-quiet.log", capsys)
    assert (status, report["slow_phase"], report["requests"]) == (4, "unknown", [])


@pytest.mark.parametrize(
    ("name", "request_name"), [("answer.json", "cold"), ("stream.sse", "stream")]
)
def test_an_answer_and_a_captured_stream(name, request_name):
    (record,) = content_of(f"llama-server-{name}").records
    truth = truth_of("llama-server-default.truth")
    (timings,) = [one["timings"] for one in truth if one["request"] == request_name]
    assert_told(record, timings)


def test_a_log_of_vllm_tells_windows_and_no_request(capsys):
    content = content_of("vllm.log")
    summary = content.summary
    assert (content.runtime, content.records, content.unread) == ("vllm", [], 0)
    assert (summary.generation_tps_max, summary.waiting_max) == (125.0, 0)
    status, report = verdict_of("vllm.log", capsys)
    assert (status, report["slow_phase"], report["findings"]) == (4, "unknown", [])


def test_a_log_of_mlx_lm_tells_counts_of_an_answer_and_no_time(capsys):
    content = content_of("mlx_lm.log")
    (record,) = content.records
    usage = truth_of("mlx_lm.seen")[2]["usage"]
    counts = record.counts
    assert content.runtime == "mlx_lm"
    assert counts.prompt_tokens == usage["prompt_tokens"]
    assert counts.cached_prompt_tokens == usage["prompt_tokens_details"]["cached_tokens"]
    assert counts.output_tokens == usage["completion_tokens"]
    assert record.server is None
    status, report = verdict_of("mlx_lm.log", capsys)
    assert (status, report["slow_phase"], report["findings"]) == (4, "unknown", [])


def test_a_log_of_transformers_serve_tells_nothing(capsys):
    status, report = verdict_of("transformers.log", capsys)
    assert (status, report["slow_phase"]) == (4, "unknown")
    assert (report["requests"], report["points"], report["findings"]) == ([], [], [])


def points_of(name: str) -> list[tuple]:
    return [
        (point.phase, point.tokens, point.depth_tokens, round(point.tps, 2))
        for point in content_of(f"llama-benchy-{name}").points
    ]


def test_llama_benchy_counts_the_depth_as_prompt_when_nothing_is_cached():
    assert points_of("depths.md") == [
        ("prefill", 128, 0, 139.42),
        ("decode", 16, 0, 81.17),
        ("prefill", 384, 0, 177.34),
        ("decode", 16, 256, 66.05),
    ]
    assert points_of("depths.json") == [
        ("prefill", 128, 0, 137.27),
        ("decode", 16, 0, 79.38),
        ("prefill", 384, 0, 177.47),
        ("decode", 16, 256, 64.38),
    ]


def test_llama_benchy_with_two_requests_at_once():
    assert points_of("two-at-once.md") == [
        ("prefill", 128, 0, 92.02),
        ("decode", 16, 0, 64.29),
        ("prefill", 128, 0, 88.66),
        ("decode", 16, 0, 23.44),
    ]
    assert points_of("two-at-once.csv") == [
        ("prefill", 128, 0, 139.91),
        ("decode", 16, 0, 78.52),
        ("prefill", 128, 0, 94.94),
        ("decode", 16, 0, 33.02),
    ]
