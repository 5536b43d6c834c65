"""Streams that lead a careless clock astray: the numbers are right, or null."""

from __future__ import annotations

import pytest
from fake_runtime import FakeRuntime
from twospeed_here import expected_status

from twospeed.records.run_file import read_run

PREFILL_S_PER_TOKEN = 2e-4
PREFILL_S = 300 * PREFILL_S_PER_TOKEN
STEP_S = 0.003
FEWEST_TIMED = 4
"""Requests that show a phase; the others arrived too late, or too much at once, to tell."""


@pytest.fixture
def diagnosed(twospeed, fake, tmp_path):
    """Diagnoses a runtime without clocks of its own; gives the report and what was kept."""

    def diagnose(**ways):
        pace = {"prefill_s_per_token": PREFILL_S_PER_TOKEN, "step_s": STEP_S, "llama": False}
        runtime: FakeRuntime = fake(**{**pace, **ways})
        kept = tmp_path / "run.jsonl"
        said = twospeed.diagnose(runtime.url, "--json", "--save", kept)
        assert said.status == expected_status(said.report)
        return said.report, read_run(kept), runtime

    return diagnose


def assert_prefill(report, runtime) -> None:
    """Our clock against what the server did. Whatever else runs here only makes ours late."""
    rows = zip(report["requests"], runtime.paced, strict=True)
    late_s = sorted(row["prefill_s"] - took.prefill_s for row, took in rows if row["prefill_s"])
    assert len(late_s) >= FEWEST_TIMED
    assert -0.003 < late_s[0] < 0.003
    assert late_s[len(late_s) // 2] < 0.02
    assert 0.5 < 300 / report["prefill"]["tps"] / PREFILL_S < 2.0


def assert_decode(report, runtime) -> None:
    rows = zip(report["requests"], runtime.paced, strict=True)
    ratios = sorted(row["decode_tps"] * took.token_s for row, took in rows if row["decode_tps"])
    assert len(ratios) >= FEWEST_TIMED
    assert ratios[len(ratios) // 2] == pytest.approx(1.0, rel=0.05)
    assert 0.5 < report["decode"]["tps"] * runtime.step_s < 2.0


def test_plain_stream(diagnosed):
    report, run, runtime = diagnosed()
    assert_prefill(report, runtime)
    assert_decode(report, runtime)
    assert report["prefill"]["origin"] == report["decode"]["origin"] == "fit"
    assert {point["origin"] for point in report["prefill"]["points"]} == {"client"}
    assert report["slow_phase"] == "none"
    assert run.complete


def test_clock_of_the_server(diagnosed):
    report, run, runtime = diagnosed(llama=True)
    assert {point["origin"] for point in report["prefill"]["points"]} == {"server"}
    for row, record in zip(report["requests"], run.records, strict=True):
        assert row["prefill_s"] == record.server.prefill_s
        tps = record.server.prefill_tokens / record.server.prefill_s
        assert row["prefill_tps"] == pytest.approx(tps)
    assert_prefill(report, runtime)
    assert_decode(report, runtime)


def test_clock_of_the_server_left_unused(twospeed, fake):
    runtime = fake(prefill_s_per_token=PREFILL_S_PER_TOKEN, step_s=STEP_S)
    report = twospeed.diagnose(runtime.url, "--json", "--ignore-timings").report
    assert {point["origin"] for point in report["prefill"]["points"]} == {"client"}
    assert_prefill(report, runtime)
    assert_decode(report, runtime)


def test_four_tokens_in_each_chunk(diagnosed):
    report, run, runtime = diagnosed(tokens_per_chunk=4)
    assert all(len(record.arrivals) < record.counts.output_tokens for record in run.records)
    assert_decode(report, runtime)
    assert_prefill(report, runtime)


def test_role_and_progress_are_no_tokens(diagnosed):
    report, _, runtime = diagnosed(role_first=True, progress=True)
    assert_prefill(report, runtime)
    assert_decode(report, runtime)


def test_reasoning_belongs_to_the_wait(diagnosed):
    report, run, runtime = diagnosed(reasoning_tokens=20, step_s=0.002)
    budget = report["time_budget"]
    told = sorted(20 / r.counts.output_tokens for r in run.records if r.step != "warmup")
    share = budget["reasoning_s"] / (budget["reasoning_s"] + budget["answer_s"])
    assert share == pytest.approx(told[len(told) // 2], rel=0.05)
    assert_prefill(report, runtime)
    waited_s = budget["prefill_s"] + budget["reasoning_s"]
    assert report["wait"]["seconds"] == pytest.approx(waited_s, rel=0.1)


def test_reasoning_that_is_not_shown(diagnosed):
    """The first text says nothing about prefill, so that stays unknown; decode does not."""
    report, _, runtime = diagnosed(reasoning_tokens=20, shows_reasoning=False)
    assert report["prefill"]["tps"] is None
    assert report["wait"]["seconds"] is None
    assert report["wait"]["verdict"] == "unknown"
    assert_decode(report, runtime)
    assert report["slow_phase"] == "unknown"


def test_missing_usage(diagnosed):
    report, _, runtime = diagnosed(usage=False)
    assert len(runtime.generations) > 3
    for part in (report["prefill"], report["decode"], report["stream"]):
        assert part["tps"] is None
    assert report["wait"]["seconds"] is None
    for row in report["requests"]:
        assert row["prompt_tokens"] is row["output_tokens"] is row["prefill_tps"] is None
        assert row["ttft_s"] > 0
    needs = {blind["what"]: blind["needs"] for blind in report["unknown"]}
    assert "token counts" in needs["prefill time of this workload"]
    assert "token counts" in needs["decode speed"]
    assert expected_status(report) == 4


def test_connections_that_die_after_each_answer(diagnosed):
    report, run, runtime = diagnosed(hangs_up=True)
    assert runtime.connections >= len(run.records) > 5
    assert all(record.error is None for record in run.records)
    assert_prefill(report, runtime)
    assert_decode(report, runtime)


def test_reuse_is_seen(diagnosed):
    report, run, _ = diagnosed(llama=True)
    again = [record for record in run.records if record.step == "reuse"]
    assert len(again) == 1
    assert again[0].counts.cached_prompt_tokens == again[0].counts.prompt_tokens - 1
    assert report["prompt_cache"]["reused"] == "yes"
    assert report["prompt_cache"]["how_known"] == "server"


@pytest.mark.parametrize(("factor", "named"), [(4.0, True), (1.15, False)])
def test_what_the_users_own_fields_cost_the_stream_is_measured(twospeed, fake, factor, named):
    """A sampler that takes three quarters of each step is named; one of an eighth is not."""
    runtime = fake(step_s=0.002, step_factor={"n_probs": factor})
    words = ("--request", "n_probs=9", "--stream-goal", "900", "--json")
    said = twospeed.diagnose(runtime.url, *words)
    found = {finding["cause"]: finding for finding in said.report["findings"]}
    assert ("decode.sampling" in found) == named
    if named:
        assert said.report["findings"][0]["cause"] == "decode.sampling"
        trusted = said.report["conditions"]["trusted"]
        sure = "measured" if trusted else "inferred"
        assert found["decode.sampling"]["certainty"] == sure
        assert found["decode.sampling"]["evidence"][0]["value"] == pytest.approx(0.75, abs=0.1)


def test_without_fields_nothing_is_asked_barely(twospeed, fake, tmp_path):
    path = tmp_path / "run.jsonl"
    twospeed.diagnose(fake().url, "--save", path)
    assert not any(record.step == "bare" for record in read_run(path).records)
