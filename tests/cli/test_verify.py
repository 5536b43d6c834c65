"""`twospeed verify`: two servers, two ways of asking, before and after, gates and errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from fake_runtime import FakeRuntime, always, from_number
from served_fake import serving

from twospeed.cli.main import main
from twospeed.records.ledger import Outcome, append_outcome, ledger_path, read_outcomes
from twospeed.records.run_file import read_run

SCHEMA = json.loads((files("twospeed.report") / "schema" / "verdict-1.json").read_text("utf-8"))
SMALL = ("--prompt-tokens", "200", "--output-tokens", "20", "--budget", "3")
SLOW_PREFILL = {"prefill_s_per_token": 2e-4}


def valid(text: str):
    """The one JSON object that a text consists of, checked against the schema."""
    assert text.endswith("}\n")
    verdict = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(verdict)
    return verdict


def verified(twospeed, *argv):
    said = twospeed("verify", *argv, "--json")
    assert said.out, said.err
    verdict = valid(said.out)
    assert said.err == ""
    told = {part["verdict"] for part in verdict["phases"].values()}
    unsure = told == {"cannot tell"} or not verdict["conditions"]["trusted"]
    assert said.status == (4 if unsure else 0)
    return verdict


def test_two_endpoints_of_which_the_second_reads_faster(fake, twospeed):
    slow, quick = fake(**SLOW_PREFILL), fake(prefill_s_per_token=1e-4)
    verdict = verified(twospeed, slow.url, quick.url, *SMALL)
    prefill, decode = verdict["phases"]["prefill"], verdict["phases"]["decode"]
    assert prefill["verdict"] == "faster"
    assert prefill["low"] <= prefill["ratio"] <= prefill["high"] < 0.9
    assert decode["verdict"] != "faster" or decode["high"] > 0.9
    assert verdict["arms"][1]["source"]["where"] == quick.url
    assert verdict["method"] == "pairs"
    assert len(verdict["pairs"]) >= prefill["pairs"] >= 7
    assert "the wait is" in verdict["verdict"].lower()
    assert len(slow.generations) == len(quick.generations)
    prompts = [[one.prompt_tokens for one in runtime.generations] for runtime in (slow, quick)]
    assert sorted(prompts[0]) == sorted(prompts[1])


@pytest.mark.skipif(os.name != "posix", reason="quoting of POSIX shells")
def test_a_server_that_does_not_start_again_leaves_a_verdict_on_the_pairs(twospeed, tmp_path):
    """Each start leaves a letter; the eleventh finds ten of them and ends at once."""
    starts = tmp_path / "starts"
    line = f"sh -c 'printf x >> {starts}; test $(wc -c < {starts}) -le 10 && exec \"$@\"' sh "
    verdict = verified(
        twospeed,
        *("--command", line + serving(0.001), "--command", serving(0.001)),
        *(*SMALL, "--starts", "each"),
    )
    assert len(verdict["pairs"]) == 10
    assert verdict["why_stopped"] == "errors"
    assert not verdict["complete"]
    assert verdict["renewed_every_pair"]
    assert "ended early" in verdict["conditions"]["warnings"][0]
    assert verdict["phases"]["decode"]["verdict"] != "faster"


def test_a_person_reads_the_answer_first(fake, twospeed, tmp_path):
    slow, quick = fake(**SLOW_PREFILL), fake()
    junit, saved = tmp_path / "verify.xml", tmp_path / "run.jsonl"
    said = twospeed(
        "verify",
        quick.url,
        slow.url,
        *SMALL,
        "--fail-on",
        "slower:5%",
        "--junit",
        junit,
        "--save",
        saved,
    )
    assert said.status == 1
    lines = said.out.splitlines()
    assert "The wait is " in said.out
    assert "95 % sure it is between" in " ".join(said.out.split())
    assert all(len(line) <= 80 for line in lines)
    assert "┃" in said.out
    suite = ET.fromstring(junit.read_text("utf-8"))
    failed = {
        case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None
    }
    assert "the wait" in failed
    assert suite.get("failures") == str(len(failed))
    for number in (1, 2):
        run = read_run(tmp_path / f"run-{number}.jsonl")
        assert run.complete
        assert len(run.records) == len(slow.generations)


def test_a_gate_lets_small_losses_pass(fake, twospeed):
    slow, quick = fake(**SLOW_PREFILL), fake(prefill_s_per_token=1.5e-4)
    said = twospeed("verify", quick.url, slow.url, *SMALL, "--fail-on", "slower:900%", "--markdown")
    assert said.status in {0, 4}
    assert said.out.startswith("**")
    assert "| the wait | slower |" in said.out


def test_two_ways_of_asking_one_endpoint(fake, twospeed):
    runtime = fake()
    verdict = verified(
        twospeed, runtime.url, "--request", "temperature=0", "--request", "temperature=1", *SMALL
    )
    assert [arm["settings"] for arm in verdict["arms"]] == [
        {"temperature": "0"},
        {"temperature": "1"},
    ]
    assert {"what": "temperature", "first": "0", "second": "1"} in verdict["changes"]
    assert verdict["phases"]["prefill"]["verdict"] in {"no difference shown", "cannot tell"}


def test_the_prompt_cache_is_compared_with_known_prompts(fake, twospeed):
    """Each prompt follows its own beginning; this fake reuses nothing but whole prompts."""
    runtime = fake()
    verdict = verified(
        twospeed,
        runtime.url,
        "--request",
        "cache_prompt=false",
        "--request",
        "cache_prompt=true",
        *SMALL,
    )
    lengths = [one.prompt_tokens for one in runtime.generations[2:]]
    primes = [one for one in lengths if one < 190]
    assert len(primes) >= len(verdict["pairs"]) * 2
    assert verdict["phases"]["prefill"]["verdict"] in {"no difference shown", "cannot tell"}


@pytest.mark.skipif(os.name != "posix", reason="quoting of POSIX shells")
def test_two_command_lines_are_started_and_ended(twospeed):
    verdict = verified(twospeed, "--command", serving(0.001), "--command", serving(0.003), *SMALL)
    assert verdict["phases"]["decode"]["verdict"] == "slower"
    assert verdict["arms"][0]["kind"] == "command"
    assert verdict["arms"][0]["source"]["where"] == "started by --command"


def test_before_and_after_with_a_prediction(fake, twospeed, saved_before, data_home):
    """The answer is asked for at half its length: the prediction lies on the earlier curve."""
    verdict = verified(
        twospeed,
        "--before",
        saved_before,
        fake(step_s=0.004, **SLOW_PREFILL).url,
        "--cure",
        "shorter-answer",
        "--budget",
        "6",
    )
    assert verdict["method"] == "sessions"
    assert verdict["arms"][0]["kind"] == "before"
    prediction = verdict["prediction"]
    assert prediction["cure"] == "shorter answer"
    assert prediction["saves_s"]["likely"] > 0
    assert prediction["measured_s"]["likely"] == pytest.approx(
        prediction["saves_s"]["likely"], rel=0.35
    )
    assert any("not interleaved" in one for one in verdict["conditions"]["warnings"])
    (kept,) = read_outcomes(ledger_path({"XDG_DATA_HOME": str(data_home)}, "linux"))
    assert kept.held == prediction["held"]


@pytest.fixture(scope="module")
def saved_before(tmp_path_factory) -> Path:
    """A diagnosis of a runtime that is slow enough for cures to be worth naming."""
    path = tmp_path_factory.mktemp("before") / "before.jsonl"
    runtime = FakeRuntime(step_s=0.004, **SLOW_PREFILL).start()
    try:
        status = main(
            [
                "diagnose",
                runtime.url,
                "--no-probe",
                "--prompt-tokens",
                "800",
                "--output-tokens",
                "400",
                "--budget",
                "6",
                "--stream-goal",
                "900",
                "--wait-goal",
                "0.01",
                "--save",
                str(path),
                "-o",
                str(path.with_suffix(".txt")),
            ]
        )
    finally:
        runtime.stop()
    assert status in {0, 4}
    return path


def test_before_against_a_faster_server(fake, twospeed, saved_before, tmp_path):
    saved = tmp_path / "now.jsonl"
    verdict = verified(
        twospeed, "--before", saved_before, fake(step_s=0.001).url, "--budget", "5", "--save", saved
    )
    assert verdict["phases"]["decode"]["verdict"] == "faster"
    assert verdict["phases"]["decode"]["high"] < 0.7
    assert verdict["prediction"] is None
    assert read_run(saved).complete


def test_before_against_the_same_shows_no_difference(fake, twospeed, saved_before):
    same = fake(step_s=0.004, **SLOW_PREFILL)
    verdict = verified(twospeed, "--before", saved_before, same.url, "--budget", "5")
    assert all(
        part["verdict"] in {"no difference shown", "cannot tell"}
        for part in verdict["phases"].values()
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "needs two arms, and 0 were given"),
        ((":1",), "needs two arms, and 1 were given"),
        ((":1", ":2", "--engine", "threads=1"), "and 3 were given"),
        ((":1", "--cure", "larger batch"), "--cure needs --before"),
        ((":1", "--request", "a=1"), "--request twice"),
        ((":1", "--request", "a", "--request", "b=2"), "expected FIELD=VALUE"),
        ((":1", ":2", "--fail-on", "faster"), "expected slower"),
        ((":1", "--ledger"), "measures nothing"),
        (("--engine", "no-such-thing=1", "--engine", "threads=1"), "no such setting"),
        (("--command", "serve", "--command", "serve"), "no {port}"),
        ((":1", ":2", "--out", "same", "--junit", "same"), "the same file"),
    ],
)
def test_what_cannot_be_meant(twospeed, words, said: str):
    found = twospeed("verify", *words)
    assert found.status == 2
    assert said in found.complaint


def test_a_cure_that_the_diagnosis_did_not_name(fake, twospeed, saved_before):
    found = twospeed("verify", "--before", saved_before, ":1", "--cure", "keep the model loaded")
    assert found.status == 2
    assert "predicted nothing" in found.complaint
    found = twospeed("verify", "--before", saved_before, ":1", "--cure", "shorter anser")
    assert "Did you mean shorter answer" in found.complaint


def test_a_run_that_shows_too_little(twospeed, tmp_path, fake):
    kept = tmp_path / "time.jsonl"
    twospeed("time", fake().url, "--prompt-tokens", "50", "--output-tokens", "5", "--save", kept)
    found = twospeed("verify", "--before", kept, ":1")
    assert found.status == 3
    assert "nothing to compare" in found.complaint


def test_a_server_that_refuses_is_quoted(fake, twospeed):
    found = twospeed("verify", fake().url, fake(fault=always("refuse")).url, *SMALL)
    assert found.status == 3
    assert "out of memory" in found.complaint


def test_failures_on_the_way_leave_what_was_measured(fake, twospeed):
    broken = fake(fault=from_number(9, "refuse"))
    verdict = verified(twospeed, fake().url, broken.url, *SMALL)
    assert not verdict["complete"]
    assert verdict["why_stopped"] == "errors"
    assert any("out of memory" in one for one in verdict["conditions"]["warnings"])


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("answered", "told"), [(6, False), (13, True)])
def test_ctrl_c_leaves_a_verdict(fake, answered: int, told: bool, data_home):
    held = fake(fault=from_number(answered, "stall"), **SLOW_PREFILL)
    with subprocess.Popen(
        [sys.executable, "-m", "twospeed", "verify", held.url, fake().url, *SMALL, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert held.held.wait(30)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    verdict = valid(out)
    assert err == ""
    assert verdict["why_stopped"] == "interrupted"
    assert verdict["phases"]["prefill"]["verdict"] == ("faster" if told else "cannot tell")


def test_the_ledger_is_shown_by_change_and_quoted_by_reports(twospeed, data_home, tmp_path):
    assert "No prediction was checked yet" in twospeed("verify", "--ledger").out
    path = ledger_path({"XDG_DATA_HOME": str(data_home)}, "linux")
    for cure, held in (("larger batch", "yes"), ("larger batch", "no"), ("shorter prompt", "yes")):
        append_outcome(
            path,
            Outcome(
                made_at="2026-11-30T12:00:00Z",
                twospeed_version="0.1.0",
                cure=cure,
                predicted_low_s=1.0,
                predicted_likely_s=2.0,
                predicted_high_s=3.0,
                measured_likely_s=2.5,
                held=held,
            ),
        )
    said = twospeed("verify", "--ledger")
    rows = [line.split() for line in said.out.splitlines()]
    assert ["larger", "batch", "2", "1", "1", "0"] in rows
    document = json.loads(twospeed("verify", "--ledger", "--json").out)
    assert document["cures"][1] == {
        "cure": "shorter prompt",
        "checked": 1,
        "held": 1,
        "did_not_hold": 0,
        "cannot_tell": 0,
    }
    log = tmp_path / "server.log"
    log.write_text(
        "prompt eval time = 20000.00 ms / 2000 tokens\n       eval time = 3000.00 ms / 100 tokens\n"
        "      total time = 23000.00 ms / 2100 tokens\n",
        "utf-8",
    )
    record = twospeed("read", log, "--json").report["track_record"]
    assert ("shorter prompt", 1, 1) in [
        (one["cure"], one["checked"], one["held"]) for one in record
    ]
    for form in ("--no-color", "--markdown"):
        assert "held 1 of 1 times here" in twospeed("read", log, form).out
    path.write_text("{", "utf-8")
    assert twospeed("read", log, "--json").report["track_record"] == []
