"""Reads on in a log that is still being written: a line for each request, a verdict at the end."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from twospeed.cli.reading.listing import HEADING, render_request
from twospeed.records.errors import InputError, UsageError
from twospeed.records.request_record import RequestRecord
from twospeed.sources.logs.cleaning import cleaned
from twospeed.sources.logs.collector import Line
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.reading import LineReaders
from twospeed.sources.logs.text_input import STDIN, opened
from twospeed.sources.logs.wanted import Choice, Wanted

LOOK_S = 0.3

Finish = Callable[[Content], int]


def follow(args: Namespace, wanted: Wanted | None, finish: Finish) -> int:
    """Read one text until Ctrl-C or, for stdin, its end.

    Args:
        args: of the command line.
        wanted: which lines are read.
        finish: prints the verdict on what was read.

    Raises:
        UsageError: not one text.
        InputError: it cannot be read.
    """
    if len(args.files) != 1:
        raise UsageError("--follow takes one file.")
    quiet = args.json or args.markdown or args.out is not None
    choice = Choice(wanted)
    readers = LineReaders(on_request=None if quiet else _show)
    try:
        with _opened(args.files[0]) as file:
            if not quiet:
                print(HEADING, flush=True)
            for number, raw in enumerate(_lines(file, endless=args.files[0] != STDIN), start=1):
                said = raw.decode("utf-8", "replace")
                if choice.takes(said):
                    text, clock = cleaned(said)
                    readers.take(Line(text, number, clock))
    except KeyboardInterrupt:
        if not quiet:
            print(flush=True)
    return finish(readers.finish())


def _show(record: RequestRecord) -> None:
    print(render_request(record), flush=True)


def _opened(where: str) -> BinaryIO:
    if where == STDIN:
        return opened(where)
    try:
        return Path(where).open("rb")
    except OSError as error:
        raise InputError(f"Cannot read {where}: {error.strerror or error}.") from error


def _lines(file: BinaryIO, *, endless: bool) -> Iterator[bytes]:
    """Whole lines as they come; a half one waits for its rest, a shortened file is begun again."""
    rest = b""
    while True:
        data = file.readline()
        if data.endswith(b"\n"):
            yield rest + data
            rest = b""
        elif data:
            rest += data
        elif not endless:
            if rest:
                yield rest
            return
        else:
            _wait(file)


def _wait(file: BinaryIO) -> None:
    """Wait a moment; go back to the start when the file was emptied (log rotation)."""
    time.sleep(LOOK_S)
    here = file.tell()
    if file.seek(0, 2) >= here:
        file.seek(here)
    else:
        file.seek(0)
