"""Reads on in a log that is still being written: a line for each request, a verdict at the end."""

from __future__ import annotations

import contextlib
import os
import sys
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
        file = _opened(args.files[0])
        if not quiet:
            print(HEADING, flush=True)
        lines = _lines(file) if args.files[0] == STDIN else lines_for_ever(file, args.files[0])
        for number, raw in enumerate(lines, start=1):
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


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines until the end."""
    with file:
        yield from file


def lines_for_ever(file: BinaryIO, where: str, *, look_s: float = LOOK_S) -> Iterator[bytes]:
    """Whole lines as they come; a half one waits for its rest.

    A file that was emptied is begun again; one that another took the place of (log rotation) is
    read to its end, then the new one.
    """
    rest = b""
    try:
        while True:
            data = file.readline()
            if data.endswith(b"\n"):
                yield rest + data
                rest = b""
            elif data:
                rest += data
            else:
                time.sleep(look_s)
                fresh = _successor(file, where)
                if fresh is not None:
                    if rest:
                        yield rest
                    file.close()
                    rest, file = b"", fresh
                elif os.fstat(file.fileno()).st_size < file.tell():
                    rest = b""
                    file.seek(0)
    finally:
        file.close()


def _successor(file: BinaryIO, where: str) -> BinaryIO | None:
    """The file that now has the name; None while that is still this one, or none at all."""
    with contextlib.suppress(OSError, InputError):
        here, named = os.fstat(file.fileno()), Path(where).stat()
        another = (here.st_dev, here.st_ino) != (named.st_dev, named.st_ino)
        if another and file.tell() >= here.st_size:
            fresh = _opened(where)
            print(f"twospeed: {where} was made anew: reading on there.", file=sys.stderr)
            return fresh
    return None
