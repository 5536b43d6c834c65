"""The reading of one response, made while it arrives or after its end: the same either way.

What is common to all dialects stands here: the form of the body (SSE, lines, one JSON), broken
JSON, and whether the answer is whole. Reading never fails: what went wrong is in the reading's
`error`, beside everything that came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from twospeed.records.errors import ProtocolBroken
from twospeed.wire.collecting import Message
from twospeed.wire.content import ContentDecoder
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
ReadPlain = Callable[[StreamReading, bytes, int, int], bool]
"""Reading, JSON text of one event, its stamp, its read → whether it was entered."""


class Dialect(Protocol):
    """What a dialect module offers.

    One that has `read_plain` too (a ReadPlain) is asked there first: it enters the commonest events
    just as `read_event` would, many times faster, and declines all others.
    """

    def read_event(self, reading: StreamReading, message: Message) -> None:
        """Enter one event of a stream into the reading."""

    def read_body(self, reading: StreamReading, message: Message) -> None:
        """Enter an answer that came whole into the reading."""


class ResponseReading:
    """What one response says, as far as it has arrived.

    Args:
        dialect: how its events are read.
        reader: the response; its segments are taken from it by `advance`.
    """

    def __init__(self, dialect: Dialect, reader: ResponseReader) -> None:
        self._reader = reader
        self._reading = StreamReading()
        self._intake = _Intake(self._reading, dialect)
        self._content: ContentDecoder | None = None
        self._broken: str | None = None
        self._held: list[Segment] = []
        self._events: SseDecoder | NdjsonDecoder | None = None
        self._comes_whole = False

    def advance(self) -> None:
        """Read what has arrived and let go of its bytes, where the form of the body allows it.

        A long stream needs no memory for its bytes then. An answer that comes as one JSON, a
        refusal and a web page are left for `finish`.
        """
        reader = self._reader
        if self._comes_whole or reader.status is None or not 200 <= reader.status < 300:
            return
        self._decode(reader.taken_segments())
        if self._events is None:
            self._events = self._begun_events()
            self._comes_whole = self._events is None
        if self._events is not None:
            self._read_held(self._events)

    def finish(self) -> StreamReading:
        """The whole reading; the response is over, complete or not. To be called once."""
        reader, reading = self._reader, self._reading
        reading.first_byte_ns = reader.first_byte_ns
        reading.headers_ns = reader.headers_ns
        reading.end_ns = reader.end_ns
        self._decode(reader.segments)
        self._broken = self._broken or reader.broken
        if reader.status is None:
            kind: Literal["protocol", "stream"] = "protocol" if self._broken else "stream"
            message = self._broken or "the connection closed before an answer came"
            reading.error = StreamError(kind=kind, message=message)
        elif not 200 <= reader.status < 300:
            reading.error = refused(reader.status, reader.headers, _joined(self._held))
        else:
            self._read_rest()
            reading.error = reading.error or self._what_is_wrong()
        return reading

    def _decode(self, segments: Iterable[Segment]) -> None:
        if self._broken is not None:
            return
        try:
            if self._content is None:
                self._content = ContentDecoder(self._reader.headers)
            # Not extend(): what came before damaged bytes is kept.
            for segment in self._content.feed(segments):
                self._held.append(segment)
        except ProtocolBroken as error:
            self._broken = str(error)

    def _content_type(self) -> str:
        return self._reader.headers.get("content-type", "").lower()

    def _begun_events(self) -> SseDecoder | NdjsonDecoder | None:
        """How to read a body that is certain to be events; None when it must be seen whole."""
        start = _start(self._held)
        form = _form(self._content_type(), start)
        page = looks_like_html(start, self._content_type())
        unsure = len(start) < _START_BYTES or (form == "sse" and start.startswith(b"{"))
        return None if form == "unknown" or page or unsure else _decoder_of(form)

    def _read_held(self, events: SseDecoder | NdjsonDecoder) -> None:
        held, self._held = self._held, []
        reading, intake = self._reading, self._intake
        lone_event, read_plain = events.lone_event, intake.read_plain
        for segment in held:
            raw = lone_event(segment.data)
            # Nearly every segment of nearly every server is one plain event.
            if raw is not None and read_plain(reading, raw, segment.at_ns, segment.read):
                intake.events += 1
            else:
                for event in events.feed(segment):
                    intake.take(event)

    def _read_rest(self) -> None:
        if self._events is None:
            self._events = self._unless_whole()
        if self._events is not None:
            self._read_held(self._events)
            for event in self._events.end():
                self._intake.take(event, ended=False)

    def _unless_whole(self) -> SseDecoder | NdjsonDecoder | None:
        """How to read the held body as events; None when it was read as a whole or is none."""
        intake, start = self._intake, _start(self._held)
        if looks_like_html(start, self._content_type()):
            page = _joined(self._held)
            intake.reading.error = html_instead(page, self._reader.status or 0)
            return None
        form = _form(self._content_type(), start)
        if form != "lines" and start.startswith(b"{"):
            whole = _whole_body(self._held)
            if whole is not None:
                intake.take_body(whole)
                return None
            form = "lines" if form == "unknown" else form
        if form == "unknown" and start:
            intake.events, intake.broken, intake.first_broken = 1, 1, start_of(start)
        return None if form == "unknown" else _decoder_of(form)

    def _what_is_wrong(self) -> StreamError | None:
        intake, reader, reading = self._intake, self._reader, self._reading
        if intake.broken:
            count = f"{intake.broken} of {intake.events} events are not JSON objects"
            message = f"{count}; the first: {intake.first_broken!r}"
            return StreamError(kind="protocol", message=message)
        if reading.done:
            return None
        if self._broken is not None:
            return StreamError(kind="protocol", message=self._broken)
        if reader.complete and intake.events == 0 and not reading.keepalives:
            return StreamError(kind="stream", message="the answer is empty")
        if reader.complete and not intake.cut and reading.finish_reason is not None:
            return None
        return StreamError(kind="stream", message=_CUT)


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
        self.read_plain: ReadPlain = getattr(dialect, "read_plain", _declined)

    def take(self, event: SseEvent | NdjsonLine, *, ended: bool = True) -> None:
        """Pass one event on; `ended` is False for one that only the end of the body closed."""
        raw = event.raw
        if raw is None:
            self.reading.keepalives.append((event.at_ns, event.comment or ""))
        elif event.event is None and self.read_plain(self.reading, raw, event.at_ns, event.read):
            self.events += 1
        else:
            self._take_any(event, ended=ended)

    def _take_any(self, event: SseEvent | NdjsonLine, *, ended: bool) -> None:
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
        self.reading.whole = True
        self.dialect.read_body(self.reading, message)
        names = ", ".join(sorted(message.value))[:200] or "none"
        reading = self.reading
        if reading.text or reading.finish_reason or reading.usage:
            reading.done = True
        elif reading.error is None and not reading.done:
            what = f"the answer holds no text, no finish reason and no usage; its members: {names}"
            reading.error = StreamError(kind="protocol", message=what)


def _declined(_reading: StreamReading, _raw: bytes, _at_ns: int, _read: int) -> bool:
    return False


def _joined(segments: Iterable[Segment]) -> bytes:
    return b"".join(segment.data for segment in segments)


def _start(segments: Iterable[Segment]) -> bytes:
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


def _decoder_of(form: Literal["sse", "lines"]) -> SseDecoder | NdjsonDecoder:
    return SseDecoder() if form == "sse" else NdjsonDecoder()


def _whole_body(segments: list[Segment]) -> Message | None:
    try:
        value = decode(_joined(segments).removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace"))
    except NotJsonError:
        return None
    last = segments[-1]
    return Message(at_ns=last.at_ns, read=last.read, value=value)


def _message(text: str, event: SseEvent | NdjsonLine) -> Message | None:
    try:
        value = decode(text)
    except NotJsonError:
        return None
    if not isinstance(value, dict):
        return None
    return Message(at_ns=event.at_ns, read=event.read, name=event.event, value=value)
