"""One request while its lines come in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from twospeed.records.request_record import (
    DecodeWindow,
    RequestRecord,
    ServerSigns,
    ServerTimes,
    TokenCounts,
)
from twospeed.runtimes.llama_timings import largest_step
from twospeed.sources.logs.company import Span
from twospeed.sources.logs.numbers import LONGEST_S, MOST_DIGITS

FEW_TOKENS = 1
"""One prompt token is what a full hit leaves to evaluate: its time says nothing about prefill."""
MOST_REPORTS = 256
"""Of one request."""
LEAST_TPS = 1e-6
_NO_SIGNS = ServerSigns()


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
    task: int | None = None
    """What the program calls it, within its slot."""
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
        return not (
            self.prefill_s is None
            and self.decode_s is None
            and self.total_s is None
            and self.load_s is None
        )

    @property
    def span(self) -> Span | None:
        """When it was in its slot; None where the log does not show both ends."""
        if self.slot is None or self.ended_line is None:
            return None
        return Span(self.line, self.ended_line, self.began_s, self.ended_s)

    def add_window(self, output_tokens: int | None, pace_tps: float | None) -> None:
        """Take up the speed of a few seconds of its answer; of very many every second is kept."""
        if output_tokens is None or not pace_tps or pace_tps < LEAST_TPS:
            return
        if len(self.windows) >= MOST_REPORTS:
            del self.windows[::2]
        window = DecodeWindow(output_tokens=output_tokens, per_token_s=1.0 / pace_tps)
        self.windows.append(window)

    def add_step(self, done_tokens: int | None) -> None:
        """Take up a report of progress: prompt tokens that are done."""
        if done_tokens is not None and len(self.steps) < MOST_REPORTS:
            self.steps.append(done_tokens)

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
                load_s=_time(self.load_s),
                queue_s=_time(self.queue_s),
                prefill_s=_time(self.prefill_s),
                prefill_tokens=_count(self.processed_tokens) if self.prefill_s else None,
                decode_s=_time(self.decode_s) if timed else None,
                decode_steps=_count(steps) if timed else None,
                total_s=_time(self.total_s),
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
            prompt_tokens=_count(prompt),
            cached_prompt_tokens=_count(cached),
            output_tokens=_count(self.output_tokens),
            reasoning_tokens=_count(self.reasoning_tokens),
        )

    def _signs(self) -> ServerSigns | None:
        signs = ServerSigns(
            slot=self.slot,
            prefill_step_tokens=largest_step(self.steps),
            decode_windows=tuple(self.windows),
            **self.signs,
        )
        return None if signs == _NO_SIGNS else signs


def _time(told_s: float | None) -> float | None:
    """None for a time that no request takes."""
    return told_s if told_s is not None and 0 <= told_s <= LONGEST_S else None


def _count(told: int | None) -> int | None:
    """None for a count that no request has."""
    return told if told is not None and 0 <= told < 10**MOST_DIGITS else None
