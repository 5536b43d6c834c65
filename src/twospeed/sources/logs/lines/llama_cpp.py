"""llama.cpp: timing blocks of all generations, and the slot lines of llama-server around them.

* `llama_print_timings` and `llama_perf_context_print` of one process: `runs` are the tokens after
  the first one, which comes out of the prompt pass; `load time` holds that pass, and is left out.
* llama-server prints the same lines behind `slot ... id N | task N |`, behind `print_timings:`, or
  bare below a slot header; `tokens` (or `runs`) are then all generated ones. Builds before August
  2026 divide by them and newer ones by one less; the clock starts at the first token in both, so
  the steps are one less.
* `prompt eval` counts processed tokens only. The whole prompt is in `new prompt`, or follows from
  what `release` says is in the slot: prompt + generated - 1.
"""

from __future__ import annotations

import re
from typing import Any

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.draft import FEW_TOKENS, Draft
from twospeed.sources.logs.numbers import NUMBER, number, seconds, whole

RUNTIME = "llama-server"
_BETTER_PROMPT = b" - looking for better prompt, base f_keep"
_PREFIX_HIT = b"Llama.generate: prefix-match hit"
MARKS = {
    b"| task ": (b"| task ", b" time =", _BETTER_PROMPT),
    b"eval time": (b" time =", _PREFIX_HIT),
    b"print_timings": (b"slot ", b" in cache:"),
}

_SLOT = re.compile(r"s?lot\s+[\w()]+\s*:\s*id\s+(\d{1,4})\s*\|\s*task\s+(-?\d{1,12})\s*\|\s*")
_TIME = (
    r"(?P<what>prompt eval|generation eval|eval|sample|sampling|load|total)\s+time\s*=\s*"
    rf"(?P<ms>{NUMBER})\s*ms(?:\s*/\s*(?P<n>\d+))?"
)
_TIMED = re.compile(rf"(?:^|(?<!ompt)[\s:|]){_TIME}")
_TIMED_SLOT = re.compile(_TIME)
_PROMPT = re.compile(r"n(?:ew)? prompt,.*?(?:task\.n_tokens|n_prompt_tokens)\s*=\s*(\d+)")
_CONTEXT = re.compile(r"n_ctx_slot\s*=\s*(\d+)")
_KEPT = re.compile(r"(?:memory_seq_rm|kv cache rm)(?:\s*-)?\s*\[\s*(\d+),\s*end\)")
_MATCH = re.compile(r"n_past\s*=\s*(\d+),\s*slot\.prompt\.tokens\.size\(\)\s*=\s*(\d+)")
_SIMILAR = re.compile(r"LCP similarity.*?sim_best\s*=\s*([\d.,]+?)\s*\(.*?f_keep\s*=\s*([\d.,]+)")
_BETTER = re.compile(r"looking for better prompt, base f_keep\s*=\s*([\d.,]+), sim\s*=\s*([\d.,]+)")
_PROGRESS = re.compile(r"prompt processing(?: progress)?,.*?n_(?:tokens|past)\s*=\s*(\d+)")
_WINDOW = re.compile(r"n_gen\s*=\s*(\d+),.*?tg_3s\s*=\s*([\d.,]+)\s*t/s")
_DRAFTED = re.compile(r"draft acceptance.*?\(\s*(\d+)\s+accepted\s*/\s*(\d+)\s+generated")
_RELEASE = re.compile(
    r"stop processing:\s*n_(?:tokens|past)\s*=\s*(\d+)(?:,\s*truncated\s*=\s*(\d))?"
)
_OLD_START = re.compile(r"s?lot\s+(\d{1,4})\s+is processing \[task id: (\d{1,12})\]")
_OLD_CACHE = re.compile(r"s?lot\s+(\d{1,4})\s*:\s*(kv cache rm.*)")
_IN_CACHE = re.compile(r"in cache:\s*(\d+)\s*tokens?\s*\|\s*to process:\s*(\d+)\s*tokens?")
_RELEASED = re.compile(r"s?lot\s+(\d{1,4})\s+released\s*\((\d+) tokens in cache\)")
MOST_WAITING = 256
"""Requests that end without times are remembered up to so many, should their times still come."""
_CLASSIC = re.compile(r"l?lama_p(?:rint_timings|erf)")


class LlamaCpp:
    """Slots by number, and the blocks that belong to none."""

    def __init__(self, log: Collector) -> None:
        self._log = log
        self._open: dict[int, Draft] = {}
        self._by_task: dict[tuple[int, int], Draft] = {}
        self._choice: dict[int, dict[str, Any]] = {}
        self._held: dict[int, int] = {}
        self._header: Draft | None = None
        self._block: Draft | None = None
        self._prefix_hit = False

    def take(self, line: Line) -> bool:
        """Read one line of a slot, of a timing block, or about either."""
        text = line.text
        slot = _SLOT.match(text) if text.find("lot ", 0, 5) >= 0 else None
        if slot is not None:
            return self._slot_line(line, int(slot[1]), int(slot[2]), text[slot.end() :])
        if text[:1] == "{" or "id_slot=" in text:
            return False  # llama_json.py
        if " time" in text and (timed := _TIMED.search(text)) is not None:
            self._timed(line, timed)
            return True
        if "prefix-match hit" in text:
            self._prefix_hit = True
            return True
        return self._old_slot(line) or self._of_cache(text)

    def close(self) -> None:
        """Requests whose end the text does not show are kept as far as they were told."""
        for draft in list(self._open.values()):
            self._finish(draft)
        self._end_block()

    def _slot_line(self, line: Line, slot: int, task: int, said: str) -> bool:
        if task < 0:
            self._choose(slot, said)
            return True
        draft = self._by_task.get((slot, task)) or self._draft(line, slot, task)
        if not said:
            self._header = draft
        elif " time" in said and (timed := _TIMED_SLOT.match(said)) is not None:
            self._time_slot(draft, timed)
        elif said[0] == "s" and (release := _RELEASE.match(said)) is not None:
            self._release(line, draft, release)
        else:
            self._of_prompt(draft, said)
        return True

    def _choose(self, slot: int, said: str) -> None:
        similar = _SIMILAR.search(said)
        if similar is not None:
            self._choice[slot] = {
                "chosen_by": "similarity",
                "similarity_frac": _share(similar[1]),
                "kept_frac": _share(similar[2]),
            }
        elif "by LRU" in said:
            self._choice[slot] = {"chosen_by": "lru"}

    def _draft(self, line: Line, slot: int, task: int) -> Draft:
        """A request that was not heard of before."""
        before = self._open.pop(slot, None)
        if before is not None:
            self._finish(before)
        draft = Draft(told_by="print_timing", line=line.number, slot=slot, task=task)
        draft.began_s = line.at_s
        draft.signs.update(self._choice.pop(slot, {}))
        if slot in self._held:
            draft.signs["held_tokens"] = self._held[slot]
        self._open[slot] = draft
        self._by_task[slot, task] = draft
        if len(self._by_task) > MOST_WAITING:
            del self._by_task[next(iter(self._by_task))]
        return draft

    def _of_prompt(self, draft: Draft, said: str) -> None:
        """What a slot says about its prompt, its cache and its progress."""
        first = said[0]
        if first == "n" and (found := _WINDOW.match(said)) is not None:
            draft.add_window(whole(found[1]), number(found[2]))
        elif first == "p" and (found := _PROGRESS.match(said)) is not None:
            draft.add_step(whole(found[1]))
        elif first == "n" and (found := _PROMPT.match(said)) is not None:
            draft.prompt_tokens = whole(found[1])
            if (context := _CONTEXT.search(said)) is not None:
                self._learn_context(whole(context[1]))
        elif "end)" in said and (found := _KEPT.search(said)) is not None:
            # Said again for every further batch, then with what this request itself put there.
            if draft.cached_tokens is None:
                draft.cached_tokens = whole(found[1])
        else:
            _of_signs(draft, said)

    def _learn_context(self, n_ctx: int | None) -> None:
        """The context of a slot, unless the load told the whole one."""
        if self._log.content.facts.n_ctx is None:
            self._log.content.learn(n_ctx=n_ctx)

    def _of_cache(self, text: str) -> bool:
        """Lines of the server about the slot that was chosen last."""
        found = _BETTER.search(text) if "better prompt" in text else None
        if found is None or not self._choice:
            return text.startswith("srv ")
        last = next(reversed(self._choice))
        self._choice[last] |= {"kept_frac": _share(found[1]), "similarity_frac": _share(found[2])}
        return True

    def _release(self, line: Line, draft: Draft, release: re.Match[str]) -> None:
        held = whole(release[1])
        draft.ended_s, draft.ended_line = line.at_s, line.number
        if release[2] == "1":
            draft.signs["context_cut"] = True
        if held is not None and draft.prompt_tokens is None and draft.output_tokens is not None:
            draft.prompt_tokens = max(held - draft.output_tokens + 1, 0) or None
        prompt, done = draft.prompt_tokens, draft.processed_tokens
        if draft.cached_tokens is None and prompt is not None and done is not None:
            draft.cached_tokens = max(prompt - done, 0)
        if held is not None and draft.slot is not None:
            self._held[draft.slot] = held
        if draft.tells_something:
            self._finish(draft)

    def _time_slot(self, draft: Draft, timed: re.Match[str]) -> None:
        """One timing line of a request of a slot."""
        _fill(draft, timed)
        ended = timed["what"] == "total" and draft.slot is not None
        if ended and self._open.get(draft.slot or 0) is not draft:
            self._finish(draft)  # released before it was timed

    def _timed(self, line: Line, timed: re.Match[str]) -> None:
        """A timing line without a slot: of the last header, or of a block of its own."""
        if self._header is not None and timed["what"] in ("prompt eval", "eval", "total"):
            self._time_slot(self._header, timed)
            if timed["what"] == "total":
                self._header = None
            return
        if len(self._open) == 1 and line.text.startswith("print_timings:"):
            draft = next(iter(self._open.values()))
            if draft.prefill_s is None or timed["what"] != "prompt eval":
                _fill(draft, timed)
                return
        self._in_block(line, timed)

    def _in_block(self, line: Line, timed: re.Match[str]) -> None:
        what, block = timed["what"], self._block
        begins = what in ("load", "sample", "sampling") or what == "prompt eval"
        told = block is not None and (block.prefill_s or block.decode_s) is not None
        if block is None or (begins and told):
            block = self._new_block(line)
        classic = _CLASSIC.search(line.text) is not None
        _fill(block, timed, classic=classic)
        if classic and what == "prompt eval":
            hit, self._prefix_hit = self._prefix_hit, False
            few = (block.processed_tokens or 0) <= FEW_TOKENS
            block.prompt_tokens = None if hit or few else block.processed_tokens
        if what == "total":
            self._end_block()

    def _new_block(self, line: Line) -> Draft:
        self._end_block()
        self._block = Draft(told_by="print_timings", line=line.number)
        return self._block

    def _end_block(self) -> None:
        block, self._block = self._block, None
        if block is not None and (block.prefill_s or block.decode_s):
            self._log.add(block)

    def _old_slot(self, line: Line) -> bool:
        """The slot lines of 2023."""
        text = line.text
        if (found := _OLD_START.match(text)) is not None:
            slot, task = int(found[1]), int(found[2])
            if (slot, task) not in self._by_task:
                self._draft(line, slot, task)
        elif (found := _OLD_CACHE.match(text)) is not None:
            draft, kept = self._open.get(int(found[1])), _KEPT.search(found[2])
            if draft is not None and kept is not None:
                draft.cached_tokens = whole(kept[1])
        elif (found := _IN_CACHE.search(text)) is not None:
            for draft in self._open.values():
                draft.cached_tokens, draft.processed_tokens = whole(found[1]), whole(found[2])
        elif (found := _RELEASED.match(text)) is not None:
            draft = self._open.get(int(found[1]))
            self._held[int(found[1])] = whole(found[2]) or 0
            if draft is not None:
                self._finish(draft)
        else:
            return False
        return True

    def _finish(self, draft: Draft) -> None:
        """Hand a request over; released before its times, it stays known by its task."""
        slot = draft.slot
        if slot is not None and self._open.get(slot) is draft:
            del self._open[slot]
        if draft is self._header:
            return
        if draft.tells_something:
            if slot is not None and draft.task is not None:
                self._by_task.pop((slot, draft.task), None)
            self._log.content.runtime = self._log.content.runtime or RUNTIME
            self._log.add(draft)


def _of_signs(draft: Draft, said: str) -> None:
    """What a slot says beside lengths and times."""
    if "n_past" in said and (found := _MATCH.search(said)) is not None:
        draft.signs |= {"matched_tokens": whole(found[1]), "held_tokens": whole(found[2])}
    elif "draft" in said and (found := _DRAFTED.search(said)) is not None:
        draft.signs |= {"accepted_tokens": whole(found[1]), "drafted_tokens": whole(found[2])}
    elif "forcing full prompt re-processing" in said:
        draft.signs["cannot_rewind"] = True
    elif "context shift" in said:
        draft.signs["context_cut"] = True


def _fill(draft: Draft, timed: re.Match[str], *, classic: bool = False) -> None:
    """Put one timing line into the request.

    Args:
        draft: the request.
        timed: what, milliseconds and count of the line.
        classic: counts of `eval` are the steps after the first token.
    """
    what, milliseconds, counted = timed.groups()
    time_s, count = seconds(milliseconds, 1e3), whole(counted)
    if what == "prompt eval":
        draft.prefill_s, draft.processed_tokens = time_s, count
    elif what in ("eval", "generation eval"):
        draft.decode_s = time_s
        draft.output_tokens = count + 1 if classic and count is not None else count
        draft.decode_steps = count if classic else None
    elif what == "total":
        draft.total_s = time_s
    elif what != "load" and time_s is not None:
        draft.signs["sampling_s"] = time_s


def _share(text: str) -> float | None:
    value = number(text)
    return min(value, 1.0) if value is not None else None


READER = LlamaCpp
