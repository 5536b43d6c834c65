"""What one response said, before any runtime's meaning is given to it.

What there is one of for each token is a Struct that the garbage collector need not know: it is made
in a tenth of the time of a frozen dataclass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct

from twospeed.records.request_record import TextKind


class Segment(Struct, frozen=True, kw_only=True, gc=False):
    """Body bytes that became available together, with the stamp of their socket read."""

    at_ns: int
    data: bytes
    read: int
    """Index of the socket read; two segments or events with the same index share a stamp."""


class TextEvent(Struct, frozen=True, kw_only=True, gc=False):
    """One event that carried non-empty text."""

    at_ns: int
    read: int
    kind: TextKind
    text: str
    output_tokens: int | None = None
    """Tokens generated up to this event, where the event itself tells (vLLM's continuous usage)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A prefill progress report."""

    at_ns: int
    processed: int
    total: int
    cached: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A phase that the runtime announced by name, at the moment the announcement arrived."""

    at_ns: int
    name: str
    """For example "prompt_processing.start" (LM Studio)."""
    progress_frac: float | None = None
    """Share of the phase that is done (0 … 1); None where the event does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamError:
    """An error that the response body carried, or a break of the protocol."""

    kind: Literal["http", "stream", "protocol"]
    message: str
    http_status: int | None = None


@dataclass(slots=True, kw_only=True)
class StreamReading:
    """Everything a response said, in its own words.

    `usage` and `timings` keep the runtime's raw objects: their meaning differs between runtimes
    (see the runtime modules) and is not decided here.
    """

    text: list[TextEvent] = field(default_factory=list)
    first_byte_ns: int | None = None
    headers_ns: int | None = None
    finish_ns: int | None = None
    """Arrival of the event that carried a finish reason."""
    end_ns: int | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    """Raw usage object, later ones merged over earlier ones."""
    timings: dict[str, Any] | None = None
    """Raw server clock object, the newest one.

    llama-server `timings`, vLLM `metrics`, Ollama's final object, LM Studio `stats`.
    """
    progress: list[Progress] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    """Phases that the runtime announced: only LM Studio's native stream does."""
    keepalives: list[tuple[int, str]] = field(default_factory=list)
    """SSE comments and ping events with their stamps."""
    empty_events: int = 0
    """Deltas of the stream that carried nothing (role-only, part of a character)."""
    model: str | None = None
    whole: bool = False
    """True when the answer came as one JSON: its text arrived at the end, whenever it was made."""
    done: bool = False
    """True when the dialect's own end mark was seen."""
    error: StreamError | None = None
