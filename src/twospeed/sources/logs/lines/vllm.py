"""vLLM: windows of 5 or 10 seconds over all requests, and preemptions.

No line is about one request. `Avg prompt throughput: 0.0` is a window without a prompt, and no
speed.
"""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.numbers import NUMBER, number, whole

RUNTIME = "vllm"
MARKS = {b"n throughput": (b"generation throughput", b"preempt")}

_WINDOW = re.compile(
    rf"Avg prompt throughput: ({NUMBER}) tokens/s, Avg generation throughput: ({NUMBER}) tokens/s,"
    r" Running: (\d+) reqs,(?: Swapped: \d+ reqs,)? (?:Waiting|Pending): (\d+) reqs,"
    rf" \w+ KV cache usage: ({NUMBER})%"
)
_PREEMPTED = re.compile(r"is preempted by|preempt.*?not enough KV cache", re.IGNORECASE)
_COUNT = re.compile(r"total_(?:cumulative|num_cumulative)_preemption_cnt=(\d{1,12})")


class Vllm:
    """The largest values over the windows."""

    def __init__(self, log: Collector) -> None:
        self._log = log
        self._preempted = 0

    def take(self, line: Line) -> bool:
        """Read one line, which may hold several windows."""
        windows = _WINDOW.findall(line.text)
        for _, generation, running, waiting, usage in windows:
            self._log.most(
                generation_tps_max=number(generation),
                running_max=whole(running),
                waiting_max=whole(waiting),
                kv_cache_usage_max_pct=number(usage),
            )
        if windows:
            self._log.content.runtime = self._log.content.runtime or RUNTIME
        elif _PREEMPTED.search(line.text) is not None:
            self._preempted += 1
            told = _COUNT.search(line.text)
            self._log.most(preemptions=max(self._preempted, int(told[1]) if told else 0))
        else:
            return False
        return True

    def close(self) -> None:
        """Nothing is left over."""


READER = Vllm
