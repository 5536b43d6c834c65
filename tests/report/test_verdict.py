"""What a comparison says: sentence, terminal, Markdown, JUnit, JSON."""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from msgspec.structs import replace

from twospeed.cures.prediction import prediction_for
from twospeed.cures.sessions import compare_runs
from twospeed.fits.interval import Interval
from twospeed.fits.paired import Comparison
from twospeed.records.run import Source, Workload
from twospeed.report.verdict import ArmPart, PhasePart, PhaseParts, PredictionPart, Verdict, to_json
from twospeed.report.verdict_build import (
    About,
    arm_part,
    verdict_of_sessions,
    verdict_of_trial,
)
from twospeed.report.verdict_junit import render_junit
from twospeed.report.verdict_markdown import render_verdict_markdown
from twospeed.report.verdict_text import dots, render_verdict
from twospeed.report.verdict_words import clause, percent, sentence, times

sys.path.insert(0, str(Path(__file__).parents[1] / "cures"))

from two_machines import TwoMachines

SCHEMA = json.loads((files("twospeed.report") / "schema" / "verdict-1.json").read_text("utf-8"))
SOURCE = Source(
    kind="live",
    where="http://127.0.0.1:8080",
    runtime="llama-server",
    runtime_version="b11549",
    model="heron-8b",
)


def arm(name: str, source: Source = SOURCE, **facts) -> ArmPart:
    return arm_part(name, "url", source, {}, facts)


def about(*arms: ArmPart) -> About:
    return About(
        arms=arms or (arm("first"), arm("second")),
        workload=Workload(prompt_tokens=2000, output_tokens=300),
        made_at="2026-11-30T12:00:00Z",
        twospeed_version="0.1.0",
    )


def verdict(*, arms=(), budget_s: float = 60.0, failure: str | None = None, **machines) -> Verdict:
    result = TwoMachines(**machines).result(budget_s=budget_s)
    return verdict_of_trial(result, about(*arms), failure=failure)


def told(low: float, ratio: float, high: float, verdict: str, **changes) -> PhasePart:
    return PhasePart(verdict=verdict, low=low, ratio=ratio, high=high, pairs=19, **changes)


SAME = told(0.98, 1.0, 1.03, "no difference shown")
FASTER = told(1 / 1.46, 1 / 1.38, 1 / 1.31, "faster")


def test_the_sentence_says_factor_interval_and_what_did_not_change():
    parts = PhaseParts(prefill=SAME, decode=FASTER, workload=told(0.79, 0.8, 0.82, "faster"))
    x = "\N{MULTIPLICATION SIGN}"
    assert sentence(parts) == (
        f"The stream is 1.38{x} faster, 95 % sure it is between 1.31{x} and 1.46{x}; "
        f"the wait did not change: within 3 %; "
        f"the whole request is 1.25{x} faster, between 1.22{x} and 1.27{x}."
    )


def test_slower_and_unknown_are_said():
    slow = told(1.2, 1.3, 1.4, "slower")
    x = "\N{MULTIPLICATION SIGN}"
    assert clause("prefill", slow) == f"the wait is 1.30{x} slower, between 1.20{x} and 1.40{x}"
    few = Comparison(verdict="cannot tell", pairs=4, why="too_few")
    assert clause("decode", few) == ("cannot tell about the stream: only 4 pairs, and 7 are needed")
    assert "not measured" in clause("decode", Comparison(verdict="cannot tell"))


@pytest.mark.parametrize(
    ("share", "said"), [(0.03, "3 %"), (0.004, "0.4 %"), (0.0, "0.1 %"), (-0.2, "20 %")]
)
def test_percent(share: float, said: str):
    assert percent(share) == said


def test_times():
    assert times(1.0 / 3.0).startswith("0.33")
    assert times(12.3).startswith("12")


CASES = {
    "equals": {},
    "faster": {"prefill_factor": 0.7},
    "both ways": {"prefill_factor": 0.7, "decode_factor": 1.3},
    "noisy": {"jitter": 0.5},
    "wild": {"wild_number": 9},
    "busy": {"hog_from_s": 0.0},
    "drift": {"drift": 0.5},
    "longer": {"output_share": 1.3},
    "long": {"prefill_factor": 0.5, "short_prefill_factor": 1.0, "budget_s": 300.0},
    "slow": {"prefill_s": 0.004},
}


@pytest.mark.parametrize("name", CASES)
def test_every_form_of_every_case(name: str):
    found = verdict(**CASES[name])
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(to_json(found)))
    text = render_verdict(found)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.lstrip().startswith(found.verdict[:20])
    assert "\x1b" not in text
    assert render_verdict(found, ascii_only=True).isascii()
    assert "\x1b[" in render_verdict(found, colour=True)
    assert render_verdict_markdown(found).count("| the ") == 3
    assert len(ET.fromstring(render_junit(found, ())).findall("testcase")) == 3


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wild", "far off the rest"),
        ("busy", "Other programs were at work during"),
        ("drift", "which pairs cancel"),
        ("longer", "1.30 times as long"),
        ("long", "with 500 tokens in, the wait did not change"),
        ("slow", "2,000 is extrapolated"),
        ("noisy", "the pairs scatter too much"),
        ("equals", "would have shown"),
    ],
)
def test_what_speaks_against_it_is_said(name: str, said: str):
    text = " ".join(render_verdict(verdict(**CASES[name])).split())
    assert said in text


def test_more_time_is_named_where_it_would_help():
    assert "--budget" in render_verdict(verdict(jitter=0.1))
    assert "--budget" not in render_verdict(verdict(jitter=0.002))


def test_what_differs_is_listed_once():
    first = arm("a", n_batch=512, threads=4)
    newer = replace(SOURCE, runtime_version="b11600")
    second = arm("b", newer, n_batch=2048, threads=4)
    second = replace(second, settings={"batch-size": "2048"})
    first = replace(first, settings={"batch-size": "512"})
    found = verdict(arms=(first, second))
    assert [(one.what, one.first, one.second) for one in found.changes] == [
        ("runtime version", "b11549", "b11600"),
        ("batch-size", "512", "2048"),
    ]
    assert "runtime version: b11549 → b11600" in render_verdict(found)


def test_hostile_names_do_nothing():
    nasty = replace(SOURCE, model="x\x1b[31m|`<b>@all\n\u202e")
    found = verdict(arms=(arm("\x1b]0;t\x07|", nasty), arm("second")), failure="\x1b[2J*bad*")
    for text in (
        render_verdict(found),
        render_verdict_markdown(found),
        render_junit(found, ["prefill"]),
    ):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<b>" not in render_verdict_markdown(found)


def test_failed_phases_fail_in_junit():
    found = verdict(prefill_factor=1.5)
    suite = ET.fromstring(render_junit(found, ["prefill", "workload"]))
    assert suite.get("failures") == "2"
    failure = suite.find("testcase/failure")
    assert failure.get("type") == "slower"
    assert "the wait is" in failure.get("message")
    unknown = ET.fromstring(render_junit(verdict(stop_after=3), ()))
    assert unknown.get("skipped") == "3"


def test_dots_are_placed_by_ratio():
    line = dots([1.0, 1.0, 2.0, 0.5, 100.0], span=0.6931471805599453)
    assert line[0] == "•"
    assert line[24] == "2"
    assert line[-1] == "2"
    assert dots([1.0] * 12, span=0.1)[24] == "#"


def test_a_difference_between_two_servers_that_ran_all_the_while_is_told_as_such():
    said = "true of these servers as they ran"
    faster = {"prefill_factor": 0.7}
    assert any(said in one for one in verdict(**faster).conditions.warnings)
    assert not any(said in one for one in verdict(renews=True, **faster).conditions.warnings)
    assert not any(said in one for one in verdict().conditions.warnings)
    assert verdict(renews=True, **faster).renewed_every_pair


def test_an_interruption_is_said_first():
    found = verdict(stop_after=30)
    assert not found.complete
    assert found.conditions.warnings[0].startswith("stopped early")
    assert verdict(stop_after=0).phases.prefill.verdict == "cannot tell"


def test_sessions_show_the_prediction_beside_the_measurement(runs):
    before = runs.run_of(runs.PREFILL_SLOW)
    predicted = prediction_for(before, "shorter prompt")
    result = compare_runs(before, before, replace(before.workload, prompt_tokens=1000))
    scored = PredictionPart(
        cure=predicted.cure,
        listed="wont_help",
        saves_s=predicted.saves_s,
        measured_s=result.saved_s,
        held="yes",
    )
    found = verdict_of_sessions(
        result, about(), loads=(0.02, 0.3), prediction=scored, complete=True, warnings=["busy"]
    )
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(to_json(found)))
    text = " ".join(render_verdict(found).split())
    assert "'shorter prompt' saves" in text
    assert "advised against it" in text
    assert "the prediction held" in text
    assert "used 2 % of the processors then and 30 % now" in text
    assert "Not interleaved" in text
    assert not found.conditions.trusted
    unknown = replace(scored, measured_s=None, held="cannot tell")
    assert "cannot be told" in render_verdict(replace(found, prediction=unknown))
    failed = replace(scored, measured_s=Interval(0.0, 0.1, 0.2), held="no")
    assert "did not hold" in render_verdict_markdown(replace(found, prediction=failed))
