"""TabbyAPI (exllama): one `Metrics` line for each request.

The old line divides the whole context by the prompt's time, cached tokens included; its `Process`
is no speed of the machine, yet context / Process is the time. The new one counts both parts.
"""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.draft import Draft
from twospeed.sources.logs.numbers import NUMBER, number, seconds, whole

RUNTIME = "tabbyapi"
MARKS = {b" generated in ": (b"Metrics",)}

_LINE = re.compile(
    rf"Metrics(?: \(ID: \w+\))?: (\d+) tokens generated in ({NUMBER}) seconds"
    rf" \(Queue: ({NUMBER}) s, Process: (.*?), Generate: ({NUMBER}) T/s, Context: (\d+) tokens"
    r"(?:.*?Draft: (\d+) / (\d+))?"
)
_PARTS = re.compile(rf"(\d+) cached tokens and (\d+) new tokens at ({NUMBER}) T/s")
_SPEED = re.compile(rf"({NUMBER}) T/s")


class Tabbyapi:
    """Whole requests with both speeds."""

    def __init__(self, log: Collector) -> None:
        self._log = log

    def take(self, line: Line) -> bool:
        """Read one line."""
        found = _LINE.search(line.text)
        if found is None:
            return False
        draft = Draft(told_by="metrics", line=line.number)
        draft.output_tokens, draft.total_s = whole(found[1]), seconds(found[2])
        draft.queue_s, draft.prompt_tokens = number(found[3]), whole(found[6])
        generate = number(found[5])
        if generate and draft.output_tokens:
            draft.decode_s, draft.decode_steps = draft.output_tokens / generate, draft.output_tokens
        self._prompt(draft, found[4])
        if found[8]:
            draft.signs |= {"accepted_tokens": whole(found[7]), "drafted_tokens": whole(found[8])}
        self._log.content.runtime = self._log.content.runtime or RUNTIME
        self._log.add(draft)
        return True

    def close(self) -> None:
        """Nothing is left over."""

    def _prompt(self, draft: Draft, said: str) -> None:
        if (parts := _PARTS.search(said)) is not None:
            speed = number(parts[3])
            draft.cached_tokens, draft.processed_tokens = whole(parts[1]), whole(parts[2])
            if speed and draft.processed_tokens:
                draft.prefill_s = draft.processed_tokens / speed
        elif (one := _SPEED.search(said)) is not None:
            speed = number(one[1])
            if speed and draft.prompt_tokens:
                draft.prefill_s = draft.prompt_tokens / speed


READER = Tabbyapi
