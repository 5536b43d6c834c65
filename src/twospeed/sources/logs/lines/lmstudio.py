"""LM Studio's server log: progress in percent, with neither counts nor speeds."""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line

RUNTIME = "lmstudio"
MARKS = {b"Running chat completion on conversation": (b"Running chat completion",)}

_SAID = re.compile(
    r"^\[([^\]]{1,200})\] (?:Prompt processing progress: [\d.]+%|Running chat completion)"
)


class Lmstudio:
    """Knows the program and its model; no time of a phase is told."""

    def __init__(self, log: Collector) -> None:
        self._log = log

    def take(self, line: Line) -> bool:
        """Read one line."""
        found = _SAID.match(line.text)
        if found is None:
            return False
        self._log.content.runtime = self._log.content.runtime or RUNTIME
        self._log.content.model = self._log.content.model or found[1]
        return True

    def close(self) -> None:
        """Nothing is left over."""


READER = Lmstudio
