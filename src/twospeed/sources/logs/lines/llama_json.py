"""llama-server of early 2024: one JSON object a line; and the text form of that logger.

Every number stands twice, in `msg` and as a member; the members are read. The text form
(`INFO [ print_timings] prompt eval time = ... | tid=... id_slot=0 ...`) names them likewise.
"""

from __future__ import annotations

import re

import msgspec

from twospeed.runtimes.fields import number, text, whole
from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.draft import Draft

RUNTIME = "llama-server"
MARKS = {b"print_timings": (b"print_timings]", b'"function":')}

_MEMBER = re.compile(r"\b(\w+)=\"?([\d.]+)")
_KEPT = re.compile(r"kv cache rm")


class LlamaJson:
    """Requests by slot and task."""

    def __init__(self, log: Collector) -> None:
        self._log = log
        self._open: dict[tuple[object, object], Draft] = {}

    def take(self, line: Line) -> bool:
        """Read one object, or one line of the text form."""
        if line.text.startswith('{"function":') or line.text.startswith('{"tid":'):
            try:
                told = msgspec.json.decode(line.text)
            except (msgspec.DecodeError, RecursionError):
                return False
        elif "print_timings]" in line.text and "id_slot=" in line.text:
            told = {name: float(value) for name, value in _MEMBER.findall(line.text)
                    if value.count(".") <= 1 and value != "."}  # fmt: skip
        else:
            return False
        return isinstance(told, dict) and self._told(line, told)

    def close(self) -> None:
        """Hand over what has no end."""
        for draft in self._open.values():
            self._add(draft)
        self._open.clear()

    def _told(self, line: Line, told: dict[str, object]) -> bool:
        key = (told.get("id_slot", told.get("slot_id")), told.get("id_task", told.get("task_id")))
        if key == (None, None):
            return "function" in told
        draft = self._open.get(key)
        begins = "t_prompt_processing" in told and "t_token_generation" not in told
        if draft is not None and begins and draft.prefill_s is not None:
            self._add(self._open.pop(key))
            draft = None
        if draft is None:
            draft = self._open[key] = Draft(told_by="print_timings", line=line.number)
        if _KEPT.search(text(told, "msg") or ""):
            draft.cached_tokens = whole(told, "p0")
        if begins:
            draft.prefill_s = _seconds(told, "t_prompt_processing")
            draft.processed_tokens = _count(told, "n_prompt_tokens_processed")
        elif "n_decoded" in told:
            draft.decode_s = _seconds(told, "t_token_generation")
            draft.output_tokens = _count(told, "n_decoded")
        if "t_total" in told:
            draft.total_s = _seconds(told, "t_total")
            self._add(self._open.pop(key))
        return True

    def _add(self, draft: Draft) -> None:
        if draft.tells_something:
            self._log.content.runtime = self._log.content.runtime or RUNTIME
        self._log.add(draft)


def _seconds(told: dict[str, object], name: str) -> float | None:
    value = number(told, name)
    return value / 1e3 if value is not None and 0 < value < 1e12 else None


def _count(told: dict[str, object], name: str) -> int | None:
    value = number(told, name)
    return int(value) if value is not None and 0 <= value < 1e12 else None


READER = LlamaJson
