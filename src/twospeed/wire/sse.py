"""Server-sent events from body bytes, each with the stamp of the bytes that completed it.

Contract: lines end with CR LF, LF or CR, in any mixture and cut anywhere; nothing else ends a line
(U+2028 and U+0085 are text). Bytes become text per event, never per segment, so a cut inside a
character does no harm.

Source: WHATWG HTML, section 9.2.6 "Interpreting an event stream".
"""

from __future__ import annotations

import re

from msgspec import Struct

from twospeed.wire.reading import Segment

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class SseEvent(Struct, frozen=True, kw_only=True, gc=False):
    """One event, or one comment (keep-alive ping), as it became complete."""

    at_ns: int
    read: int
    event: str | None = None
    """Name of the event, None when it has none."""
    raw: bytes | None = None
    """Data lines joined by line feeds; None for a comment."""
    comment: str | None = None
    """Text after the colon; None for an event."""

    @property
    def data(self) -> str | None:
        """The data as text; None for a comment."""
        return None if self.raw is None else _text(self.raw)


class SseDecoder:
    """Tells which events each body segment completed."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._skip_line_feed = False
        self._at_start = True
        self._name: str | None = None
        self._data: list[bytes] = []
        self._last: Segment | None = None
        self._between_events = False

    def feed(self, segment: Segment) -> list[SseEvent]:
        """Events that this segment completes, oldest first.

        Args:
            segment: the next body bytes.
        """
        data = segment.data
        if not data:
            return []
        self._last = segment
        if self._skip_line_feed and data.startswith(b"\n"):
            data = data[1:]
        self._skip_line_feed = data.endswith(b"\r")
        first, *others = _LINE_END.split(data)
        self._partial.append(first)
        events: list[SseEvent] = []
        for piece in others:
            self._take_line(b"".join(self._partial), segment, events)
            self._partial = [piece]
        self._between_events = self._is_between_events()
        return events

    def lone_event(self, data: bytes) -> bytes | None:
        """Data of the event that a segment consists of, when one LF-ended data line is all.

        Such a segment leaves the decoder as it is, and need not be fed.

        Args:
            data: the next body bytes.

        Returns:
            None for everything else, which must be fed.
        """
        if (
            self._between_events
            and data.startswith(b"data: ")
            and data.find(b"\n") == len(data) - 2 > 6  # an empty event is none
            and data.endswith(b"\n")
            and b"\r" not in data
        ):
            return data[6:-2]
        return None

    def end(self) -> list[SseEvent]:
        """The event that the end of the body left without its blank line, if any."""
        events: list[SseEvent] = []
        if self._last is None:
            return events
        line = b"".join(self._partial)
        self._partial = []
        if line:
            self._take_line(line, self._last, events)
        self._dispatch(self._last, events)
        return events

    def _is_between_events(self) -> bool:
        """Whether nothing of what came so far belongs to what comes next."""
        begun = self._partial != [b""] or self._name is not None or bool(self._data)
        return not (begun or self._skip_line_feed or self._at_start)

    def _take_line(self, line: bytes, segment: Segment, events: list[SseEvent]) -> None:
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not line:
            self._dispatch(segment, events)
        elif line.startswith(b":"):
            comment = _text(line[1:]).strip()
            events.append(SseEvent(at_ns=segment.at_ns, read=segment.read, comment=comment))
        elif line.startswith(b"{"):
            # Not in the standard: servers that fail mid-stream write a bare JSON line.
            events.append(SseEvent(at_ns=segment.at_ns, read=segment.read, raw=line))
        else:
            self._take_field(line)

    def _take_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = _text(value)
        elif field == b"error":
            # Not in the standard: llama-server before 2025 wrote its errors this way.
            self._name = "error"
            self._data.append(value)

    def _dispatch(self, segment: Segment, events: list[SseEvent]) -> None:
        name, lines = self._name, self._data
        self._name, self._data = None, []
        if any(lines):
            raw = lines[0] if len(lines) == 1 else b"\n".join(lines)
            events.append(
                SseEvent(at_ns=segment.at_ns, read=segment.read, event=name or None, raw=raw)
            )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
