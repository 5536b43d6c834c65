from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.text import Text

from twospeed.cures.cure import CURES
from twospeed.findings.budget import TimeBudget
from twospeed.findings.finding import CAUSES, Evidence, Finding
from twospeed.fits.interval import Interval
from twospeed.records.request_record import RequestError
from twospeed.records.run import Blind, Conditions, Source
from twospeed.report.bars import Slice, bar, in_ascii, sparkline
from twospeed.report.build import build_report
from twospeed.report.document import WontHelpPart
from twospeed.report.markdown import render_markdown
from twospeed.report.numbers import rate, seconds, seconds_range, tokens
from twospeed.report.plain import plain, plain_markdown
from twospeed.report.text import render_text
from twospeed.report.words import CAUSE_TEXT, total_text

NASTY = (
    "\x1b[2J\x1b]0;pwned\x07\x1b]8;;http://evil\x1b\\click\r\n\x9b31m\u202egnp.exe\u2028"
    "\x00|`<script>[x](y) @all 模型" + "W" * 400
)


def crowded(runs):
    """Everything at once, as long as it can get."""
    report = build_report(runs.run_of(runs.BOTH_SLOW))
    evidence = (Evidence(what=NASTY, value=NASTY, unit=NASTY, origin="server"),)
    finding = Finding(
        cause="placement.partial_offload",
        phase="both",
        certainty="reported",
        costs_s=4000.0,
        evidence=evidence,
    )
    cure = replace(report.cures[0], how=(NASTY, NASTY))
    wont = WontHelpPart(
        cure="give the conversation its own slot", saves_s=Interval(1, 2, 3), why=NASTY
    )
    return replace(
        report,
        verdict=NASTY * 3,
        findings=(finding,) * 3,
        cures=(cure,) * 9,
        wont_help=(wont,) * 9,
        unknown=(Blind(what=NASTY, needs=NASTY),) * 9,
        slow_phase="unknown",
        source=replace(
            report.source, where=NASTY, model=NASTY, runtime=NASTY, runtime_version=NASTY
        ),
        conditions=replace(report.conditions, trusted=False, warnings=(NASTY,) * 5),
        facts={"model_path": NASTY},
    )


def assert_fits(text: str, width: int = 80) -> None:
    lines = text.splitlines()
    assert max(cell_len(line) for line in lines) <= width
    assert len(lines) <= 40


@pytest.mark.parametrize("width", [60, 80, 120])
def test_one_screen_even_when_crowded(runs, width):
    text = render_text(crowded(runs), width=width, colour=False)
    assert_fits(text, width)
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert all(line.isprintable() for line in text.splitlines())
    assert "\u202e" not in text


@pytest.mark.parametrize("name", ["prefill", "decode", "both", "none", "unknown", "untrusted"])
def test_ordinary_reports_fit_without_losing_words(runs, name):
    text = render_text(build_report(runs.all_runs()[name]), colour=False)
    assert_fits(text)
    assert "…" not in text


def test_colour_changes_nothing_but_colour(runs):
    report = build_report(runs.run_of(runs.PREFILL_SLOW))
    coloured = render_text(report, colour=True)
    assert "\x1b[" in coloured
    assert Text.from_ansi(coloured).plain.rstrip() == render_text(report, colour=False).rstrip()


def test_hostile_names_cannot_colour_or_move(runs):
    source = Source(kind="live", where=NASTY, runtime="x", model="\x1b[31mred\x1b[0m")
    report = build_report(runs.run_of(runs.PREFILL_SLOW, source=source))
    assert "red" in render_text(report, colour=False)
    assert "\x1b[31mred" not in render_text(report, colour=True)
    assert "pwned" not in render_text(report, colour=True)


def test_ascii_only(runs):
    for report in (crowded(runs), build_report(runs.run_of(runs.PREFILL_SLOW))):
        text = render_text(report, colour=False, ascii_only=True)
        assert text.isascii()
        assert_fits(text)


def test_untrusted_is_said_first(runs):
    busy = Conditions(host_load=0.6, trusted=False)
    text = render_text(build_report(runs.run_of(runs.PREFILL_SLOW, conditions=busy)), colour=False)
    assert text.split("\n\n")[0].strip().startswith("Do not rely on these numbers yet")


def test_warnings_end_with_one_stop(runs):
    warned = Conditions(trusted=False, warnings=("It was busy.", "It was hot."))
    report = build_report(runs.run_of(runs.PREFILL_SLOW, conditions=warned))
    for text in (render_text(report, colour=False), render_markdown(report)):
        assert "It was busy; It was hot." in text
        assert ".." not in text.split("It was hot")[1][:3]


def test_a_run_that_stopped_says_so_before_longer_warnings(runs):
    busy = Conditions(trusted=False, warnings=("word " * 60 + "end.",))
    report = build_report(runs.run_of(runs.PREFILL_SLOW, conditions=busy, complete=False))
    assert "stopped early" in render_text(report, colour=False)


def test_failed_requests_are_told(runs):
    run = runs.run_of(runs.PREFILL_SLOW)
    refused = RequestError(kind="http", message="http://x (HTTP 500): Out of memory.")
    failed = replace(run.records[1], error=refused)
    report = build_report(replace(run, records=(run.records[0], failed, *run.records[2:])))
    said = "1 of 6 requests failed, the first one so: http://x (HTTP 500): Out of memory"
    assert report.conditions.warnings == (said,)
    assert report.conditions.trusted
    assert "Note: 1 of 6 requests failed" in render_text(report, colour=False)


@pytest.mark.parametrize(
    ("prefill_s", "answer_s", "said"),
    [
        (1.0, 2.0, "3.0 s in all"),
        (None, 2.0, "more than 2.0 s"),
        (1.0, None, "more than 1.0 s"),
        (None, None, "time not known"),
    ],
)
def test_a_total_without_a_phase_is_no_total(prefill_s, answer_s, said):
    total_s = (prefill_s or 0.0) + (answer_s or 0.0)
    budget = TimeBudget(prefill_s=prefill_s, answer_s=answer_s, total_s=total_s)
    assert total_text(budget) == said


def test_markdown_cannot_be_broken_out_of(runs):
    text = render_markdown(crowded(runs))
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\<script\\>" in text
    tables = [line for line in text.splitlines() if line.startswith("| give the conversation")]
    assert tables
    assert all(len(line.replace("\\|", "").split("|")) == 5 for line in tables)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "not known"),
        (0.0, "0 s"),
        (0.0451, "45 ms"),
        (0.3239, "0.32 s"),
        (0.9949, "0.99 s"),
        (5.06, "5.1 s"),
        (9.96, "10 s"),
        (42.4, "42 s"),
        (200.0, "3 min 20 s"),
        (-0.012, "-12 ms"),
    ],
)
def test_seconds(value, text):
    assert seconds(value) == text


def test_ranges_share_a_unit():
    assert seconds_range(Interval(4.1, 4.6, 5.0)) == "4.1 to 5.0 s"
    assert seconds_range(Interval(0.02, 0.5, 1.0)) == "20 ms to 1.0 s"
    assert seconds_range(Interval(5.0, 5.0, 5.0)) == "5.0 s"


def test_rates_do_not_hide_a_difference():
    assert rate(92.3) == "92"
    assert rate(8.13) == "8.1"
    assert rate(1240.2) == "1,240"
    assert rate(19.8, beside=20.0) == "19.8"
    assert rate(20.0, beside=20.0) == "20"
    assert rate(None) == "not known"


def test_tokens_are_rounded_only_when_long():
    assert tokens(2000) == "2,000"
    assert tokens(12_345) == "12,300"
    assert tokens(None) == "not known"


def test_bar_marks_the_goal_and_keeps_its_width():
    drawn = bar([Slice(5.0, "#", ""), Slice(0.1, "-", "")], goal=2.0, width=40).plain
    assert len(drawn) == 40
    assert drawn.index("┃") == round(2.0 / (5.1 * 1.04) * 40)
    assert len(bar([Slice(-1.0, "#", "")], goal=0.0, width=40).plain) == 40


def test_sparkline_starts_at_zero():
    assert sparkline([0.0, 1.0, 2.0]) == "▁▅█"
    assert sparkline([3.0, 3.0]) == "██"
    assert sparkline([]) == ""
    assert in_ascii("▁█┃·é") == "_#|.?"


def test_plain_keeps_words_and_drops_tricks():
    assert plain("\x1b[1mbold\x1b[0m \x1b]0;title\x07name") == "bold name"
    assert plain("a\r\n\tb\u2028c") == "a b c"
    assert plain("\u202eevil\u200b") == "evil"
    assert plain("x" * 500, longest=10) == "x" * 9 + "…"
    assert plain(None) == ""
    assert plain_markdown("a|b*c") == "a\\|b\\*c"


def test_every_cause_has_words_that_fit():
    assert set(CAUSE_TEXT) == set(CAUSES)
    assert all(len(text) <= 47 for text in CAUSE_TEXT.values())
    assert len(set(CURES)) == len(CURES) == 22


def test_the_worst_finding_has_a_hint_where_there_is_room(runs):
    report = build_report(runs.all_runs()["prefill"])
    assert f"twospeed explain {report.findings[0].cause}" in render_text(report, colour=False)
    assert "twospeed explain" not in render_text(crowded(runs), colour=False)
    healthy = build_report(runs.all_runs()["none"])
    assert "twospeed explain" not in render_text(healthy, colour=False)
