"""`twospeed explain`: what a cause is, how it is recognised, what cures it and what does not."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from twospeed.records.errors import InputError

EPILOGUE = """\
examples:
  twospeed explain                      all causes, one line each
  twospeed explain decode.depth         one page
  twospeed explain disabled compute     any unique beginning will do
  twospeed explain prompt_cache         the causes of one family
  twospeed explain larger batch         the causes that a change acts on
  twospeed explain prompt.large --json  for a program

The same pages, with links: docs/causes.md
"""


class Explain:
    """Prints pages of causes."""

    name = "explain"
    summary = "What a cause is, how it is recognised, what cures it, what does not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.epilog = EPILOGUE
        parser.add_argument(
            "words", nargs="*", metavar="CAUSE", help='causes, a family, a change, or "cures"'
        )
        form = parser.add_mutually_exclusive_group()
        form.add_argument(
            "--json", action="store_true", help="one JSON object (twospeed.explanation/1)"
        )
        form.add_argument("--markdown", action="store_true", help="the page as it was written")
        parser.add_argument("--no-color", action="store_true", help="also: NO_COLOR=1")

    def run(self, args: Namespace) -> int:
        """Print what was asked for.

        Raises:
            UsageError: a word names no cause.
            InputError: there is no standard output.
        """
        if sys.stdout is None:
            raise InputError("Cannot write the page: stdout is closed.")
        # Here and not above: `--help` must not wait for the types of findings.
        from twospeed.cli.explaining.answers import answer  # noqa: PLC0415

        said = answer(args.words, args)
        for note in said.notes:
            print(f"twospeed: {note}", file=sys.stderr)
        sys.stdout.write(said.text)
        sys.stdout.flush()
        return 0


COMMAND = Explain()
