from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from twospeed.cures.elsewhere import Remote
from twospeed.cures.scenario import read_scenarios
from twospeed.fits.interval import Interval
from twospeed.report.build import build_report
from twospeed.report.document import to_json
from twospeed.report.markdown import render_markdown
from twospeed.report.text import render_text
from twospeed.report.what_if import Asked

SCHEMA = json.loads((files("twospeed.report") / "schema" / "report-1.json").read_text("utf-8"))
REMOTE = Remote(
    ttft_s=0.8,
    tps=60.0,
    ttft_per_1k_s=0.1,
    price_in=3.0,
    price_out=15.0,
    local_watts=100.0,
    price_kwh=0.3,
)
TEXTS = (
    "prompt=0.5",
    "cache=on",
    "quant=q4_k_m",
    "prompt=0.5,cache=on,quant=q4_k_m,depth=2000,bandwidth=2",
    "offload=full",
    "output=100",
    "compute=2",
    "flash_attn=on",
)
ASKED = Asked(scenarios=read_scenarios(TEXTS), remote=REMOTE)
NAMES = ["prefill", "decode", "both", "none", "unknown", "untrusted"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("asked", [ASKED, Asked(scenarios=ASKED.scenarios), Asked(remote=REMOTE)])
def test_answers_fit_the_screen_and_the_schema(runs, name, asked):
    report = build_report(runs.all_runs()[name], asked)
    text = render_text(report, colour=False)
    assert len(text.splitlines()) <= 40
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    document = json.loads(to_json(report))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert len(document["what_if"]) == (len(TEXTS) + 1 if asked.scenarios else 0)
    assert (document["elsewhere"] is None) == (asked.remote is None)


def test_one_screen_even_where_everything_else_is_long(runs):
    report = build_report(runs.all_runs()["both"], ASKED)
    long = replace(
        report,
        verdict="word " * 99,
        findings=(*report.findings, *report.findings)[:3],
        unknown=(*report.unknown,) * 9,
        slow_phase="unknown",
        source=replace(report.source, model="m" * 99, where="w" * 99),
        conditions=replace(report.conditions, trusted=False, warnings=("word " * 20,) * 5),
    )
    assert len(render_text(long, colour=False).splitlines()) <= 40


def test_the_table_of_the_terminal(runs):
    text = render_text(build_report(runs.all_runs()["both"], ASKED), colour=False)
    rows = [line.split() for line in text.splitlines()]
    assert ["now", "8.0", "s", "4.8", "tok/s", "70", "s"] in rows
    assert any(row[:3] == ["prompt=0.5", "4.0", "s"] for row in rows)
    assert "and 6 more: --json" in text
    assert "Elsewhere" in text
    assert "WHAT WOULD NOT" not in text, "the answers need its room"


def test_an_unpriced_change_says_what_it_needs(runs):
    asked = Asked(scenarios=read_scenarios(["offload=full"]))
    text = render_text(build_report(runs.all_runs()["both"], asked), colour=False)
    assert "needs offload: a model" in text


def test_markdown_holds_every_row_and_shape(runs):
    text = render_markdown(build_report(runs.all_runs()["both"], ASKED))
    assert all(scenario.text.replace("_", "\\_") in text for scenario in ASKED.scenarios)
    assert "| tokens in | out | here | there | faster |" in text


def test_without_questions_nothing_is_said(runs):
    report = build_report(runs.all_runs()["both"])
    assert (report.what_if, report.elsewhere) == ((), None)
    for text in (render_text(report, colour=False), render_markdown(report)):
        assert "what if" not in text.lower()
        assert "Elsewhere" not in text


def test_a_change_that_slows_the_other_phase_says_so(runs):
    report = build_report(runs.all_runs()["both"])
    cure = report.cures[0]
    slower = replace(
        cure,
        wait_s=Interval(9.0, 9.0, 9.0),
        answer_s=Interval(-2.0, -2.0, -2.0),
    )
    text = render_text(replace(report, cures=(slower,)), colour=False)
    assert "slows the stream by 2.0 s" in text
