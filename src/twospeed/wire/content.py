"""Body bytes as the server meant them: content codings undone, arrival stamps kept.

Compressed bytes yield text as soon as they suffice for it, so the stamp of each decoded piece is
the stamp of the read that completed it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping

from twospeed.records.errors import ProtocolBroken
from twospeed.wire.http_response import ResponseReader
from twospeed.wire.reading import Segment

MAX_DECODED_BYTES = 16 * 1024 * 1024
"""Compression is never asked for, and a few hundred bytes of it can hold any number of lines."""
_GZIP_WINDOW = 31
_ZLIB_WINDOW = 15
_RAW_WINDOW = -15
_GZIP_MAGIC = 0x1F


def decoded_segments(
    reader: ResponseReader, *, max_bytes: int = MAX_DECODED_BYTES
) -> list[Segment]:
    """Body of a response with gzip or deflate undone.

    Args:
        reader: a response, complete or not.
        max_bytes: from where on a decoded body is refused.

    Raises:
        ProtocolBroken: the body is not what its content-encoding says, decodes to more than
            max_bytes, or is coded in a way that is not understood.

    Source: RFC 9110 section 8.4.1.
    """
    return list(ContentDecoder(reader.headers, max_bytes=max_bytes).feed(reader.segments))


class ContentDecoder:
    """Undoes the content codings of one response, piece by piece as the body arrives.

    Args:
        headers: of the response, by lower-case name.
        max_bytes: from where on a decoded body is refused.

    Raises:
        ProtocolBroken: the body is coded in a way that is not understood.
    """

    def __init__(self, headers: Mapping[str, str], *, max_bytes: int = MAX_DECODED_BYTES) -> None:
        names = headers.get("content-encoding", "").lower().split(",")
        self._inflaters = [
            _Inflater(name, max_bytes)
            for name in reversed([name.strip() for name in names])
            if name not in ("", "identity")
        ]

    def feed(self, segments: Iterable[Segment]) -> Iterable[Segment]:
        """What the next segments of the body decode to; what came before damage is yielded.

        Args:
            segments: body bytes as they came.

        Raises:
            ProtocolBroken: see decoded_segments.
        """
        for inflater in self._inflaters:
            segments = _inflated(segments, inflater)
        return segments


def _inflated(segments: Iterable[Segment], inflater: _Inflater) -> Iterator[Segment]:
    for segment in segments:
        data = inflater.feed(segment.data)
        if data:
            yield Segment(at_ns=segment.at_ns, data=data, read=segment.read)


class _Inflater:
    """Undoes one coding incrementally, within a bound against decompression bombs."""

    def __init__(self, name: str, max_bytes: int) -> None:
        if name not in ("gzip", "x-gzip", "deflate"):
            raise ProtocolBroken(
                f"The body is coded as {name[:40]!r}, which twospeed cannot undo.",
                hint="Switch compression off in the server or the proxy before it.",
            )
        self._name = name
        self._max_bytes = max_bytes
        self._stream: zlib._Decompress | None = None
        self._decoded_bytes = 0
        self._members = 0

    def feed(self, data: bytes) -> bytes:
        pieces = []
        while data and (self._stream is not None or self._starts_member(data[0])):
            self._stream = self._stream or zlib.decompressobj(self._window(data[0]))
            pieces.append(self._decompress(self._stream, data))
            data = b""
            if self._stream.eof:
                data, self._stream = self._stream.unused_data, None
                self._members += 1
        return b"".join(pieces)

    def _starts_member(self, first: int) -> bool:
        # gzip files may be concatenated; anything else after the end is padding.
        return self._members == 0 or (self._name != "deflate" and first == _GZIP_MAGIC)

    def _window(self, first: int) -> int:
        if self._name != "deflate":
            return _GZIP_WINDOW
        # "deflate" should be a zlib stream (low nibble 8), but raw deflate is sent under that name.
        return _ZLIB_WINDOW if first & 0x0F == zlib.DEFLATED else _RAW_WINDOW

    def _decompress(self, stream: zlib._Decompress, data: bytes) -> bytes:
        room = self._max_bytes - self._decoded_bytes + 1
        try:
            text = stream.decompress(data, room)
        except zlib.error as error:
            raise ProtocolBroken(
                f"The body claims to be {self._name} and is not: {error}."
            ) from error
        self._decoded_bytes += len(text)
        if self._decoded_bytes > self._max_bytes:
            limit_mib = self._max_bytes / 1024**2
            raise ProtocolBroken(f"The {self._name} body decodes to more than {limit_mib:g} MiB.")
        return text
