"""One request for text: what it asks for, and when each of its stages came."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twospeed.simulator.cache import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for text, as far as the machine is concerned."""

    form: str
    """Which of its dialect's routes will answer: names a method of the voice."""
    prompt: array[int]
    output_tokens: int
    """Reasoning included."""
    stream: bool
    reasoning_tokens: int = 0
    limited: bool = True
    """The client limited the length: the answer ends there, not of itself."""
    include_usage: bool = False
    salt: str = ""
    reuse: bool = True
    """May reuse the prompt cache."""
    config: str = ""
    """Settings that the model must be loaded with; others mean loading it again."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """The request as it came, for what only its dialect knows."""


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A request on its way through the machine; stamps are planned, in monotonic nanoseconds."""

    number: int
    asked: Asked
    arrival_ns: int
    made_s: int
    """Wall clock of its arrival, seconds since 1970, for the `created` of its answer."""
    reasoning: list[str] = field(default_factory=list)
    """Tokens to think, before the answer."""
    answer: list[str] = field(default_factory=list)
    faults: frozenset[str] = frozenset()

    slot: Slot | None = None
    cached_tokens: int = 0
    queue_end_ns: int | None = None
    prefill_start_ns: int | None = None
    prefill_end_ns: int | None = None
    """Also the moment of the first token."""
    last_token_ns: int | None = None
    done_tokens: int = 0
    """Output tokens that were written so far."""
    drafted_tokens: int = 0
    accepted_tokens: int = 0

    # The stage's own stamp, and that of the stage before it for as long as it was not reached.
    @property
    def slot_ns(self) -> int:
        """When it had a slot."""
        return self.arrival_ns if self.queue_end_ns is None else self.queue_end_ns

    @property
    def started_ns(self) -> int:
        """When prefill began."""
        return self.slot_ns if self.prefill_start_ns is None else self.prefill_start_ns

    @property
    def first_token_ns(self) -> int:
        """When prefill ended with the first token."""
        return self.started_ns if self.prefill_end_ns is None else self.prefill_end_ns

    @property
    def latest_token_ns(self) -> int:
        """When the last token so far was made."""
        return self.first_token_ns if self.last_token_ns is None else self.last_token_ns

    @property
    def prompt_tokens(self) -> int:
        """The whole prompt, cached part included."""
        return len(self.asked.prompt)

    @property
    def fresh_tokens(self) -> int:
        """Prompt tokens that prefill has to process."""
        return self.prompt_tokens - self.cached_tokens

    @property
    def output_tokens(self) -> int:
        """Tokens of the whole answer, reasoning included."""
        return len(self.reasoning) + len(self.answer)

    @property
    def load_ns(self) -> int:
        """Waited for the model."""
        return _between(self.queue_end_ns, self.prefill_start_ns)

    @property
    def queue_ns(self) -> int:
        """Waited for a slot."""
        return _between(self.arrival_ns, self.queue_end_ns)

    @property
    def prefill_ns(self) -> int:
        """Processed the prompt."""
        return _between(self.prefill_start_ns, self.prefill_end_ns)

    @property
    def decode_ns(self) -> int:
        """From the first token to the last one so far."""
        return _between(self.prefill_end_ns, self.last_token_ns)

    @property
    def finish_reason(self) -> str:
        """As OpenAI's dialect words it."""
        return "length" if self.asked.limited else "stop"


def _between(start_ns: int | None, end_ns: int | None) -> int:
    return 0 if start_ns is None or end_ns is None else end_ns - start_ns
