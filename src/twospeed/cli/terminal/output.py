"""Where a report goes, in which form, and with which exit status the command ends."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from twospeed.findings.budget import inconclusive
from twospeed.records.errors import InputError, UsageError
from twospeed.report.document import Report, to_json
from twospeed.report.markdown import render_markdown
from twospeed.report.text import render_text


def deliver(report: Report, args: Namespace) -> None:
    """Write the report to stdout or to the file of --out.

    Raises:
        InputError: the file of --out cannot be written.
    """
    if args.json:
        text = to_json(report).decode() + "\n"
    elif args.markdown:
        text = render_markdown(report)
    else:
        text = render_text(report, colour=wants_colour(args))
    if args.out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_private(args.out, text)


def wants_colour(args: Namespace) -> bool:
    """Colour only on a terminal, never against NO_COLOR (no-color.org)."""
    if args.no_color or args.out is not None or os.environ.get("NO_COLOR"):
        return False
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read: reports name models, paths and habits."""
    try:
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.") from error


def exit_status(report: Report, fail_on: Sequence[str]) -> int:
    """The status that DESIGN promises: 1 --fail-on matched, 4 inconclusive, else 0."""
    found = {finding.cause for finding in report.findings} | {report.slow_phase}
    wanted = set(fail_on)
    if wanted & found or ("any" in wanted and report.findings):
        return 1
    return 4 if inconclusive(report.slow_phase, trusted=report.conditions.trusted) else 0


def check_fail_on(words: Sequence[str], causes: Sequence[str], phases: Sequence[str]) -> None:
    """Refuse a word that could never match.

    Raises:
        UsageError: the word is neither a cause, nor a phase, nor "any".
    """
    for word in words:
        if word not in {*causes, *phases, "any"}:
            raise UsageError(
                f"--fail-on {word}: no such cause or phase.",
                hint="Use a cause such as prompt.large, a phase such as prefill, or any.",
            )
