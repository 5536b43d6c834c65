"""docs/verify.md says what the code does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from twospeed.cli.main import build_parser
from twospeed.cures import pair, trial_plan, trial_result
from twospeed.fits import paired, plan
from twospeed.report.verdict import SCHEMA

PAGE = (Path(__file__).parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")
FLOWING = " ".join(PAGE.split())
COMMANDS = [line for line in PAGE.splitlines() if line.startswith("twospeed verify")]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line: str):
    assert build_parser().parse_args(shlex.split(line)[1:]).command.name == "verify"


def test_options_exist():
    parser = build_parser()
    known = set()
    for action in parser._subparsers._group_actions[0].choices["verify"]._actions:
        known |= set(action.option_strings)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) - {"--port", "--depth"}
    assert named <= known


@pytest.mark.parametrize(
    "said",
    [
        f"{paired.ERROR * 100:.0f} % of experiments",
        f"after {', '.join(map(str, paired.LOOKS[:-1]))} and {paired.LOOKS[-1]} undisturbed pairs",
        f"({paired.MOST_PAIRS} at most)",
        f"spends {100 * paired.LOOK_ERROR / paired.PHASE_ERROR:.0f} % of its phase's share",
        "Seven" if paired.FEWEST_PAIRS == 7 else "?",
        f"reaches beyond {100 * (2.718281828459045**paired.TOO_WIDE - 1):.0f} %",
        f"moved out by {paired.SESSION_FRAC * 100:.0f} %",
        f"fewer than {trial_plan.WANTED_PAIRS} pairs",
        f"enough for {trial_plan.MANY_PAIRS} pairs",
        f"{plan.DECODE_TARGET_S} s of decode",
        f"more than {pair.MOST_HOST_LOAD * 100:.0f} % of the processors",
        f"more than {trial_result.LENGTHS_DIFFER * 100:.0f} %",
    ],
)
def test_numbers_are_those_of_the_code(said: str):
    assert said in FLOWING


def test_the_schema_is_linked():
    assert SCHEMA.partition("/")[2] == "1"
    assert "verdict-1.json" in PAGE
