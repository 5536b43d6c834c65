"""Lines of newline-delimited JSON, each with the stamp of the bytes that completed it.

Only LF ends a line: JSON text holds no raw control characters, so a CR beside it is white space,
and U+2028 is text.
"""

from __future__ import annotations

from dataclasses import dataclass

from twospeed.wire.reading import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class NdjsonLine:
    """One line that was not blank."""

    at_ns: int
    read: int
    data: str


class NdjsonDecoder:
    """Tells which lines each body segment completed."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._last: Segment | None = None

    def feed(self, segment: Segment) -> list[NdjsonLine]:
        """Lines that this segment completes, oldest first.

        Args:
            segment: the next body bytes.
        """
        if segment.data:
            self._last = segment
        first, *others = segment.data.split(b"\n")
        self._partial.append(first)
        lines: list[NdjsonLine] = []
        for piece in others:
            self._emit(segment, lines)
            self._partial = [piece]
        return lines

    def end(self) -> list[NdjsonLine]:
        """The line that the end of the body left without its line feed, if any."""
        lines: list[NdjsonLine] = []
        if self._last is not None:
            self._emit(self._last, lines)
        self._partial = []
        return lines

    def _emit(self, segment: Segment, lines: list[NdjsonLine]) -> None:
        text = b"".join(self._partial).strip()
        if text:
            data = text.decode("utf-8", "replace")
            lines.append(NdjsonLine(at_ns=segment.at_ns, read=segment.read, data=data))
