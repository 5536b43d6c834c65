"""Where a report goes, in which form, and with which exit status the command ends."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO, get_args

from twospeed.cli.terminal.abilities import shows_colour
from twospeed.findings.budget import inconclusive
from twospeed.findings.finding import CAUSES, SlowPhase
from twospeed.records.errors import InputError, UsageError
from twospeed.report.document import Report, to_json
from twospeed.report.markdown import render_markdown
from twospeed.report.text import render_text

INCONCLUSIVE = 4
"""Exit status: read or measured, and nothing that can be acted on."""


def deliver(report: Report, args: Namespace) -> None:
    """Write the report to stdout or to the file of --out.

    Raises:
        InputError: the file of --out cannot be written.
    """
    refuse_closed_stdout(args)
    write_text(rendered(report, args), args)


def refuse_closed_stdout(args: Namespace) -> None:
    """Refuse to render for a stdout that is not there.

    Raises:
        InputError: it was closed before we began, and there is no --out.
    """
    if args.out is None and sys.stdout is None:
        raise InputError("Cannot write the result: stdout is closed.", hint="Use --out FILE.")


def write_text(text: str, args: Namespace) -> None:
    """Write to stdout or to the file of --out.

    Raises:
        InputError: the file cannot be written.
    """
    if args.out is not None:
        write_private(args.out, text)
        return
    if (args.json or args.markdown) and isinstance(sys.stdout, TextIOWrapper):
        # Both are UTF-8 by definition, whatever the terminal speaks.
        sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(text)
    sys.stdout.flush()


def rendered(report: Report, args: Namespace) -> str:
    """The report in the form that the options ask for."""
    if args.json:
        return to_json(report).decode() + "\n"
    if args.markdown:
        return render_markdown(report)
    ascii_only = args.out is None and not speaks_utf8(sys.stdout)
    return render_text(report, colour=wants_colour(args), ascii_only=ascii_only)


def speaks_utf8(stream: TextIO) -> bool:
    """Whether bars and dashes can be written there."""
    return (stream.encoding or "").lower().replace("-", "") in {"utf8", "utf8sig"}


def wants_colour(args: Namespace) -> bool:
    """Colour where the report goes to a terminal that may show it."""
    return args.out is None and shows_colour(no_color=args.no_color)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read: reports name models, paths and habits."""
    try:
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or error}.") from error


def exit_status(report: Report, fail_on: Sequence[str]) -> int:
    """The status of a report: 1 --fail-on matched, 4 inconclusive, else 0 (README, Exit status)."""
    found = {finding.cause for finding in report.findings} | {report.slow_phase}
    wanted = set(fail_on)
    if wanted & found or ("any" in wanted and report.findings):
        return 1
    return INCONCLUSIVE if inconclusive(report.slow_phase, trusted=report.conditions.trusted) else 0


def check_output(args: Namespace) -> None:
    """Refuse before measuring what could not be delivered after it.

    Raises:
        UsageError: a word of --fail-on is neither a cause, nor a phase, nor "any", or the report
            would replace the records.
        InputError: the file of --out cannot be written.
    """
    check_fail_on(args.fail_on)
    check_writable(args.out)
    for option, path in (("--from", args.from_file), ("--save", args.save)):
        if path is not None and args.out is not None and same_file(path, args.out):
            raise UsageError(f"--out and {option} name the same file: the report would replace it.")


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, also before it exists."""
    return one.resolve() == other.resolve() or (
        one.exists() and other.exists() and one.samefile(other)
    )


def check_writable(out: Path | None) -> None:
    """Refuse a file that cannot be written; None is stdout.

    Raises:
        InputError: says why.
    """
    if out is None:
        return
    if out.is_dir():
        raise InputError(f"Cannot write {out}: it is a directory.")
    if not out.parent.is_dir():
        raise InputError(f"Cannot write {out}: there is no directory {out.parent}.")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise InputError(f"Cannot write {out}: permission denied.")


def check_fail_on(words: Sequence[str]) -> None:
    """Refuse a word that could never match.

    Raises:
        UsageError: the word is neither a cause, nor a phase, nor "any".
    """
    for word in words:
        if word not in {*CAUSES, *get_args(SlowPhase), "any"}:
            raise UsageError(
                f"--fail-on {word}: no such cause or phase.",
                hint="Use a cause such as prompt.large, a phase such as prefill, or any.",
            )
