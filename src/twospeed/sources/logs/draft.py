"""One request while its lines come in."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from twospeed.records.request_record import (
    DecodeWindow,
    RequestRecord,
    ServerSigns,
    ServerTimes,
    TokenCounts,
)
from twospeed.sources.logs.company import Span

FEW_TOKENS = 1
"""One prompt token is what a full hit leaves to evaluate: its time says nothing about prefill."""


@dataclass(slots=True)
class Draft:
    """What is known of a request so far; None is unknown, never 0.

    `processed_tokens` are those that `prefill_s` covers, `decode_steps` those of `decode_s`.
    """

    told_by: str
    line: int
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    processed_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    decode_steps: int | None = None
    load_s: float | None = None
    queue_s: float | None = None
    total_s: float | None = None
    began_s: float | None = None
    """Clock of the log at its start, where lines carry one."""
    ended_s: float | None = None
    ended_line: int | None = None
    slot: int | None = None
    other_requests: int | None = None
    model: str | None = None
    end_to_end: bool = False
    """Only the whole time is told."""
    signs: dict[str, Any] = field(default_factory=dict)
    windows: list[DecodeWindow] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    """Prompt tokens that were done at each report of progress."""

    @property
    def tells_something(self) -> bool:
        """Whether any time was told."""
        times = (self.prefill_s, self.decode_s, self.total_s, self.load_s)
        return any(time is not None for time in times)

    @property
    def span(self) -> Span | None:
        """When it was in its slot; None where the log does not show both ends."""
        if self.slot is None or self.ended_line is None:
            return None
        return Span(self.line, self.ended_line, self.began_s, self.ended_s)

    def record(self, number: int) -> RequestRecord:
        """The record of what was told."""
        steps = self.decode_steps
        if steps is None and self.output_tokens is not None:
            steps = self.output_tokens - 1
        timed = self.decode_s is not None and steps is not None and steps > 0
        return RequestRecord(
            number=number,
            step="user",
            model=self.model,
            counts=self._counts(),
            server=ServerTimes(
                told_by=self.told_by,
                load_s=self.load_s,
                queue_s=self.queue_s,
                prefill_s=self.prefill_s,
                prefill_tokens=self.processed_tokens if self.prefill_s is not None else None,
                decode_s=self.decode_s if timed else None,
                decode_steps=steps if timed else None,
                total_s=self.total_s,
            ),
            signs=self._signs(),
            other_requests=self.other_requests,
            line=self.line,
        )

    def _counts(self) -> TokenCounts:
        prompt, cached, done = self.prompt_tokens, self.cached_tokens, self.processed_tokens
        if prompt is None and cached is not None and done is not None:
            prompt = cached + done
        if self.slot is not None and cached is None and prompt is not None and done is not None:
            cached = prompt - done if prompt >= done else None
        if prompt is not None and cached is not None and cached > prompt:
            cached = None
        return TokenCounts(
            prompt_tokens=prompt,
            cached_prompt_tokens=cached,
            output_tokens=self.output_tokens,
            reasoning_tokens=self.reasoning_tokens,
        )

    def _signs(self) -> ServerSigns | None:
        signs = ServerSigns(
            slot=self.slot,
            prefill_step_tokens=_usual_step(self.steps),
            decode_windows=tuple(self.windows),
            **self.signs,
        )
        return None if signs == ServerSigns() else signs


def _usual_step(done: list[int]) -> int | None:
    """Median of the steps between reports, the last one, which holds the rest, left out."""
    steps = sorted(after - before for before, after in pairwise(done))
    steps = [step for step in steps if step > 0]
    return steps[len(steps) // 2] if len(steps) >= 2 else None
