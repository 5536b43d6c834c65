"""How long each stage of a request may last, and which stage has outlasted its limit."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Literal

from twospeed.wire.http_response import ResponseReader
from twospeed.wire.reading import Segment

Stage = Literal["headers", "first text", "next text", "whole answer"]

# A slow machine reads 10 prompt tokens and writes 1 answer token per second (seen: llama.cpp
# on two busy cores read 10 per second): nothing that is still alive is cut off sooner.
SLOWEST_PREFILL_TPS = 10.0
SLOWEST_DECODE_TPS = 1.0

# Events of 0.3 to 1 kB per token are usual, with log-probabilities some 3 kB; a last event may
# repeat the prompt.
BYTES_PER_OUTPUT_TOKEN = 16 * 1024
BYTES_PER_PROMPT_TOKEN = 64
BYTES_PER_PROBABILITY = 256
"""Of a token that might have been chosen (seen: llama-server, 60 to 120)."""
SPARE_BYTES = 4 * 2**20

# Non-empty text under any key by which a dialect carries it; only used to tell the wait for the
# first text from a stall in mid-stream, never to time anything.
TEXT = re.compile(
    rb'"(?:content|reasoning(?:_content)?|thinking|response|text|delta|arguments)"\s*:\s*"[^"]'
)
MAYBE_SILENT = b": \t\r\n"
"""First bytes of comments and blank lines."""
SILENCE = re.compile(rb"(?:[ \t]*(?::[^\r\n]*)?(?:\r\n|\n|\r))*[ \t]*(?::[^\r\n]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Longest durations of the stages, in seconds; None is filled in for each request."""

    connect_s: float = 5.0
    """All of name look-up, connection and TLS."""
    headers_s: float | None = None
    """From the request to the response headers."""
    first_text_s: float | None = None
    """Silence before the first text; pings and progress reports start it anew."""
    gap_s: float = 60.0
    """Silence between two texts; pings do not count as text."""
    total_s: float | None = None
    """The whole answer."""
    response_bytes: int = 256 * 2**20
    """Largest response that is accepted."""

    @classmethod
    def short(cls, seconds: float) -> Limits:
        """Limits for one cheap question that must be answered within so many seconds."""
        return cls(
            connect_s=seconds,
            headers_s=seconds,
            first_text_s=seconds,
            gap_s=seconds,
            total_s=seconds,
            response_bytes=32 * 2**20,
        )

    @property
    def shortest_s(self) -> float:
        """The shortest limit on any stage after connecting."""
        rest = (self.headers_s, self.first_text_s, self.total_s)
        return min(self.gap_s, *(_or_never(limit_s) for limit_s in rest))

    def for_request(
        self, prompt_tokens: int, output_tokens: int, *, probabilities: int = 0
    ) -> Limits:
        """Fill in what the user left open, so that a long prompt gets a long wait.

        The whole answer and its bytes are bounded by what was asked for: signs of life must not
        hold a request for ever, nor may an answer without end fill the memory.

        Args:
            prompt_tokens: of the request.
            output_tokens: at most so many.
            probabilities: of other tokens that the user asks for with each one.
        """
        prefill_s = max(300.0, prompt_tokens / SLOWEST_PREFILL_TPS)
        decode_s = max(600.0, output_tokens / SLOWEST_DECODE_TPS)
        first_text_s = prefill_s if self.first_text_s is None else self.first_text_s
        total_s = 3 * first_text_s + min(decode_s, output_tokens * self.gap_s)
        per_token = BYTES_PER_OUTPUT_TOKEN + BYTES_PER_PROBABILITY * probabilities
        asked = per_token * output_tokens + BYTES_PER_PROMPT_TOKEN * prompt_tokens
        return replace(
            self,
            headers_s=prefill_s if self.headers_s is None else self.headers_s,
            first_text_s=first_text_s,
            total_s=total_s if self.total_s is None else self.total_s,
            response_bytes=min(self.response_bytes, SPARE_BYTES + asked),
        )


class Watch:
    """Which stage of one exchange is due when; told of every read."""

    __slots__ = ("_body_from", "_headers", "_last_s", "_limits", "_started_s", "_text")

    def __init__(self, limits: Limits, now_s: float) -> None:
        self._limits = limits
        self._started_s = now_s
        self._last_s = now_s
        self._body_from = 0
        self._headers = False
        self._text = False

    @property
    def text_seen(self) -> bool:
        """Whether something that looks like text has arrived."""
        return self._text

    def heard(self, reader: ResponseReader, now_s: float) -> bool:
        """Take note of a read; tells whether it carried more than silence."""
        segments = reader.segments
        new = segments[self._body_from :] if self._body_from else segments
        self._body_from = len(segments)
        if not self._text:
            return self._heard_before_text(reader, new, now_s)
        for segment in new:
            data = segment.data
            if data[0] not in MAYBE_SILENT or SILENCE.fullmatch(data) is None:
                self._last_s = now_s
                return True
        return False

    def _heard_before_text(self, reader: ResponseReader, new: list[Segment], now_s: float) -> bool:
        self._headers = self._headers or reader.headers_ns is not None
        self._last_s = now_s
        self._text = any(TEXT.search(segment.data) for segment in new)
        return any(_says_something(segment.data) for segment in new)

    def look_from(self, segments: int) -> None:
        """So many of those heard are left in the reader; the others were taken out of it."""
        self._body_from = segments

    def due(self) -> tuple[float, Stage]:
        """The moment at which the present stage is overdue, and its name."""
        limits = self._limits
        stage: tuple[float, Stage]
        if not self._headers:
            stage = (self._started_s + _or_never(limits.headers_s), "headers")
        elif not self._text:
            stage = (self._last_s + _or_never(limits.first_text_s), "first text")
        else:
            stage = (self._last_s + limits.gap_s, "next text")
        return min(stage, (self._started_s + _or_never(limits.total_s), "whole answer"))

    def waited_s(self, stage: Stage, now_s: float) -> float:
        """Seconds that a stage has lasted, for its message."""
        since_s = self._started_s if stage in {"headers", "whole answer"} else self._last_s
        return now_s - since_s


def _says_something(data: bytes) -> bool:
    """Whether body bytes hold more than comments and blank lines."""
    return data[0] not in MAYBE_SILENT or SILENCE.fullmatch(data) is None


def _or_never(limit_s: float | None) -> float:
    return math.inf if limit_s is None else limit_s
