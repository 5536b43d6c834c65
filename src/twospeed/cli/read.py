"""`twospeed read`: the same verdict from a log, an API answer or a benchmark file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from twospeed.cli.terminal.argument_types import (
    fail_on_argument,
    question_arguments,
    request_arguments,
)

EPILOGUE = """\
examples:
  twospeed read server.log                     any mix of formats, any size
  journalctl -u ollama | twospeed read -
  twospeed read bench.json other.md            benchmark tables, side by side
  twospeed read server.log.gz --last           only the last request
  twospeed read server.log --requests          one line for each request
  twospeed read server.log --follow            and what is written from now on

docs/reading-logs.md lists the formats, and what each can and cannot tell.
"""


MEDIAN = "default: median of the log"


class Read:
    """Reads texts and prints the verdict that they support."""

    name = "read"
    summary = "Read logs, API answers and benchmark files: the same verdict without a runtime."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.epilog = EPILOGUE
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("files", nargs="+", metavar="FILE", help="a text, or - for stdin")
        _which_arguments(parser)
        request_arguments(parser, prompt=MEDIAN, output=MEDIAN)
        question_arguments(parser)
        _output_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Read, then report."""
        from twospeed.cli.reading.texts import report_texts  # noqa: PLC0415  (heavy)

        return report_texts(args)


def _which_arguments(parser: ArgumentParser) -> None:
    which = parser.add_argument_group("which part")
    which.add_argument("--last", action="store_true", help="only the last request")
    which.add_argument(
        "--since",
        metavar="TIME",
        help="only lines from this time on (2026-07-24T15:30), where lines carry one",
    )
    which.add_argument("--grep", metavar="REGEX", help="only lines that match")
    which.add_argument(
        "--follow", action="store_true", help="go on reading what is written, until Ctrl-C"
    )


def _output_arguments(parser: ArgumentParser) -> None:
    out = parser.add_argument_group("output")
    form = out.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object (twospeed.report/1)")
    form.add_argument("--markdown", action="store_true", help="fit for a forum or an issue")
    form.add_argument("--requests", action="store_true", help="one line for each request")
    out.add_argument("-o", "--out", type=Path, metavar="FILE", help="write there, not to stdout")
    out.add_argument("--no-color", action="store_true", help="also: NO_COLOR=1")
    fail_on_argument(out)


COMMAND = Read()
