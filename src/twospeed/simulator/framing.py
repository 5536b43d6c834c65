"""The bytes of a response on the wire: head, chunks or plain body, compression, line ends."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from http import HTTPStatus

from twospeed.simulator.exchange import Reply, Write

GZIP = 16 + zlib.MAX_WBITS


def head_bytes(version: str, status: int, lines: Sequence[str]) -> bytes:
    """Status line and header lines, with the empty line that ends them."""
    reason = HTTPStatus(status).phrase
    return "\r\n".join([f"HTTP/{version} {status} {reason}", *lines, "", ""]).encode("latin-1")


Head = Callable[[int | None], bytes]
"""The head of a response, given the length of its body (None where that is not known)."""


class Framer:
    """Turns the writes of one response into bytes.

    Args:
        head: makes the head.
        chunked: frame the body in HTTP chunks; otherwise its end is the end of the connection.
        gzip: compress the body.
        crlf: end the lines of the body with CR LF.
    """

    def __init__(
        self, head: Head, *, chunked: bool, gzip: bool = False, crlf: bool = False
    ) -> None:
        self._head: Head | None = head
        self._chunked = chunked
        self._packer = zlib.compressobj(6, zlib.DEFLATED, GZIP) if gzip else None
        self._crlf = crlf

    def frame(self, write: Write) -> bytes:
        """The bytes of a write; the first one brings the head along."""
        if write.kind == "whole":
            return self._framed_whole(b"".join(write.chunks))
        parts = [self._framed(chunk) for chunk in write.chunks if chunk]
        if write.end:
            if self._packer is not None:
                parts.append(_chunk(self._packer.flush(), chunked=self._chunked))
            if self._chunked:
                parts.append(b"0\r\n\r\n")
        if self._head is not None:
            parts.insert(0, self._head(None))
            self._head = None
        return b"".join(parts)

    def _framed(self, data: bytes) -> bytes:
        if self._crlf:
            data = data.replace(b"\n", b"\r\n")
        if self._packer is not None:
            data = self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        return _chunk(data, chunked=self._chunked)

    def _framed_whole(self, body: bytes) -> bytes:
        if self._packer is not None:
            body = self._packer.compress(body) + self._packer.flush()
        head, self._head = self._head, None
        return body if head is None else head(len(body)) + body


def reply_bytes(head: Head, reply: Reply) -> bytes:
    """A whole reply."""
    return head(len(reply.body) if reply.sized else None) + reply.body


def _chunk(data: bytes, *, chunked: bool) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if chunked else data
