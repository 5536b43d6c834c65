"""Where the readers of lines put what they found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from twospeed.records.request_record import RequestRecord
from twospeed.records.run import LoadSummary
from twospeed.sources.logs.company import Span, beside
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.draft import Draft

MOST_RECORDS = 20_000
"""Of a longer log the newest are kept."""
MOST_WINDOWS = 400_000
"""Speeds within answers, of all requests that are kept together."""


class Line(NamedTuple):
    """One line, free of whatever copying and logging put around it."""

    text: str
    number: int
    clock: str | None = None
    """The time that llama-server prints before it: minutes.seconds.milliseconds.microseconds."""

    @property
    def at_s(self) -> float | None:
        """Seconds of its clock; only differences mean something."""
        if self.clock is None:
            return None
        minutes, seconds, milliseconds, microseconds = map(int, self.clock.split("."))
        return minutes * 60 + seconds + milliseconds / 1e3 + microseconds / 1e6


class Reader(Protocol):
    """Takes the lines of one format."""

    def take(self, line: Line) -> bool:
        """Read a line; False when it is not of this format."""
        ...

    def close(self) -> None:
        """Hand over what is not finished: the text is over."""
        ...


@dataclass(slots=True)
class Collector:
    """What all readers of one text found, in the order of the text."""

    content: Content = field(default_factory=Content)
    summary: dict[str, float | int] = field(default_factory=dict)
    dropped: int = 0
    """Requests of a very long log that were counted and not kept."""
    on_request: Callable[[RequestRecord], None] | None = None
    last: Draft | None = None
    """The newest request, for a second program that tells of the same one."""
    spans: list[Span | None] = field(default_factory=list)
    """Of each record: when it was in its slot."""
    _number: int = 0
    _windows: int = 0

    def add(self, draft: Draft) -> None:
        """Take up a request; one that tells no time is none."""
        if not draft.tells_something:
            return
        self._number += 1
        record = draft.record(self._number)
        records = self.content.records
        records.append(record)
        self.spans.append(draft.span)
        self.last = draft
        self.content.end_to_end += draft.end_to_end
        if self.on_request is not None:
            self.on_request(record)
        self._windows += len(draft.windows)
        if len(records) > 2 * MOST_RECORDS or self._windows > MOST_WINDOWS:
            self._keep(min(len(records) // 2, MOST_RECORDS))

    def again(self, draft: Draft) -> None:
        """Replace the newest request: another line told more of it."""
        if self.content.records and self.last is draft:
            self.content.records[-1] = draft.record(self.content.records[-1].number)

    def most(self, **values: float | None) -> None:
        """Keep the largest value seen of each sum over many requests."""
        for name, value in values.items():
            if value is not None:
                self.summary[name] = max(value, self.summary.get(name, value))

    def finish(self) -> Content:
        """Everything found."""
        if self.summary:
            self.content.summary = replace(LoadSummary(), **self.summary)
        self._keep(MOST_RECORDS)
        self.content.records = beside(self.content.records, self.spans)
        return self.content

    def _keep(self, newest: int) -> None:
        """Let go of all requests but the newest."""
        surplus = max(len(self.content.records) - newest, 0)
        del self.content.records[:surplus], self.spans[:surplus]
        self.dropped += surplus
        self._windows = sum(
            len(one.signs.decode_windows) for one in self.content.records if one.signs
        )
