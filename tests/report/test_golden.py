"""Reports as they were when last looked at. UPDATE_GOLDEN=1 writes them anew: read the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from twospeed.report.build import build_report
from twospeed.report.markdown import render_markdown
from twospeed.report.text import render_text

GOLDEN = Path(__file__).parent / "golden"
NAMES = ["prefill", "decode", "both", "none", "unknown", "untrusted"]


def check(path: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_text(runs, name):
    report = build_report(runs.all_runs()[name])
    assert report.slow_phase == {"untrusted": "prefill"}.get(name, name)
    check(GOLDEN / f"{name}.txt", render_text(report, colour=False))


@pytest.mark.parametrize("name", NAMES)
def test_markdown(runs, name):
    report = build_report(runs.all_runs()[name])
    check(GOLDEN / f"{name}.md", render_markdown(report))
