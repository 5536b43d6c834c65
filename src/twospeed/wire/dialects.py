"""From a response to what it said, in any dialect of this room.

A dialect is a module with `read_event` and `read_body`; adding the file adds the dialect. What
is common to all stands here: the form of the body (SSE, lines, one JSON), broken JSON, and
whether the answer is whole. Reading never fails: what went wrong is in the reading's `error`,
beside everything that came before.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

from twospeed.records.errors import ProtocolBroken
from twospeed.wire.collecting import Message
from twospeed.wire.content import iter_decoded
from twospeed.wire.http_response import ResponseReader
from twospeed.wire.json_values import NotJsonError, decode
from twospeed.wire.ndjson import NdjsonDecoder, NdjsonLine
from twospeed.wire.reading import Segment, StreamError, StreamReading
from twospeed.wire.refusal import html_instead, looks_like_html, refused, start_of
from twospeed.wire.sse import SseDecoder, SseEvent

_END_MARK = "[DONE]"
_LINES_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl")
_SSE_STARTS = (b"data:", b"event:", b"error:", b"id:", b"retry:", b":")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_START_BYTES = 1024
_CUT = "the stream ended before it was complete"

Form = Literal["sse", "lines", "unknown"]


class Dialect(Protocol):
    """What a dialect module offers."""

    def read_event(self, reading: StreamReading, message: Message) -> None:
        """Enter one event of a stream into the reading."""

    def read_body(self, reading: StreamReading, message: Message) -> None:
        """Enter an answer that came whole into the reading."""


@cache
def dialect_names() -> tuple[str, ...]:
    """Names of all dialects, found among the modules of this room."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    others = Path(__file__).stem
    return tuple(n for n in names if n != others and hasattr(_module(n), "read_event"))


def read_response(dialect: str, reader: ResponseReader) -> StreamReading:
    """What a response said, with the arrival of every text, and what was wrong with it.

    Args:
        dialect: one of dialect_names().
        reader: the response, complete or not.

    Raises:
        KeyError: there is no such dialect; only a mistake in a runtime module causes it.
    """
    if dialect not in dialect_names():
        raise KeyError(dialect)
    reading = StreamReading(
        first_byte_ns=reader.first_byte_ns, headers_ns=reader.headers_ns, end_ns=reader.end_ns
    )
    segments, broken = _decoded(reader)
    if reader.status is None:
        kind: Literal["protocol", "stream"] = "protocol" if broken else "stream"
        message = broken or "the connection closed before an answer came"
        reading.error = StreamError(kind=kind, message=message)
    elif not 200 <= reader.status < 300:
        body = b"".join(segment.data for segment in segments)
        reading.error = refused(reader.status, reader.headers, body)
    else:
        intake = _Intake(reading, cast("Dialect", _module(dialect)))
        _read_answer(intake, reader, segments)
        reading.error = reading.error or _what_is_wrong(intake, reader, broken)
    return reading


class _Intake:
    """Decodes events and passes them to the dialect, counting those that are not JSON objects."""

    def __init__(self, reading: StreamReading, dialect: Dialect) -> None:
        self.reading = reading
        self.dialect = dialect
        self.events = 0
        self.broken = 0
        self.first_broken = ""
        self.cut = False
        """The last event has no end and is no JSON: the stream stopped inside it."""

    def take(self, event: SseEvent | NdjsonLine, *, ended: bool = True) -> None:
        """Pass one event on; `ended` is False for one that only the end of the body closed."""
        text = event.data or ""
        if text.strip() == _END_MARK:
            self.reading.done = True
            return
        self.events += 1
        message = _message(text, event)
        if message is not None:
            self.dialect.read_event(self.reading, message)
        elif not ended:
            self.cut = True
        else:
            self.first_broken = self.first_broken if self.broken else start_of(text.encode())
            self.broken += 1

    def take_body(self, message: Message) -> None:
        """Pass a whole answer on; it is complete by having been parsed."""
        self.events += 1
        self.dialect.read_body(self.reading, message)
        names = ", ".join(sorted(message.value))[:200] or "none"
        reading = self.reading
        if reading.text or reading.finish_reason or reading.usage:
            reading.done = True
        elif reading.error is None and not reading.done:
            what = f"the answer holds no text, no finish reason and no usage; its members: {names}"
            reading.error = StreamError(kind="protocol", message=what)


@cache
def _module(name: str) -> object:
    return import_module(f"{__package__}.{name}")


def _decoded(reader: ResponseReader) -> tuple[list[Segment], str | None]:
    segments: list[Segment] = []
    pieces: Iterator[Segment] = iter_decoded(reader)
    try:
        # Not list(): what came before damaged bytes is kept.
        for segment in pieces:
            segments.append(segment)  # noqa: PERF402
    except ProtocolBroken as error:
        return segments, str(error)
    return segments, reader.broken


def _read_answer(intake: _Intake, reader: ResponseReader, segments: list[Segment]) -> None:
    content_type = reader.headers.get("content-type", "").lower()
    start = _start(segments)
    if looks_like_html(start, content_type):
        body = b"".join(segment.data for segment in segments)
        intake.reading.error = html_instead(body, reader.status or 0)
        return
    form = _form(content_type, start)
    if form != "lines" and start.startswith(b"{"):
        whole = _whole_body(segments)
        if whole is not None:
            intake.take_body(whole)
            return
        form = "lines" if form == "unknown" else form
    if form == "sse":
        _read_sse(intake, segments)
    elif form == "lines":
        _read_lines(intake, segments)
    elif start:
        intake.events, intake.broken, intake.first_broken = 1, 1, start_of(start)


def _start(segments: list[Segment]) -> bytes:
    start = b""
    for segment in segments:
        # Servers may pad a slow JSON answer with white space at its front.
        start = (start + segment.data).removeprefix(_BYTE_ORDER_MARK).lstrip()
        if len(start) >= _START_BYTES:
            break
    return start[:_START_BYTES]


def _form(content_type: str, start: bytes) -> Form:
    if content_type.startswith("text/event-stream"):
        return "sse"
    if content_type.startswith(_LINES_TYPES):
        return "lines"
    return "sse" if start.startswith(_SSE_STARTS) else "unknown"


def _whole_body(segments: list[Segment]) -> Message | None:
    body = b"".join(segment.data for segment in segments).removeprefix(_BYTE_ORDER_MARK)
    try:
        value = decode(body.decode("utf-8", "replace"))
    except NotJsonError:
        return None
    last = segments[-1]
    return Message(at_ns=last.at_ns, read=last.read, value=value)


def _read_sse(intake: _Intake, segments: list[Segment]) -> None:
    decoder = SseDecoder()
    for segment in segments:
        for event in decoder.feed(segment):
            if event.comment is not None:
                intake.reading.keepalives.append((event.at_ns, event.comment))
            else:
                intake.take(event)
    for event in decoder.end():
        if event.comment is not None:
            intake.reading.keepalives.append((event.at_ns, event.comment))
        else:
            intake.take(event, ended=False)


def _read_lines(intake: _Intake, segments: list[Segment]) -> None:
    decoder = NdjsonDecoder()
    for segment in segments:
        for line in decoder.feed(segment):
            intake.take(line)
    for line in decoder.end():
        intake.take(line, ended=False)


def _message(text: str, event: SseEvent | NdjsonLine) -> Message | None:
    try:
        value = decode(text)
    except NotJsonError:
        return None
    if not isinstance(value, dict):
        return None
    name = event.event if isinstance(event, SseEvent) else None
    return Message(at_ns=event.at_ns, read=event.read, name=name, value=value)


def _what_is_wrong(
    intake: _Intake, reader: ResponseReader, broken: str | None
) -> StreamError | None:
    reading = intake.reading
    if intake.broken:
        count = f"{intake.broken} of {intake.events} events are not JSON objects"
        return StreamError(kind="protocol", message=f"{count}; the first: {intake.first_broken!r}")
    if reading.done:
        return None
    if broken is not None:
        return StreamError(kind="protocol", message=broken)
    if reader.complete and intake.events == 0 and not reading.keepalives:
        return StreamError(kind="stream", message="the answer is empty")
    if reader.complete and not intake.cut and reading.finish_reason is not None:
        return None
    return StreamError(kind="stream", message=_CUT)
