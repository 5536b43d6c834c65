"""Texts in, one run out: what a log or a benchmark file tells, ready for the same findings.

A text of up to 8 MiB is looked at as a whole (documents, order, wrapped lines); a longer one
streams past, and only lines with a mark of some format are looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from twospeed.records.request_record import RequestRecord
from twospeed.sources.logs.arrangement import arranged
from twospeed.sources.logs.cleaning import cleaned
from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.registry import read_document
from twospeed.sources.logs.registry import makers
from twospeed.sources.logs.sieve import marked_lines
from twospeed.sources.logs.text_input import blocks, opened
from twospeed.sources.logs.wanted import Choice, Wanted

MOST_WHOLE_BYTES = 8 << 20
_LOOKS_TIMED = re.compile(
    r"\d\s*(?:tok(?:en)?s?/s(?:ec)?|t/s|tokens per sec|ms per token|ms/tok)"
    r"|(?:prefill|decode|prompt eval|ttft|first token)\D{0,30}\d[\d.,]*\s*(?:ms|s)\b",
    re.IGNORECASE,
)

OnRequest = Callable[[RequestRecord], None]


class LineReaders:
    """All readers of lines over one text, the one that was right last asked first."""

    def __init__(self, on_request: OnRequest | None = None) -> None:
        self.log = Collector(on_request=on_request)
        self._readers = [make(self.log) for make in makers()]

    def take(self, line: Line) -> None:
        """Give one line to the reader that knows it."""
        for at, reader in enumerate(self._readers):
            if reader.take(line):
                if at:
                    self._readers.insert(0, self._readers.pop(at))
                return
        if _LOOKS_TIMED.search(line.text):
            self.log.content.unread += 1

    def finish(self) -> Content:
        """Everything that was found."""
        for reader in self._readers:
            reader.close()
        return self.log.finish()


def read_text(text: str) -> Content:
    """What a whole text tells, by lines and as a document."""
    return _read_whole(text)[0]


def _read_whole(text: str) -> tuple[Content, int]:
    readers = LineReaders()
    for line in arranged(text):
        readers.take(line)
    content = readers.finish()
    document = read_document(text)
    if document is not None:
        content.unread = 0
        content.join(_without(document, content.records))
    return content, readers.log.dropped


def read_file(
    where: str, wanted: Wanted | None = None, most_whole_bytes: int = MOST_WHOLE_BYTES
) -> tuple[Content, int]:
    """What a file or stdin tells, and how many requests of it were not kept.

    Args:
        where: path, or "-".
        wanted: which lines are read; None for all.
        most_whole_bytes: a longer text streams past.

    Raises:
        InputError: it cannot be read.
        UsageError: a time is asked for, and no line carries one.
    """
    choice = Choice(wanted)
    with opened(where) as file:
        head: list[bytes] = []
        size = 0
        pieces = blocks(file, where)
        for piece in pieces:
            head.append(piece)
            size += len(piece)
            if size > most_whole_bytes:
                begins = head[0].lstrip()[:1]
                read = _streamed(_drained(head, pieces), choice)
                told = read[0].records or read[0].points
                read[0].too_large = begins in (b"{", b"[") and not told
                break
        else:
            text = b"".join(head).decode("utf-8", "replace").removeprefix("\ufeff")
            read = _read_whole(choice.part_of(text))
    choice.check(where)
    return read


def _drained(head: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    """All blocks, each let go once it was handed out."""
    while head:
        yield head.pop(0)
    yield from rest


def _streamed(pieces: Iterable[bytes], choice: Choice) -> tuple[Content, int]:
    readers = LineReaders()
    if not choice.everything:
        pieces = (choice.part_of(one.decode("utf-8", "replace")).encode() for one in pieces)
    for number, raw in marked_lines(pieces):
        text, clock = cleaned(raw.decode("utf-8", "replace"))
        readers.take(Line(text, number, clock))
    content = readers.finish()
    return content, readers.log.dropped


def _without(document: Content, known: Sequence[RequestRecord]) -> Content:
    """The document without requests that lines of the same text told of already."""
    times = sorted(one.server.prefill_s for one in known if one.server and one.server.prefill_s)

    def is_known(record: RequestRecord) -> bool:
        prefill_s = record.server.prefill_s if record.server else None
        if prefill_s is None:
            return False
        at = bisect_right(times, prefill_s * 1.0005)
        return at > 0 and times[at - 1] >= prefill_s * 0.9995

    document.records = [record for record in document.records if not is_known(record)]
    return document
