"""The command line: `main(argv)` returns an exit status and lets nothing escape."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
from collections.abc import Sequence

from twospeed import __version__
from twospeed.cli.command import all_commands
from twospeed.records.errors import TwospeedError
from twospeed.report.plain import plain

NOT_WRITTEN = {errno.EPIPE, errno.ENOSPC, errno.EBADF, errno.EIO, errno.EDQUOT}
MOST_CHARS = 1000
"""Of one message: a server may list very many models."""

EPILOGUE = """\
examples:
  twospeed                                 find and diagnose the runtime here
  twospeed diagnose http://127.0.0.1:8080  this one
  twospeed diagnose --embedded             a real llama.cpp, fetched for it

exit status: 0 measured, 1 --fail-on matched, 2 usage,
3 endpoint or input failed, 4 measured but inconclusive, 70 a fault of twospeed
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: arguments without the program name; None takes those of the process.

    Returns:
        The exit status.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        args = build_parser().parse_args(with_default_command(words))
    except SystemExit as leaving:  # argparse has printed help or a usage error
        return leaving.code if isinstance(leaving.code, int) else 2
    return status_of(args)


def status_of(args: argparse.Namespace) -> int:
    """Run the chosen command; every failure becomes one line and an exit status."""
    try:
        status: int = args.command.run(args)
    except TwospeedError as error:
        print(f"twospeed: {plain(str(error), longest=MOST_CHARS)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("twospeed: stopped before anything was measured.", file=sys.stderr)
        return 130
    except Exception as error:  # noqa: BLE001 - the one place where our own bugs are told
        if isinstance(error, OSError) and error.errno in NOT_WRITTEN:
            return unwritten(error)
        return own_fault(error, debug=args.debug)
    return status


def unwritten(error: OSError) -> int:
    """Tell that the result could not be written; no word when its reader (head, less) has gone."""
    silence_stdout()
    if isinstance(error, BrokenPipeError):
        return 0
    print(f"twospeed: Cannot write the result: {error.strerror}.", file=sys.stderr)
    return 3


def own_fault(error: Exception, *, debug: bool) -> int:
    """Tell a bug of ours in one line; with --debug let it through."""
    if debug:
        raise error
    print(
        f"twospeed: a fault of its own ({type(error).__name__}: {plain(str(error))}). "
        "Please report it with the output of the same command and --debug.",
        file=sys.stderr,
    )
    return 70


def silence_stdout() -> None:
    """Keep the interpreter from complaining at exit about what it could not write."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def build_parser() -> argparse.ArgumentParser:
    """The parser with every command of the room."""
    parser = argparse.ArgumentParser(
        prog="twospeed",
        description="Times prefill (the wait) and decode (the stream) of a local language\n"
        "model apart, and says which one is slow, why, and what would help.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"twospeed {__version__}")
    words = parser.add_subparsers(title="commands", metavar="COMMAND")
    for command in all_commands():
        sub = words.add_parser(
            command.name,
            help=command.summary,
            description=command.summary,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("--debug", action="store_true", help="show a traceback on our own faults")
        command.add_arguments(sub)
        sub.set_defaults(command=command)
    return parser


def with_default_command(words: list[str]) -> list[str]:
    """`twospeed` and `twospeed URL …` mean `diagnose`."""
    names = {command.name for command in all_commands()}
    if words and (words[0] in names or words[0] in {"-h", "--help", "-V", "--version"}):
        return words
    if words and not words[0].startswith("-") and not looks_like_address(words[0]):
        return words  # a misspelt command: argparse lists the real ones
    return ["diagnose", *words]


def looks_like_address(word: str) -> bool:
    """Whether a first word is meant as URL, host, host:port or port."""
    return word.isdigit() or word == "localhost" or any(mark in word for mark in "/:.")


def run_and_exit() -> None:
    """Entry point of the installed script."""
    sys.exit(main())
