from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import msgspec
import pytest
from msgspec import Struct

from twospeed.cures.cure import CURES, Cure
from twospeed.findings.finding import CAUSES, Evidence, Finding
from twospeed.fits.interval import Interval
from twospeed.report.build import build_report
from twospeed.report.document import (
    PointRow,
    Report,
    RequestRow,
    WontHelpPart,
    to_json,
)

SCHEMA = json.loads((files("twospeed.report") / "schema" / "report-1.json").read_text("utf-8"))
NAMES = ["prefill", "decode", "both", "none", "unknown", "untrusted"]


def valid(report: Report) -> dict:
    document = json.loads(to_json(report))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def test_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", NAMES)
def test_reports_are_valid(runs, name):
    document = valid(build_report(runs.all_runs()[name]))
    assert document["schema"] == "twospeed.report/1"
    assert document["points"] == []


def test_unknown_is_null_and_never_absent_or_zero(runs):
    document = valid(build_report(runs.blind_run()))
    assert document["wait"]["seconds"] is None
    assert document["stream"]["tps"] is None
    assert set(document["time_budget"].values()) == {None}
    assert document["prefill"]["curve"] is None
    assert document["facts"]["n_ctx"] is None
    assert document["requests"][0]["prefill_s"] is None
    assert document["requests"][0]["total_s"] == 10.0


def test_names_that_are_keywords_in_python(runs):
    document = valid(build_report(runs.run_of(runs.PREFILL_SLOW)))
    assert document["workload"]["from"] == "default"
    assert document["cures"][0]["for"] == "prompt.large"


def encoded_names(kind: type[Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def test_every_field_is_required_by_the_schema_and_the_other_way_round():
    assert encoded_names(Report) == set(SCHEMA["required"]) == set(SCHEMA["properties"])
    for field in msgspec.structs.fields(Report):
        part = SCHEMA["properties"][field.encode_name]
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            assert encoded_names(field.type) == set(part["required"]), field.name


@pytest.mark.parametrize(
    ("definition", "kind"),
    [
        ("finding", Finding),
        ("evidence", Evidence),
        ("cure", Cure),
        ("wont_help", WontHelpPart),
        ("interval", Interval),
        ("request", RequestRow),
        ("point", PointRow),
    ],
)
def test_parts_agree_with_the_schema(definition, kind):
    assert encoded_names(kind) == set(SCHEMA["$defs"][definition]["required"])


def test_closed_lists_agree_with_the_schema():
    assert tuple(SCHEMA["$defs"]["cause"]["enum"]) == CAUSES
    assert tuple(SCHEMA["$defs"]["cure_name"]["enum"]) == CURES


def test_the_schema_refuses_what_it_should(runs):
    document = valid(build_report(runs.run_of(runs.PREFILL_SLOW)))
    later = {**document, "a_later_addition": 1}
    jsonschema.validate(later, SCHEMA)
    for broken in (
        {key: value for key, value in document.items() if key != "wait"},
        {**document, "slow_phase": "gpu"},
        {**document, "findings": document["findings"] * 4},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, SCHEMA)


def test_numbers_that_are_not_finite_become_null(runs):
    report = build_report(runs.run_of(runs.PREFILL_SLOW))
    odd = msgspec.structs.replace(report.prefill, tps_high=float("inf"))
    document = valid(msgspec.structs.replace(report, prefill=odd))
    assert document["prefill"]["tps_high"] is None


def test_the_same_run_gives_the_same_bytes(runs):
    run = runs.run_of(runs.BOTH_SLOW)
    assert to_json(build_report(run)) == to_json(build_report(run))


def test_balance_of_the_two_phases(runs):
    balance = build_report(runs.run_of(runs.PREFILL_SLOW)).balance
    assert balance.prefill_frac + balance.decode_frac == pytest.approx(1.0)
    assert balance.prefill_frac == pytest.approx(5.21 / (5.21 + 299 * 0.0105), rel=0.01)
    assert balance.equal_prompt_per_output_token == pytest.approx((2000 / 5.21) * 0.0105, rel=0.01)


def test_half_a_character_in_a_name_does_not_stop_the_report(runs):
    run = runs.run_of(runs.PREFILL_SLOW)
    run = msgspec.structs.replace(run, source=msgspec.structs.replace(run.source, model="\ud800x"))
    assert valid(build_report(run))["source"]["model"] == "?x"
