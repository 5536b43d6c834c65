"""SGLang: lines about batches.

The first decode line after an idle time divides by the idle time too; a window is believed only
when the line before it was a decode line.
"""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.numbers import NUMBER, number, whole

RUNTIME = "sglang"
MARKS = {b"n throughput": (b" batch",)}

_DECODE = re.compile(
    rf"Decode batch[.,] #running-req: (\d+),.*?gen throughput \(token/s\): ({NUMBER}),"
    r" #queue-req: (\d+)"
)
_GRAPH = re.compile(r"cuda graph: (True|False)")
_PREFILL = re.compile(r"Prefill batch[.,] #new-seq: \d+,.*?#running-req: (\d+), #queue-req: (\d+)")


class Sglang:
    """The largest values over the batches."""

    def __init__(self, log: Collector) -> None:
        self._log = log
        self._after_decode = False

    def take(self, line: Line) -> bool:
        """Read one line."""
        if (decode := _DECODE.search(line.text)) is not None:
            self._log.most(running_max=whole(decode[1]), queue_max=whole(decode[3]))
            if self._after_decode:
                self._log.most(generation_tps_max=number(decode[2]))
            graph = _GRAPH.search(line.text)
            if graph is not None and graph[1] == "False":
                self._log.content.learn(cuda_graph=False)
            self._after_decode = True
        elif (prefill := _PREFILL.search(line.text)) is not None:
            self._log.most(running_max=whole(prefill[1]), queue_max=whole(prefill[2]))
            self._after_decode = False
        else:
            return False
        self._log.content.runtime = self._log.content.runtime or RUNTIME
        return True

    def close(self) -> None:
        """Nothing is left over."""


READER = Sglang
