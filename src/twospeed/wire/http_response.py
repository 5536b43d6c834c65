"""One HTTP response, parsed as its bytes arrive.

Contract: every socket read is fed once, with its stamp. Body bytes come out de-chunked and still
carry the stamp of their read. The end is found by parsing, never by a suffix: the three bytes
"0 CR LF" inside a header or an event are no last chunk. Nothing here opens a socket, reads a clock
or looks into the body.
"""

from __future__ import annotations

from typing import NoReturn

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from twospeed.records.errors import ProtocolBroken
from twospeed.wire.reading import Segment

MAX_HEADER_BYTES = 256 * 1024
MAX_BODY_BYTES = 256 * 1024 * 1024
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")


class ResponseReader:
    """Tells when one response began, what its body was, and when and how it ended.

    Interim (1xx) answers are passed over. A body may be chunked, counted, absent (204, 304) or
    ended by closing the connection (HTTP/1.0 servers such as mlx_lm.server).

    Attributes:
        status: status code, None before the headers are complete.
        headers: values by lower-case name; repeated ones joined by a comma. Trailers are left out.
        http_version: "1.0" or "1.1", empty before the headers are complete.
        keep_alive: the connection may carry another request.
        first_byte_ns: stamp of the read with the first byte of this response.
        headers_ns: stamp of the read that completed the headers.
        end_ns: stamp of the read with the last byte, or of the end of input.
        complete: the whole response was seen.
        premature: the input ended before the response did.
        broken: why the bytes are not HTTP; None while they are.
        segments: body bytes with their stamps, as far as nobody has taken them.
        bytes_seen: all bytes fed, headers and framing included.

    Args:
        max_body_bytes: from where on a body is refused.

    Source: RFC 9112 sections 6.3 (body length) and 7.1 (chunks); RFC 9110 section 15.2 (1xx).
    """

    __slots__ = (
        "__weakref__",
        "_at_ns",
        "_body_bytes",
        "_ended_by_close",
        "_head_bytes",
        "_header_bytes",
        "_max_body_bytes",
        "_parser",
        "_reads",
        "broken",
        "bytes_seen",
        "complete",
        "end_ns",
        "first_byte_ns",
        "headers",
        "headers_ns",
        "http_version",
        "keep_alive",
        "premature",
        "segments",
        "status",
    )

    def __init__(self, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.http_version = ""
        self.keep_alive = False
        self.first_byte_ns: int | None = None
        self.headers_ns: int | None = None
        self.end_ns: int | None = None
        self.complete = False
        self.premature = False
        self.broken: str | None = None
        self.segments: list[Segment] = []
        self.bytes_seen = 0
        self._max_body_bytes = max_body_bytes
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._at_ns = 0
        self._reads = 0
        self._ended_by_close = False
        self._head_bytes = 0
        self._header_bytes = 0
        self._body_bytes = 0

    def feed(self, data: bytes, at_ns: int) -> None:
        """Take the bytes of one socket read; bytes after the end of the response are tolerated.

        Args:
            data: what the read returned.
            at_ns: its stamp in nanoseconds of a monotonic clock.

        Raises:
            ProtocolBroken: these bytes are not HTTP, or exceed the bounds on headers and body.
                Everything parsed before stays readable.
        """
        parser = self._parser
        if parser is None or self.headers_ns is None or not data:
            self._feed_head(data, at_ns)
            return
        size = len(data)
        self.bytes_seen += size
        self._at_ns = at_ns
        try:
            parser.feed_data(data)
        except (HttpParserUpgrade, HttpParserError) as error:
            self._note_damage(error)
        self._reads += 1
        # Framing and trailers count too: they come from the same untrusted source.
        self._body_bytes += size
        if self._body_bytes > self._max_body_bytes or self._header_bytes > MAX_HEADER_BYTES:
            self._fail_bounds()
        if self.complete:
            self._parser = None

    def _feed_head(self, data: bytes, at_ns: int) -> None:
        """Take a read before which the headers were not complete, or the response was over."""
        if not data or self.premature:
            return
        if self.broken is not None:
            raise ProtocolBroken(self.broken, http_status=self.status)
        first = self.bytes_seen == 0
        self.bytes_seen += len(data)
        if self._parser is None:
            # Bytes that nobody asked for: what follows on this connection cannot be trusted.
            self.keep_alive = False
            return
        self._at_ns = at_ns
        if self.first_byte_ns is None:
            self.first_byte_ns = at_ns
        if first:
            self._check_start(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserUpgrade, HttpParserError) as error:
            self._note_damage(error)
        self._reads += 1
        if self.headers_ns is None:
            self._head_bytes += len(data)
        if self._head_bytes > MAX_HEADER_BYTES or self._header_bytes > MAX_HEADER_BYTES:
            self._fail_bounds()
        if self.complete:
            self._parser = None  # it holds on to this reader: without the cycle, both go at once

    def taken_segments(self) -> list[Segment]:
        """Body bytes since the last call; they are the caller's now and gone from here."""
        taken, self.segments = self.segments, []
        return taken

    def end_of_input(self, at_ns: int) -> None:
        """Take the end of the connection: it completes a close-delimited body, or cuts another.

        Args:
            at_ns: its stamp in nanoseconds of the same clock.
        """
        if self.complete or self.premature or self.broken is not None:
            return
        self.keep_alive = False
        self._parser = None
        self.end_ns = at_ns
        if self.headers_ns is not None and self._ended_by_close:
            self.complete = True
        else:
            self.premature = True

    def _check_start(self, data: bytes) -> None:
        head = data.lstrip(b"\r\n")
        if head.startswith(_TLS_RECORDS):
            self._fail("The server speaks TLS, not plain HTTP.", hint="Write https:// in the URL.")
        # llhttp also accepts RTSP and ICE.
        if not b"HTTP/".startswith(head[:5]):
            self._fail(f"Not an HTTP response: it starts with {head[:40]!r}.")

    def _note_damage(self, error: Exception) -> None:
        if isinstance(error, HttpParserUpgrade):
            self._fail("The server switched to another protocol (status 101).")
        # After the end, an error only says that more bytes came than were promised.
        if not self.complete:
            reason = str(error).rstrip(".") or "malformed"
            self._fail(f"Malformed HTTP response after {self.bytes_seen} bytes: {reason}.")
        self.keep_alive = False

    def _fail_bounds(self) -> NoReturn:
        if self._head_bytes > MAX_HEADER_BYTES or self._header_bytes > MAX_HEADER_BYTES:
            self._fail(f"The response headers exceed {MAX_HEADER_BYTES // 1024} KiB.")
        self._fail(f"The response body exceeds {self._max_body_bytes / 1024**2:g} MiB.")

    def _fail(self, what: str, *, hint: str = "") -> NoReturn:
        self.broken = f"{what} {hint}".strip()
        self.complete = False
        self.keep_alive = False
        self._parser = None
        raise ProtocolBroken(what, hint=hint, http_status=self.status)

    # Called by httptools while it parses. A server may send a second response unasked: once the
    # first is complete, all of them look away.

    def on_message_begin(self) -> None:
        """Take the first byte of a response (interim ones have set the stamp back)."""
        if self.first_byte_ns is None:
            self.first_byte_ns = self._at_ns

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header line, or a trailer line, which only counts against the bound."""
        self._header_bytes += len(name) + len(value)
        if self.complete or self.headers_ns is not None:
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip()
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        """Take the end of the headers, which decides how the body ends."""
        parser = self._parser
        if parser is None or self.complete:
            return
        status = parser.get_status_code()
        if 100 <= status < 200:
            return
        self.status = status
        self.headers_ns = self._at_ns
        self.http_version = parser.get_http_version()
        self.keep_alive = parser.should_keep_alive()
        chunked = self.headers.get("transfer-encoding", "").lower().endswith("chunked")
        self._ended_by_close = not chunked and "content-length" not in self.headers

    def on_body(self, body: bytes) -> None:
        """Take body bytes, already without chunk framing."""
        if not self.complete:
            self.segments.append(Segment(at_ns=self._at_ns, data=body, read=self._reads))

    def on_message_complete(self) -> None:
        """Take the end of a response: the end of this one, or of an interim answer before it."""
        if self.complete:
            return
        if self.headers_ns is None:
            self.headers.clear()
            self.first_byte_ns = None
            return
        self.complete = True
        self.end_ns = self._at_ns
