"""text-generation-inference: queue and whole time of each request; its phases are not printed.

`time_per_token` is inference time / generated tokens, prompt included.
"""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.draft import Draft
from twospeed.sources.logs.numbers import go_seconds

MARKS = {b'" inference_time="': (b"inference_time=",)}

_MEMBER = re.compile(r"\b(total_time|queue_time|inference_time|time_per_token)=\"([^\"]{1,40})\"")


class Tgi:
    """Whole requests."""

    def __init__(self, log: Collector) -> None:
        self._log = log

    def take(self, line: Line) -> bool:
        """Read one line."""
        if "inference_time=" not in line.text:
            return False
        told = {name: go_seconds(value) for name, value in _MEMBER.findall(line.text)}
        draft = Draft(told_by="tgi", line=line.number, end_to_end=True)
        draft.total_s, draft.queue_s = told.get("total_time"), told.get("queue_time")
        inference_s, each_s = told.get("inference_time"), told.get("time_per_token")
        if inference_s and each_s:
            draft.output_tokens = round(inference_s / each_s)
        self._log.add(draft)
        return True

    def close(self) -> None:
        """Nothing is left over."""


READER = Tgi
