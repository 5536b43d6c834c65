"""text-generation-webui: one line of a whole request, whose phases cannot be parted.

With a llama.cpp block of the same request above it, it adds the length of the whole prompt.
"""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.draft import Draft
from twospeed.sources.logs.numbers import NUMBER, seconds, whole

MARKS = {b" generated in ": (b"Output generated in",)}

_LINE = re.compile(
    rf"Output generated in ({NUMBER}) seconds \(({NUMBER}) (?:tokens/s|it/s), (\d+) tokens"
    r"(?:, context (\d+))?"
)


class Textgen:
    """Whole requests."""

    def __init__(self, log: Collector) -> None:
        self._log = log

    def take(self, line: Line) -> bool:
        """Read one line."""
        found = _LINE.search(line.text)
        if found is None:
            return False
        total_s, output, context = seconds(found[1]), whole(found[3]), whole(found[4])
        last = self._log.last
        if last is not None and _is_same(last, total_s, output):
            last.prompt_tokens = context
            self._log.again(last)
            return True
        draft = Draft(told_by="textgen", line=line.number, end_to_end=True)
        draft.total_s, draft.output_tokens, draft.prompt_tokens = total_s, output, context
        self._log.add(draft)
        return True

    def close(self) -> None:
        """Nothing is left over."""


def _is_same(last: Draft, total_s: float | None, output: int | None) -> bool:
    if last.end_to_end or last.total_s is None or total_s is None or last.output_tokens is None:
        return False
    near = 0.9 * total_s <= last.total_s <= 1.001 * total_s
    return near and output is not None and abs(last.output_tokens - output) <= 1


READER = Textgen
