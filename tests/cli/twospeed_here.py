"""The command line run in this process, and what it said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

import jsonschema

from twospeed.cli.main import main

QUICK = ("--no-probe", "--prompt-tokens", "300", "--output-tokens", "60", "--budget", "1.5")
"""A whole diagnosis of the fake runtime in about a second."""
SCHEMA = json.loads((files("twospeed.report") / "schema" / "report-1.json").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Said:
    """One run of the command line."""

    status: int
    out: str
    err: str

    @property
    def report(self):
        """The JSON report; fails unless stdout holds it, it is valid, and nothing else is there."""
        report = valid(self.out)
        assert self.status in {0, 1, 4}
        return report

    @property
    def complaint(self) -> str:
        """The last line of stderr, when nothing was reported."""
        assert self.out == ""
        lines = self.err.splitlines()
        assert lines[-1].startswith("twospeed: "), self.err
        assert "Traceback" not in self.err
        assert "a fault of its own" not in self.err
        return lines[-1]


class Twospeed:
    """Runs commands and takes what they wrote."""

    def __init__(self, capture) -> None:
        self._capture = capture

    def __call__(self, *argv: object) -> Said:
        self._capture.readouterr()
        status = main([str(word) for word in argv])
        out, err = self._capture.readouterr()
        return Said(status, out, err)

    def diagnose(self, url: str, *argv: object) -> Said:
        """A quick diagnosis."""
        return self("diagnose", url, *QUICK, *argv)


def valid(text: str):
    """The one JSON object that a text consists of, checked against the schema."""
    assert text.endswith("}\n")
    report = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    return report


def expected_status(report) -> int:
    """The exit status that a report earns by itself: a busy host must not make a test fail."""
    blind = report["slow_phase"] == "unknown" or not report["conditions"]["trusted"]
    return 4 if blind else 0
