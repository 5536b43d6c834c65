"""Where a verdict goes, in which form, and with which exit status the command ends."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

from twospeed.cli.terminal.output import (
    INCONCLUSIVE,
    check_writable,
    same_file,
    speaks_utf8,
    wants_colour,
    write_private,
    write_text,
)
from twospeed.fits.paired import PHASES, Phase
from twospeed.records.errors import UsageError
from twospeed.report.verdict import Verdict, to_json
from twospeed.report.verdict_junit import render_junit
from twospeed.report.verdict_markdown import render_verdict_markdown
from twospeed.report.verdict_text import render_verdict

_FAIL_ON = re.compile(r"slower(?::(\d+(?:\.\d+)?)%?)?")


class Gate(NamedTuple):
    """What --fail-on refuses: anything shown slower, by more than this share."""

    slower_frac: float

    def failed(self, verdict: Verdict) -> list[Phase]:
        """Phases that it refuses."""
        parts = {phase: getattr(verdict.phases, phase) for phase in PHASES}
        return [
            phase
            for phase, part in parts.items()
            if part.verdict == "slower" and (part.ratio or 0.0) > 1.0 + self.slower_frac
        ]


def parse_fail_on(word: str | None) -> Gate | None:
    """The gate of --fail-on; None without one.

    Raises:
        UsageError: neither `slower` nor `slower:5%`.
    """
    if word is None:
        return None
    found = _FAIL_ON.fullmatch(word)
    if found is None:
        raise UsageError(f"--fail-on {word}: expected slower, or slower:5%.")
    return Gate(float(found[1] or 0.0) / 100.0)


def check_output(args: Namespace) -> None:
    """Refuse before measuring what could not be delivered after it.

    Raises:
        UsageError: two outputs, or an input and an output, are one file.
        InputError: a file cannot be written.
    """
    named = {
        "--before": args.before,
        "--from": args.from_file,
        "--save": args.save,
        "--junit": args.junit,
        "--out": args.out,
    }
    given = [(option, path) for option, path in named.items() if path is not None]
    for index, (option, path) in enumerate(given):
        for other, second in given[:index]:
            if {option, other} != {"--before", "--from"} and same_file(path, second):
                raise UsageError(f"{other} and {option} name the same file.")
    check_writable(args.out)
    check_writable(args.junit)


def deliver(verdict: Verdict, args: Namespace, gate: Gate | None) -> None:
    """Write the verdict, and the JUnit file where one is asked for.

    Raises:
        InputError: a file cannot be written.
    """
    if args.junit is not None:
        write_private(Path(args.junit), render_junit(verdict, gate.failed(verdict) if gate else ()))
    write_text(rendered(verdict, args), args)


def rendered(verdict: Verdict, args: Namespace) -> str:
    """The verdict in the form that the options ask for."""
    if args.json:
        return to_json(verdict).decode() + "\n"
    if args.markdown:
        return render_verdict_markdown(verdict)
    ascii_only = args.out is None and not speaks_utf8(sys.stdout)
    return render_verdict(verdict, colour=wants_colour(args), ascii_only=ascii_only)


def exit_status(verdict: Verdict, gate: Gate | None) -> int:
    """1 the gate refuses it, 4 nothing can be told or relied on, else 0 (README, Exit status)."""
    if gate is not None and gate.failed(verdict):
        return 1
    verdicts = {getattr(verdict.phases, phase).verdict for phase in PHASES}
    told = verdicts != {"cannot tell"} and verdict.conditions.trusted
    return 0 if told else INCONCLUSIVE
