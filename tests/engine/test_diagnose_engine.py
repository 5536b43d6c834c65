"""The main job on the real llama.cpp: a valid verdict, and the numbers are the server's own."""

from __future__ import annotations

import json
from importlib.resources import files
from statistics import median

import jsonschema
import psutil
import pytest

from twospeed.cli.main import main
from twospeed.fits.observations import clock_disagreement
from twospeed.records.run_file import read_run, write_run
from twospeed.sources.engine.model import cached_model

pytestmark = pytest.mark.engine

SCHEMA = json.loads((files("twospeed.report") / "schema" / "report-1.json").read_text("utf-8"))
ENGINE = "twospeed.sources.engine.child"
SHORTEST_TOKENS = 100
"""Below, a prompt has the words of its frame alone, and timings are short against their jitter."""


def engines() -> list[psutil.Process]:
    """Engine processes that this one started."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if ENGINE in process.cmdline()
    ]


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory):
    """Exit status, report and run of one small diagnosis."""
    pytest.importorskip("xllamacpp")
    if cached_model() is None:
        pytest.skip("the model is not in the cache")
    folder = tmp_path_factory.mktemp("engine")
    out, kept = folder / "report.json", folder / "run.jsonl"
    # One thread: two that spin for each other crawl as soon as another test wants a core.
    where = ["--embedded", "--engine", "threads=1", "--no-probe"]
    cost = ["--budget", "15", "--prompt-tokens", "300", "--output-tokens", "40"]
    status = main(["diagnose", *where, *cost, "--json", "--out", str(out), "--save", str(kept)])
    assert engines() == []
    return status, json.loads(out.read_bytes()), read_run(kept)


def test_verdict_is_valid(diagnosed):
    status, report, run = diagnosed
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    assert status in {0, 4}
    assert (status == 0) == (report["slow_phase"] != "unknown" and report["conditions"]["trusted"])
    assert report["source"]["kind"] == "engine"
    assert report["source"]["runtime"] == "llama-server"
    assert report["wait"]["seconds"] > 0
    assert report["stream"]["tps"] > 0
    assert run.complete


def test_every_request_is_as_the_server_says(diagnosed):
    _, report, run = diagnosed
    assert len(run.records) >= 4
    for row, record in zip(report["requests"], run.records, strict=True):
        told = record.server
        assert record.error is None
        assert row["prefill_s"] == told.prefill_s
        assert row["prefill_tps"] == pytest.approx(told.prefill_tokens / told.prefill_s)
        assert row["decode_tps"] == pytest.approx(told.decode_steps / told.decode_s)
        assert row["prompt_tokens"] - row["cached_prompt_tokens"] == told.prefill_tokens
        assert row["ttft_s"] > told.prefill_s


def test_prompts_are_as_long_as_wanted_and_never_reused_by_accident(diagnosed):
    _, _, run = diagnosed
    for record in run.records:
        if record.step == "curve" and record.probe.prompt_tokens >= SHORTEST_TOKENS:
            wanted = record.probe.prompt_tokens
            assert record.counts.prompt_tokens == pytest.approx(wanted, rel=0.05)
            assert record.counts.cached_prompt_tokens < 32


def test_our_own_clock_agrees(diagnosed):
    """Within 15 % here, where other tests may run; benchmarks/engine_accuracy.py is strict."""
    _, _, run = diagnosed
    long_ones = [r for r in run.records if (r.counts.prompt_tokens or 0) >= SHORTEST_TOKENS]
    seen = clock_disagreement(long_ones, run.round_trip_s)
    assert seen.prefill_pairs >= 2
    assert seen.prefill_ratio == pytest.approx(1.0, abs=0.15)
    assert seen.decode_ratio == pytest.approx(1.0, abs=0.15)


def test_reuse_is_seen(diagnosed):
    _, report, run = diagnosed
    gaps = {blind["what"] for blind in report["unknown"]}
    if any(record.step == "reuse" for record in run.records):
        assert report["prompt_cache"]["reused"] == "yes"
        assert report["prompt_cache"]["how_known"] == "server"
        assert "whether a processed prompt is reused" not in gaps
    else:  # too busy a machine: no time was left for it
        assert "whether a processed prompt is reused" in gaps


def test_report_without_the_servers_clock(diagnosed, tmp_path):
    """The same run again with --ignore-timings: all points are ours, both speeds agree."""
    _, report, run = diagnosed
    kept, out = tmp_path / "run.jsonl", tmp_path / "report.json"
    write_run(kept, run)
    main(["diagnose", "--from", str(kept), "--ignore-timings", "--json", "--out", str(out)])
    blind = json.loads(out.read_bytes())
    for phase in ("prefill", "decode"):
        assert {point["origin"] for point in report[phase]["points"]} == {"server"}
        assert {point["origin"] for point in blind[phase]["points"]} == {"client"}
    assert blind["decode"]["tps"] == pytest.approx(report["decode"]["tps"], rel=0.15)
    theirs = {p["prompt_tokens"]: p["s"] for p in report["prefill"]["points"]}
    ratios = [
        p["s"] / theirs[p["prompt_tokens"]]
        for p in blind["prefill"]["points"]
        if p["prompt_tokens"] >= SHORTEST_TOKENS and p["prompt_tokens"] in theirs
    ]
    assert median(ratios) == pytest.approx(1.0, abs=0.15)
