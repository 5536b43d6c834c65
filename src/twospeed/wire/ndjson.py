"""Lines of newline-delimited JSON, each with the stamp of the bytes that completed it.

Only LF ends a line: JSON text holds no raw control characters, so a CR beside it is white space,
and U+2028 is text.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from twospeed.wire.reading import Segment


class NdjsonLine(Struct, frozen=True, kw_only=True, gc=False):
    """One line that was not blank."""

    at_ns: int
    read: int
    raw: bytes
    event: ClassVar[None] = None
    comment: ClassVar[None] = None

    @property
    def data(self) -> str:
        """The line as text."""
        return self.raw.decode("utf-8", "replace")


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

    def lone_event(self, data: bytes) -> bytes | None:
        """The line that a segment consists of; such a segment need not be fed.

        Args:
            data: the next body bytes.

        Returns:
            None for everything else, which must be fed.
        """
        if self._partial in ([], [b""]) and data.find(b"\n") == len(data) - 1 > 0:
            return data[:-1]
        return None

    def end(self) -> list[NdjsonLine]:
        """The line that the end of the body left without its line feed, if any."""
        lines: list[NdjsonLine] = []
        if self._last is not None:
            self._emit(self._last, lines)
        self._partial = []
        return lines

    def _emit(self, segment: Segment, lines: list[NdjsonLine]) -> None:
        raw = b"".join(self._partial).strip()
        if raw:
            lines.append(NdjsonLine(at_ns=segment.at_ns, read=segment.read, raw=raw))
