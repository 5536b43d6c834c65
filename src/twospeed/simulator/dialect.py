"""What a dialect is: how one runtime answers, and the voice in which it tells a stream.

Nothing here is shared with the readers of twospeed: a mistake made once must not be able to hide
on both sides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from twospeed.simulator import asking
from twospeed.simulator.bench import Bench
from twospeed.simulator.exchange import BadFieldError, RefusedError, Reply, Request
from twospeed.simulator.job import Asked, Job

HeadAt = Literal["arrival", "slot", "text"]
"""When a stream's head is sent: at once, when a slot is free, or with the first text."""

BATCH_TOKENS = 2048
"""Prompt tokens that are processed at a time, where a runtime tells its progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the simulated server is, as far as answers show it."""

    model: str
    n_ctx: int
    slots: int = 1
    answer_tokens: int = 128
    """Length of an answer that nobody limited, reasoning not included."""
    reasoning_tokens: int = 0
    report_cached: bool = False
    """A flag of some servers: tell cached tokens."""
    report_times: bool = False
    """A flag of some servers: tell times of each request."""
    cache_on: bool = True
    gpu_frac: float = 1.0
    """Part of the model in graphics memory, where the server tells; the pace is set apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The state of the server when a question comes."""

    now_ns: int
    now_s: int
    """Wall clock, seconds since 1970."""
    bench: Bench


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Text that is told at one moment."""

    text: str
    tokens: tuple[str, ...]
    reasoning: bool
    at_ns: int
    done_tokens: int
    """Output tokens so far, these included."""
    first: bool
    last: bool


class Voice(ABC):
    """Tells one answer. Every method returns pieces of the body; each is an HTTP chunk.

    Args:
        facts: of the server.
        job: what is told.
        counts: whether token counts and times are told.
    """

    content_type: ClassVar[str] = "text/event-stream"

    def __init__(self, facts: Facts, job: Job, *, counts: bool = True) -> None:
        self.facts = facts
        self.job = job
        self.counts = counts

    def greeting(self) -> list[bytes]:
        """With the head, when that is sent on arrival."""
        return []

    def load_started(self) -> list[bytes]:
        """When the model begins to load for this request."""
        return []

    def load_ended(self) -> list[bytes]:
        """When it has been loaded."""
        return []

    def prefill_started(self) -> list[bytes]:
        """When the prompt begins to be processed."""
        return []

    def progress(self, processed_tokens: int, at_ns: int) -> list[bytes]:  # noqa: ARG002
        """After a batch of the prompt; `processed_tokens` includes cached ones."""
        return []

    @abstractmethod
    def text(self, piece: Piece) -> list[bytes]:
        """Some tokens."""

    @abstractmethod
    def finish(self) -> list[bytes]:
        """After the last token."""

    @abstractmethod
    def whole(self) -> bytes:
        """The whole answer, for a client that wants no stream."""

    @abstractmethod
    def role(self) -> list[bytes]:
        """An event that opens the answer and holds no text."""

    @abstractmethod
    def empty(self, processed_tokens: int, at_ns: int) -> list[bytes]:
        """An event that only shows progress of the prompt."""

    @abstractmethod
    def failure(self, message: str) -> list[bytes]:
        """An error in mid-stream, and the end of the stream."""

    def garbage(self) -> list[bytes]:
        """An event whose JSON is cut off."""
        return [b'data: {"choices":[{"delta":{"cont\n\n']

    def ping(self) -> list[bytes]:
        """What keeps a connection alive."""
        return [b": ping\n\n"]


class Dialect(ABC):
    """One runtime as it is seen from outside.

    Attributes:
        name: as given to --speak.
        head_at: when the head of a stream is sent.
        http_version: of its answers.
        closes_after_stream: it closes the connection after each stream without announcing it.
        ascii_only: its JSON escapes every other character.
        block_tokens: its prompt cache reuses whole blocks of so many tokens.
        reuses: it has a prompt cache unless told otherwise.
        forms: which of its paths generate text, and the form in which each answers.
        limit_names: fields that limit an answer, strongest first.
    """

    name: ClassVar[str]
    head_at: ClassVar[HeadAt] = "arrival"
    http_version: ClassVar[str] = "1.1"
    closes_after_stream: ClassVar[bool] = False
    ascii_only: ClassVar[bool] = False
    block_tokens: ClassVar[int] = 1
    reuses: ClassVar[bool] = True
    model: ClassVar[str] = "simulated-8b"
    forms: ClassVar[Mapping[str, str]] = {
        "/v1/chat/completions": "chat",
        "/v1/completions": "completion",
    }
    limit_names: ClassVar[tuple[str, ...]] = ("max_completion_tokens", "max_tokens")

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    @abstractmethod
    def head_lines(
        self, content_type: str, body_line: str, *, closing: bool, origin: str, now_s: int
    ) -> list[str]:
        """Header lines of an answer.

        Args:
            content_type: of its body.
            body_line: the line that tells where the body ends; empty when the connection does.
            closing: the client asked for the connection to be closed.
            origin: the page that asks, when a browser does and it may.
            now_s: wall clock, seconds since 1970.
        """

    @abstractmethod
    def answer(self, request: Request, moment: Moment) -> Reply | None:
        """The reply on any path that generates no text; None where there is no such path."""

    @abstractmethod
    def refusal(self, status: int, message: str) -> Reply:
        """An error with a status, in this dialect's words where it has some."""

    @abstractmethod
    def bad_json(self, detail: str) -> Reply:
        """The body of a request is not JSON."""

    @abstractmethod
    def bad_field(self, error: BadFieldError) -> Reply:
        """A field of a request is missing or of the wrong type."""

    @abstractmethod
    def voice(self, job: Job, *, counts: bool = True) -> Voice:
        """The voice that tells an answer."""

    def not_found(self) -> Reply:
        """There is no such path."""
        return self.refusal(404, "Not Found")

    def loading(self) -> Reply:
        """The server is up but its model is not."""
        return self.refusal(503, "Loading model")

    def is_open(self, path: str) -> bool:  # noqa: ARG002
        """Whether a path needs no key where the others do."""
        return False

    def asked(self, form: str, body: Mapping[str, Any]) -> Asked:
        """What a request for text asks for.

        Raises:
            BadFieldError: a field is missing or of the wrong type.
            RefusedError: it is refused for another reason.
        """
        prompt = self.prompt(form, body)
        limited = asking.limit(body, self.limit_names)
        reasoning = self.facts.reasoning_tokens if self.thinks(form, body) else 0
        output = self.facts.answer_tokens + reasoning if limited is None else limited
        asked = Asked(
            form=form,
            prompt=prompt,
            output_tokens=output,
            reasoning_tokens=min(reasoning, output),
            limited=limited is not None,
            stream=body.get("stream") is True,
            include_usage=asking.includes_usage(body),
            body=body,
        )
        return self.fitted(asked)

    def prompt(self, form: str, body: Mapping[str, Any]) -> array[int]:
        """Tokens of the prompt."""
        return asking.chat_tokens(body) if form == "chat" else asking.prompt_tokens(body)

    def thinks(self, form: str, body: Mapping[str, Any]) -> bool:
        """Whether the answer begins with reasoning."""
        return form == "chat" and asking.may_think(body)

    def fitted(self, asked: Asked) -> Asked:
        """The request as far as the context holds it; the base lets the answer end at its limit.

        Raises:
            RefusedError: the prompt alone is too long.
        """
        room = self.facts.n_ctx - len(asked.prompt)
        if room <= 0:
            raise RefusedError(self.too_long(len(asked.prompt)))
        return shortened(asked, room)

    def too_long(self, prompt_tokens: int) -> Reply:
        """The prompt does not fit into the context."""
        return self.refusal(400, f"{prompt_tokens} tokens exceed the context.")


def shortened(asked: Asked, most_tokens: int) -> Asked:
    """The request with an answer of at most so many tokens."""
    if asked.output_tokens <= most_tokens:
        return asked
    return replace(
        asked,
        output_tokens=most_tokens,
        reasoning_tokens=min(asked.reasoning_tokens, most_tokens),
        limited=True,
    )


def http_date(now_s: int) -> str:
    """A moment as headers write it (RFC 9110, 5.6.7)."""
    day = datetime.fromtimestamp(now_s, UTC)
    names = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return (
        f"{names[day.weekday()]}, {day.day:02} {months[day.month - 1]} {day.year} "
        f"{day:%H:%M:%S} GMT"
    )


def identifier(number: int, length: int = 24) -> str:
    """Letters and digits that look drawn, one sequence per request."""
    # A large odd factor spreads consecutive numbers over the whole range.
    spread = (number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC8341082276BF3A27251 % 16**length
    return f"{spread:0{length}x}"


def uuid_like(number: int) -> str:
    """An identifier in the form of a UUID."""
    digits = identifier(number, 32)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
