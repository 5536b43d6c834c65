"""What the server's own log adds to a live run: how it loaded its model."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import asdict, replace

from twospeed.cli.measuring.book import Book
from twospeed.records.run import Blind, RuntimeFacts
from twospeed.sources.logs.reading import read_file


def learn_from_log(path: Path, book: Book) -> None:
    """Fill in facts that the endpoint did not tell; what it told stays.

    Raises:
        InputError: the log cannot be read.
    """
    content, _ = read_file(str(path))
    told = content.facts
    if told == RuntimeFacts():
        blind = Blind(
            what="how the model was loaded: the log tells nothing of it",
            needs="the log from the start of the server on",
        )
        book.add(blind)
        return
    known = {name: value for name, value in asdict(book.run.facts).items() if value is not None}
    book.add(replace(told, **known))
