"""mlx_lm: the end of `mlx_lm.generate`, and the progress lines of its server."""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.draft import Draft
from twospeed.sources.logs.numbers import NUMBER, number, whole

RUNTIME = "mlx_lm"
MARKS = {b"tokens-per-sec": (b"tokens-per-sec",)}

_PHASE = re.compile(rf"(Prompt|Generation): (\d+) tokens, ({NUMBER}) tokens-per-sec")
_PROGRESS = re.compile(r"Prompt processing progress: (\d+)/(\d+)")


class MlxLm:
    """One run at a time: its prompt, then its answer."""

    def __init__(self, log: Collector) -> None:
        self._log = log
        self._run: Draft | None = None

    def take(self, line: Line) -> bool:
        """Read one line."""
        found = _PHASE.search(line.text)
        if found is None:
            return self._progress(line)
        tokens, speed = whole(found[2]), number(found[3])
        time_s = tokens / speed if tokens and speed else None
        if found[1] == "Prompt":
            self.close()
            self._run = Draft(told_by="mlx_lm", line=line.number, prompt_tokens=tokens)
            self._run.prefill_s, self._run.processed_tokens = time_s, tokens
        elif self._run is not None:
            self._run.decode_s, self._run.output_tokens = time_s, tokens
            self._run.decode_steps = tokens
            self.close()
        return True

    def _progress(self, line: Line) -> bool:
        """A line of the server: whose log it is, and no time of a phase."""
        if _PROGRESS.search(line.text) is None:
            return False
        self._log.content.runtime = self._log.content.runtime or RUNTIME
        return True

    def close(self) -> None:
        """Hand over the run."""
        if self._run is not None:
            self._log.content.runtime = self._log.content.runtime or RUNTIME
            self._log.add(self._run)
        self._run = None


READER = MlxLm
