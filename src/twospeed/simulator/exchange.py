"""What passes between sockets and dialects: a request, a whole reply, and one planned write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request."""

    method: str
    path: str
    """Without the query."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""
    http10: bool = False

    @property
    def wants_close(self) -> bool:
        """Whether the client asked for the connection to be closed after the answer."""
        asked = self.headers.get("connection", "").lower()
        return "close" in asked or (self.http10 and "keep-alive" not in asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer that is known at once."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[str, ...] = ()
    """Further header lines."""
    sized: bool = True
    """Tell the length of the body; otherwise it ends with the connection."""


@dataclass(slots=True)
class Write:
    """Bytes that are due at a moment."""

    at_ns: int
    kind: str
    chunks: list[bytes] = field(default_factory=list)
    """Each becomes an HTTP chunk of its own; all are sent together."""
    tokens: int = 0
    """Output tokens that it brings."""
    end: bool = False
    """The response ends with it."""
    reset: bool = False
    """Instead of writing, the connection is reset."""


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class BadJsonError(Exception):
    """The body of a request is no JSON object; its text says why."""


class BadFieldError(Exception):
    """A field of a request body that no answer can be made of.

    Attributes:
        field: its name.
        problem: `missing`, `type` or `range`.
        value: what was there.
    """

    def __init__(self, name: str, problem: str, value: object = None) -> None:
        super().__init__(f"{name}: {problem}")
        self.field = name
        self.problem = problem
        self.value = value


def as_json(value: object) -> bytes:
    """JSON without spaces, characters beyond ASCII as they are."""
    return msgspec.json.encode(value)


def json_reply(value: object, status: int = 200, content_type: str = "application/json") -> Reply:
    """A reply whose body is JSON."""
    return Reply(status=status, body=as_json(value), content_type=content_type)
