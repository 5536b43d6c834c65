"""Texts in, one run out: what a log or a benchmark file tells, ready for the same findings.

A text of up to 16 MiB is looked at as a whole (documents, order, wrapped lines); a longer one
streams past, and only lines with a mark of some format are looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from twospeed.records.request_record import RequestRecord
from twospeed.sources.logs.arrangement import arranged
from twospeed.sources.logs.cleaning import cleaned
from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.registry import read_document
from twospeed.sources.logs.registry import makers, marks
from twospeed.sources.logs.text_input import blocks, opened

MOST_WHOLE_BYTES = 16 << 20
_LOOKS_TIMED = re.compile(
    r"\d\s*(?:tok(?:en)?s?/s(?:ec)?|t/s|tokens per sec|ms per token|ms/tok)"
    r"|(?:prefill|decode|prompt eval|ttft|first token)\D{0,30}\d[\d.,]*\s*(?:ms|s)\b",
    re.IGNORECASE,
)

OnRequest = Callable[[RequestRecord], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which lines are read."""

    grep: re.Pattern[str] | None = None
    since: str | None = None
    """ISO time; lines before it are passed over, as far as lines carry a time."""


class LineReaders:
    """All readers of lines over one text, the one that was right last asked first."""

    def __init__(self, on_request: OnRequest | None = None) -> None:
        self.log = Collector(on_request=on_request)
        self._readers = [make(self.log) for make in makers()]
        self.recognised = 0

    def take(self, line: Line) -> None:
        """Give one line to the reader that knows it."""
        for at, reader in enumerate(self._readers):
            if reader.take(line):
                self.recognised += 1
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


def read_text(text: str, wanted: Wanted | None = None) -> Content:
    """What a whole text tells, by lines and as a document."""
    readers = LineReaders()
    for line in _wanted(arranged(text), wanted):
        readers.take(line)
    content = readers.finish()
    document = read_document(text)
    if document is not None:
        content.unread = 0
        content.join(_without(document, content.records))
    return content


def read_file(where: str, wanted: Wanted | None = None) -> tuple[Content, int]:
    """What a file or stdin tells, and how many requests of it were not kept.

    Args:
        where: path, or "-".
        wanted: which lines are read.

    Raises:
        InputError: it cannot be read.
    """
    with opened(where) as file:
        head: list[bytes] = []
        size = 0
        pieces = blocks(file, where)
        for piece in pieces:
            head.append(piece)
            size += len(piece)
            if size > MOST_WHOLE_BYTES:
                break
        else:
            text = b"".join(head).decode("utf-8", "replace").removeprefix("\ufeff")
            return read_text(text, wanted), 0
        return _streamed([*head], pieces, wanted)


def _streamed(
    head: list[bytes], rest: Iterable[bytes], wanted: Wanted | None
) -> tuple[Content, int]:
    readers = LineReaders()
    number = 1
    while head:
        number = _take_block(readers, head.pop(0), number, wanted)
    for block in rest:
        number = _take_block(readers, block, number, wanted)
    content = readers.finish()
    return content, readers.log.dropped


def _take_block(readers: LineReaders, block: bytes, number: int, wanted: Wanted | None) -> int:
    """Read the lines of a block that carry a mark; the number of the line after it."""
    at = 0
    lines: list[Line] = []
    for start in line_starts(block):
        number += block.count(b"\n", at, start)
        at = start
        end = block.find(b"\n", start)
        raw = block[start : end if end >= 0 else None].decode("utf-8", "replace")
        text, at_s = cleaned(raw)
        lines.append(Line(text, number, at_s))
    for line in _wanted(lines, wanted):
        readers.take(line)
    return number + block.count(b"\n", at)


def line_starts(block: bytes) -> list[int]:
    """Where the lines begin that carry a mark, ascending."""
    starts: set[int] = set()
    for mark in marks():
        at = block.find(mark)
        while at >= 0:
            starts.add(block.rfind(b"\n", 0, at) + 1)
            end = block.find(b"\n", at)
            if end < 0:
                break
            at = block.find(mark, end)
    return sorted(starts)


_STAMP = re.compile(r"\d{4}[-/]\d\d[-/]\d\d(?: - |[T ])\d\d:\d\d:\d\d")


def _wanted(lines: Iterable[Line], wanted: Wanted | None) -> Iterable[Line]:
    if wanted is None:
        return lines
    return _filtered(lines, wanted)


def _filtered(lines: Iterable[Line], wanted: Wanted) -> Iterable[Line]:
    late_enough = wanted.since is None
    for line in lines:
        stamp = _STAMP.search(line.text) if wanted.since is not None else None
        if stamp is not None and wanted.since is not None:
            told = stamp[0].replace("/", "-").replace(" - ", "T").replace(" ", "T")
            late_enough = told >= wanted.since
        if late_enough and (wanted.grep is None or wanted.grep.search(line.text)):
            yield line


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
