"""Ollama: `--verbose` blocks, `ollama ps`, and the server's log.

* An access line tells the end and the whole time of a request, never its phases. When a child
  llama-server writes into the same log, the access line is the same request.
* `ollama ps` is the plan of the scheduler; what a runner says of its devices outranks it.
* `prompt eval count` was the whole prompt in older versions and its new part in newer ones, so the
  length of the whole prompt is only known where the count is all that was timed.
"""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.draft import Draft
from twospeed.sources.logs.numbers import NUMBER, bytes_of, go_seconds, whole

RUNTIME = "ollama"
MARKS = {
    b"[GIN] 2": (b"[GIN]", b"truncating input", b"layers.offload"),
    b"prompt eval duration: ": (b" duration:", b"eval count:", b"/GPU", b"% GPU", b"% CPU"),
}

_BLOCK = re.compile(
    r"^(total duration|load duration|prompt eval count|prompt eval duration|prompt eval rate"
    r"|eval count|eval duration|eval rate):\s*(\S+)"
)
_ACCESS = re.compile(
    r"\[GIN\] \d{4}/\d\d/\d\d - \d\d:\d\d:\d\d \|\s*(\d{3}) \|\s*(\S+) \|"
    r"\s*\S+ \| (\w+)\s+\"([^\"]*)\""
)
_GENERATES = re.compile(
    r"^/(?:api/(?:chat|generate)|v1/(?:chat/)?completions|v1/(?:messages|responses))$"
)
_TRUNCATED = re.compile(r"truncating input prompt\"? .*?limit=(\d+)")
_OFFLOAD = re.compile(r"layers\.model=(\d+).*?layers\.offload=(\d+)")
_PS_SPLIT = re.compile(
    rf"\s({NUMBER}) ([KMGT]i?B)\s+(?:(\d{{1,3}})%/(\d{{1,3}})% CPU/GPU|100% (CPU|GPU))"
    r"(?:\s+(\d{3,}))?(?:\s|$)"
)
LEAST_QUEUE_S = 1.0
"""Less of a rest than this is tokenizing and sampling."""
SAME_FRAC = 0.5
"""A request of a child took at least this share of the access line that tells of it."""


class Ollama:
    """One block at a time; access lines beside the requests of a child."""

    def __init__(self, log: Collector) -> None:
        self._log = log
        self._block: Draft | None = None
        self._rest_known = False
        self._truncated = False
        self._claimed: Draft | None = None

    def take(self, line: Line) -> bool:
        """Read one line of a block, a table or a log."""
        text = line.text
        if (found := _BLOCK.match(text)) is not None:
            self._of_block(line, found[1], found[2])
        elif "[GIN]" in text and (access := _ACCESS.search(text)) is not None:
            self._access(line, access)
        elif (cut := _TRUNCATED.search(text)) is not None:
            self._truncated = True
            self._log.content.learn(n_ctx=whole(cut[1]))
        elif "msg=" in text and (offload := _OFFLOAD.search(text)) is not None:
            self._log.content.learn(
                layers_total=whole(offload[1]), layers_offloaded=whole(offload[2])
            )
        elif (split := _PS_SPLIT.search(text)) is not None:
            self._plan(split)
        else:
            return text.startswith("time=") and " source=" in text
        self._log.content.runtime = self._log.content.runtime or RUNTIME
        return True

    def close(self) -> None:
        """Hand over the block."""
        block, self._block = self._block, None
        if block is None:
            return
        parts = (block.load_s, block.prefill_s, block.decode_s)
        if block.total_s is not None and None not in parts:
            rest_s = block.total_s - sum(part or 0.0 for part in parts)
            block.queue_s = rest_s if rest_s >= LEAST_QUEUE_S else None
        self._log.add(block)

    def _of_block(self, line: Line, name: str, value: str) -> None:
        begins = name == "total duration" or (
            name == "prompt eval count" and (self._block is None or self._block.decode_s)
        )
        if begins or self._block is None:
            self.close()
            self._block = Draft(told_by="verbose", line=line.number)
        block = self._block
        if name == "total duration":
            block.total_s = go_seconds(value)
        elif name == "load duration":
            block.load_s = go_seconds(value)
        elif name == "prompt eval duration":
            block.prefill_s = go_seconds(value)
        elif name == "eval duration":
            block.decode_s = go_seconds(value)
        elif name == "prompt eval count":
            block.processed_tokens = block.prompt_tokens = whole(value)
        elif name == "eval count":
            block.output_tokens = whole(value)

    def _access(self, line: Line, found: re.Match[str]) -> None:
        if found[3] != "POST" or not _GENERATES.match(found[4]):
            return
        total_s = go_seconds(found[2])
        if found[1] != "200" or total_s is None or self._is_known(total_s):
            return
        draft = Draft(told_by="access line", line=line.number, end_to_end=True)
        draft.total_s = total_s
        if self._truncated:
            draft.signs["context_cut"] = True
        self._truncated = False
        self._log.add(draft)

    def _is_known(self, total_s: float) -> bool:
        """Whether a child has just told of the same request."""
        last = self._log.last
        if last is None or last is self._claimed or last.end_to_end or last.total_s is None:
            return False
        if not SAME_FRAC * total_s <= last.total_s <= 1.02 * total_s:
            return False
        self._claimed = last
        return True

    def _plan(self, split: re.Match[str]) -> None:
        size = bytes_of(split[1], split[2])
        if size is None:
            return
        self._log.content.learn(n_ctx=whole(split[6]))
        if split[5] == "CPU":
            self._log.content.learn(size_bytes=size, size_vram_bytes=0)
        elif split[5] is None:
            on_card = round(size * min(int(split[4]), 100) / 100)
            self._log.content.learn(size_bytes=size, size_vram_bytes=on_card)


READER = Ollama
