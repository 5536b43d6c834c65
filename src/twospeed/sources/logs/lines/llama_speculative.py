"""llama.cpp's speculative tools: `encoded`, `decoded`, and how much of the draft was accepted."""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.draft import Draft
from twospeed.sources.logs.numbers import NUMBER, seconds, whole

MARKS = {b" seconds, speed:": (b"coded ", b"n_drafted", b"n_accept")}

_CODED = re.compile(rf"^(en|de)coded\s+(\d+) tokens in\s+({NUMBER}) seconds")
_COUNT = re.compile(r"^(n_drafted|n_accept)\s*=\s*(\d+)")
_SIGN = {"n_drafted": "drafted_tokens", "n_accept": "accepted_tokens"}


class LlamaSpeculative:
    """One run of such a tool at a time."""

    def __init__(self, log: Collector) -> None:
        self._log = log
        self._run: Draft | None = None

    def take(self, line: Line) -> bool:
        """Read one line."""
        if (found := _CODED.match(line.text)) is not None:
            time_s, tokens = seconds(found[3]), whole(found[2])
            if found[1] == "en":
                self.close()
                self._run = Draft(told_by="speculative", line=line.number)
                self._run.prefill_s, self._run.processed_tokens = time_s, tokens
                self._run.prompt_tokens = tokens
            elif self._run is not None:
                self._run.decode_s, self._run.output_tokens = time_s, tokens
                self._run.decode_steps = tokens
        elif (found := _COUNT.match(line.text)) is not None and self._run is not None:
            self._run.signs[_SIGN[found[1]]] = whole(found[2])
        else:
            return False
        return True

    def close(self) -> None:
        """Hand over the run."""
        if self._run is not None:
            self._log.add(self._run)
        self._run = None


READER = LlamaSpeculative
