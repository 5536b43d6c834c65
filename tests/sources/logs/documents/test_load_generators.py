"""Load generators: sums over many requests, or requests as they saw them."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from twospeed.fits.observations import request_speeds
from twospeed.sources.logs.documents.client_requests import most_others
from twospeed.sources.logs.documents.registry import read_document


def sums(content):
    assert content.summary is not None
    return {name: value for name, value in asdict(content.summary).items() if value is not None}


def test_vllm_block_with_a_value_that_is_none(told):
    assert sums(told("vllm_bench.txt")) == {
        "completed": 50,
        "failed": 2,
        "duration_s": 20.5,
        "total_input_tokens": 25_600,
        "total_output_tokens": 6400,
        "concurrency_max": 8,
        "mean_ttft_ms": 250.5,
        "median_ttft_ms": 240.25,
        "p99_ttft_ms": 500.75,
        "mean_tpot_ms": 15.1,
        "mean_itl_ms": 15.2,
        "median_itl_ms": 14.8,
    }


def test_a_block_behind_the_names_of_containers(samples):
    text = "".join(f"bench-1  | {line}\n" for line in samples["vllm_bench.txt"].splitlines())
    content = read_document(text)
    assert content is not None
    assert sums(content)["mean_ttft_ms"] == 250.5


def test_sglang_block_is_named_and_its_mean_concurrency_is_no_limit(told):
    content = told("sglang_bench.txt")
    assert content.runtime == "sglang"
    assert sums(content) == {
        "completed": 32,
        "duration_s": 10.25,
        "total_input_tokens": 16_384,
        "total_output_tokens": 4096,
        "concurrency_max": 4,
        "mean_ttft_ms": 150.0,
        "p99_ttft_ms": 310.0,
    }


def test_a_detailed_result_has_its_requests_too(told):
    content = told("vllm_bench.json")
    assert (content.runtime, content.model) == ("vllm", "wren-7b")
    assert sums(content)["p99_ttft_ms"] == 700.0
    first, second = content.records
    assert (first.counts.prompt_tokens, first.client.ttft_s) == (100, 0.5)
    speeds = request_speeds(second)
    assert speeds.decode_s == pytest.approx(0.06)
    assert speeds.decode_tps == pytest.approx(50.0)
    assert speeds.prefill_s is None, "all were sent at once: the first token waited"
    assert second.other_requests == 1


def test_aiperf_records(told):
    content = told("aiperf.jsonl")
    first, second, third = content.records
    assert (first.counts.prompt_tokens, first.counts.output_tokens) == (100, 3)
    assert first.client.ttft_s == pytest.approx(0.2)
    assert first.client.connect_s == pytest.approx(0.0125)
    assert [arrival.coalesced for arrival in first.arrivals] == [False, False, True]
    speeds = request_speeds(first)
    assert (speeds.prefill_s, speeds.total_s) == (None, pytest.approx(0.3))
    assert second.counts.prompt_tokens == 50
    decode = request_speeds(second)
    assert (decode.decode_s, decode.decode_tps) == (pytest.approx(0.5), pytest.approx(20.0))
    assert [record.other_requests for record in content.records] == [1, 1, 0]
    assert (request_speeds(third).decode_s, content.end_to_end) == (None, 1)


def test_others_at_the_same_time():
    spans = [(0.0, 10.0), (1.0, 2.0), (3.0, 4.0), (3.5, 12.0), (20.0, 21.0)]
    assert most_others(spans) == [1, 1, 2, 2, 0]


def test_summary_of_aiperf_with_thousands_separators(told):
    assert sums(told("aiperf_summary.csv")) == {
        "completed": 120,
        "duration_s": 31.5,
        "mean_ttft_ms": 2100.5,
        "median_ttft_ms": 1900.0,
        "p99_ttft_ms": 8500.0,
        "mean_itl_ms": 12.5,
        "median_itl_ms": 12.0,
    }


def test_genai_perf_as_json_and_as_the_table_in_a_terminal(told):
    assert sums(told("genai_perf.json")) == {
        "completed": 64,
        "mean_ttft_ms": 310.5,
        "median_ttft_ms": 300.0,
        "p99_ttft_ms": 650.0,
        "mean_itl_ms": 14.0,
        "median_itl_ms": 13.5,
    }
    assert sums(told("genai_perf.txt")) == {
        "mean_ttft_ms": 120.5,
        "median_ttft_ms": 118.0,
        "p99_ttft_ms": 180.0,
        "mean_itl_ms": 11.2,
        "median_itl_ms": 11.0,
    }


def test_guidellm_leaves_out_the_time_that_holds_the_first_token(told):
    found = sums(told("guidellm.json"))
    assert "mean_tpot_ms" not in found
    assert (found["completed"], found["failed"]) == (30, 1)
    assert (found["mean_ttft_ms"], found["p99_ttft_ms"], found["mean_itl_ms"]) == (210.5, 400, 13.5)
    assert (found["total_input_tokens"], found["total_output_tokens"]) == (15_360, 3000)


def test_inference_perf_in_seconds(told):
    assert sums(told("inference_perf.json")) == {
        "completed": 40,
        "failed": 2,
        "duration_s": 60.5,
        "mean_ttft_ms": 500.0,
        "median_ttft_ms": 450.0,
        "p99_ttft_ms": 1250.0,
        "mean_tpot_ms": 21.0,
        "mean_itl_ms": 20.0,
        "median_itl_ms": 19.0,
    }


def test_servebench_keeps_both_clocks_and_leaves_failures_out(told):
    content = told("servebench.json")
    (record,) = content.records
    assert record.server is not None
    assert record.server.prefill_s == pytest.approx(0.3)
    assert record.server.decode_s == pytest.approx(0.48)
    assert [arrival.at_s for arrival in record.arrivals] == [0.4, pytest.approx(0.6), 0.9]
    assert (record.other_requests, content.model) == (1, "wren-7b")
    assert sums(content)["mean_ttft_ms"] == 400.0
