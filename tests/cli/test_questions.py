from __future__ import annotations

import json

import pytest

from twospeed.records.run_file import read_run, write_run
from twospeed.runtimes.registry import settings_of


@pytest.fixture
def saved(runs, tmp_path):
    path = tmp_path / "run.jsonl"
    write_run(path, runs.run_of(runs.BOTH_SLOW))
    return str(path)


def test_what_if_and_elsewhere_reach_the_report(twospeed, saved):
    said = twospeed(
        "diagnose", "--from", saved, "--json", "--what-if", "prompt=0.5,cache=on",
        "--what-if", "bandwidth=2", "--remote-ttft", "0.5", "--remote-tps", "60",
    )  # fmt: skip
    document = json.loads(said.out)
    changes = [row["change"] for row in document["what_if"]]
    assert changes == ["", "prompt=0.5,cache=on", "bandwidth=2"]
    assert document["elsewhere"]["remote"]["tps"] == 60.0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--what-if", "nonsense=1"], "not a change that can be priced"),
        (["--what-if", "prompt=-3"], "prompt takes a part"),
        (["--remote-ttft", "1"], "--remote-ttft and --remote-tps are given together"),
        (["--price-in", "1", "--price-out", "2"], "--price-in describes another server"),
        (["--local-watts", "90"], "--local-watts and --price-kwh are given together"),
        (["--remote-tps", "0"], "not a number above 0"),
    ],
)
def test_impossible_questions_are_refused_before_anything_is_measured(
    twospeed, saved, argv, message
):
    said = twospeed("diagnose", "--from", saved, *argv)
    assert said.status == 2
    assert message in said.err
    assert said.out == ""


def test_a_run_from_before_the_spellings_gets_those_of_its_runtime(twospeed, runs, tmp_path):
    path = tmp_path / "old.jsonl"
    write_run(path, runs.run_of(runs.Machine(per_token_s=0.003, reuses=False), settings={}))
    document = json.loads(twospeed("diagnose", "--from", str(path), "--json").out)
    (on,) = [cure for cure in document["cures"] if cure["cure"] == "turn reuse on"]
    assert on["how"][0].startswith("start with --cache-prompt")


def test_spellings_are_kept_with_a_measured_run(saved_run):
    run = read_run(saved_run)
    assert run.settings == settings_of(run.source.runtime) != {}
