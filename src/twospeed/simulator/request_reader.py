"""Cuts bytes from a socket into HTTP/1.x requests. The simulator's own; no sockets here.

Source: RFC 9112.
"""

from __future__ import annotations

from twospeed.simulator.exchange import Request

LONGEST_HEAD_BYTES = 64 * 1024
LONGEST_BODY_BYTES = 64 * 1024 * 1024


class BadRequestError(Exception):
    """Bytes that are no acceptable request; the connection must be closed.

    Attributes:
        status: what to answer before closing.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class RequestReader:
    """Reads the requests of one connection.

    Attributes:
        wants_continue: the client waits for a go-ahead before it sends the body.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: Request | None = None
        self._body_bytes: int | None = None
        self._body = bytearray()
        self.wants_continue = False

    def feed(self, data: bytes) -> None:
        """Take in bytes as they came."""
        self._buffer += data

    def next_request(self) -> Request | None:
        """The next whole request; None while it is incomplete.

        Raises:
            BadRequestError: this can never become a request.
        """
        if self._head is None and not self._read_head():
            return None
        if not self._read_body():
            return None
        head, self._head = self._head, None
        if head is None:
            return None
        body, self._body = bytes(self._body), bytearray()
        self.wants_continue = False
        return Request(
            method=head.method,
            path=head.path,
            headers=head.headers,
            body=body,
            http10=head.http10,
        )

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > LONGEST_HEAD_BYTES:
                raise BadRequestError(431, "the head is too long")
            return False
        lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        self._head = _parsed_head(lines)
        self._body_bytes = _body_length(self._head)
        expects = self._head.headers.get("expect", "").lower() == "100-continue"
        self.wants_continue = expects and self._body_bytes != 0
        return True

    def _read_body(self) -> bool:
        if self._body_bytes is None:
            return self._read_chunks()
        if len(self._buffer) < self._body_bytes:
            return False
        self._body = self._buffer[: self._body_bytes]
        del self._buffer[: self._body_bytes]
        return True

    def _read_chunks(self) -> bool:
        """Take whole chunks off the buffer; True once the last one was there."""
        while (line_end := self._buffer.find(b"\r\n")) >= 0:
            size = _chunk_bytes(bytes(self._buffer[:line_end]))
            if size == 0:
                return self._read_trailer(line_end + 2)
            if len(self._body) + size > LONGEST_BODY_BYTES:
                raise BadRequestError(413, "the body is too long")
            start, end = line_end + 2, line_end + 2 + size
            if len(self._buffer) < end + 2:
                return False
            self._body += self._buffer[start:end]
            del self._buffer[: end + 2]
        return False

    def _read_trailer(self, start: int) -> bool:
        if self._buffer[start : start + 2] == b"\r\n":
            del self._buffer[: start + 2]
            return True
        end = self._buffer.find(b"\r\n\r\n", start)
        if end < 0:
            return False
        del self._buffer[: end + 4]
        return True


def _parsed_head(lines: list[str]) -> Request:
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequestError(400, "the request line is not HTTP/1.x")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequestError(400, "a header line has no name")
        headers[name.lower()] = value.strip()
    path = words[1].partition("?")[0]
    if "://" in path:
        path = "/" + path.partition("://")[2].partition("/")[2]
    return Request(method=words[0], path=path, headers=headers, http10=words[2] == "HTTP/1.0")


def _body_length(head: Request) -> int | None:
    """Bytes of the body; None when it comes in chunks."""
    if "chunked" in head.headers.get("transfer-encoding", "").lower():
        return None
    written = head.headers.get("content-length", "0")
    if not (written.isascii() and written.isdigit()):
        raise BadRequestError(400, "Content-Length is not a number")
    if len(written) > 12 or int(written) > LONGEST_BODY_BYTES:
        raise BadRequestError(413, "the body is too long")
    return int(written)


def _chunk_bytes(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 12 or digits.strip(b"0123456789abcdefABCDEF"):
        raise BadRequestError(400, "a chunk has no size")
    return int(digits, 16)
