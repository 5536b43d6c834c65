"""Where the lines of the stopwatch go: each at once, or all in the end."""

from __future__ import annotations

import sys
from argparse import Namespace
from io import TextIOWrapper

from twospeed.cli.terminal.output import speaks_utf8, wants_colour, write_private
from twospeed.report.timing import TimedRequest, Timing, to_json
from twospeed.report.timing_text import render_heading, render_row, render_summary


class Printing:
    """Writes to stdout as it goes; a JSON object, or a file of --out, only when all is known."""

    def __init__(self, args: Namespace) -> None:
        self._args = args
        self._colour = wants_colour(args)
        self._ascii_only = args.out is None and not speaks_utf8(sys.stdout)
        self._kept: list[str] = []

    def begin(self) -> None:
        """Write the line above the requests."""
        self._line(render_heading(colour=self._colour))

    def row(self, row: TimedRequest) -> None:
        """Write the line of one request."""
        if not self._args.json:
            self._line(render_row(row, colour=self._colour, ascii_only=self._ascii_only))

    def finish(self, timing: Timing) -> None:
        """Write what follows the requests, or all of it.

        Raises:
            InputError: the file of --out cannot be written.
        """
        if self._args.json:
            text = to_json(timing).decode() + "\n"
        else:
            summary = render_summary(timing, colour=self._colour, ascii_only=self._ascii_only)
            text = "".join([*self._kept, summary])
        if self._args.out is not None:
            write_private(self._args.out, text)
            return
        if self._args.json and isinstance(sys.stdout, TextIOWrapper):
            # JSON is UTF-8 by definition, whatever the terminal speaks.
            sys.stdout.reconfigure(encoding="utf-8")
        sys.stdout.write(text)
        sys.stdout.flush()

    def _line(self, line: str) -> None:
        if self._args.json:
            return
        if self._args.out is not None:
            self._kept.append(line + "\n")
            return
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
