"""koboldcpp, all generations: one line (until 2024 two) for each request.

`CtxLimit:A/B`: A is the whole prompt and the answer, B the limit; with A = B the front was cut off.
`Process` covers new tokens only; `Total (T/s)` is end to end and not used. `Generating (513 / 512)`
shows the target, not the count.
"""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.draft import Draft
from twospeed.sources.logs.numbers import NUMBER, number, seconds, whole

RUNTIME = "koboldcpp"
MARKS = {b", Generat": (b"Process", b"Total:")}

_NUMBER = NUMBER
_LIMIT = re.compile(r"(?:CtxLimit|ContextLimit):\s*(\d{1,12})/(\d{1,12})\b")
_AMOUNT = re.compile(r"Amt:(\d+)/\d+")
_PREFILL = re.compile(
    rf"Process(?:ing)?:\s*({_NUMBER})s(?: \((?:({_NUMBER})ms/T)?(?: = )?(?:({_NUMBER})T/s)?\))?"
)
_DECODE = re.compile(
    rf"Generat(?:e|ion):\s*({_NUMBER})s(?: \((?:({_NUMBER})ms/T)?(?: = )?(?:({_NUMBER})T/s)?\))?"
)
_TOTAL = re.compile(rf"Total:\s*({_NUMBER})s")
_READ = re.compile(r"Processing Prompt(?: \[\w+\])? \((\d+) / (\d+) tokens\)")
SURE_FRAC = 0.004
"""Below this, time times speed counts tokens to within half a token of a hundred."""


class Koboldcpp:
    """The newest request, whose total may follow on the next line."""

    def __init__(self, log: Collector) -> None:
        self._log = log
        self._waits: Draft | None = None
        self._read_tokens: int | None = None

    def take(self, line: Line) -> bool:
        """Read one line."""
        text = line.text
        prefill, decode = _PREFILL.search(text), _DECODE.search(text)
        if prefill is not None and decode is not None:
            self.close()
            self._waits = self._draft(line, prefill, decode)
        elif self._waits is not None and text.startswith("Total:"):
            pass
        elif reads := _READ.findall(text):
            self._read_tokens = whole(reads[-1][1])
            return True
        else:
            return text.startswith("Generating (")
        total = _TOTAL.search(text)
        if total is not None and self._waits is not None:
            self._waits.total_s = seconds(total[1])
            self.close()
        return True

    def close(self) -> None:
        """Hand over the request."""
        if self._waits is not None:
            self._log.content.runtime = self._log.content.runtime or RUNTIME
            self._log.add(self._waits)
        self._waits = None

    def _draft(self, line: Line, prefill: re.Match[str], decode: re.Match[str]) -> Draft:
        draft = Draft(told_by="koboldcpp", line=line.number)
        draft.prefill_s, draft.decode_s = seconds(prefill[1]), seconds(decode[1])
        amount = _AMOUNT.search(line.text)
        draft.output_tokens = whole(amount[1]) if amount else _tokens(decode)
        draft.decode_steps = draft.output_tokens
        limit = _LIMIT.search(line.text)
        if limit is not None:
            used, most = int(limit[1]), int(limit[2])
            self._log.content.learn(n_ctx=most)
            if draft.output_tokens is not None and used > draft.output_tokens:
                draft.prompt_tokens = used - draft.output_tokens
            if used >= most:
                draft.signs["context_cut"] = True
        self._part(draft, _tokens(prefill))
        return draft

    def _part(self, draft: Draft, about: int | None) -> None:
        """New and cached tokens: counted by the line before, else by time and speed."""
        read, self._read_tokens = self._read_tokens, None
        prompt = draft.prompt_tokens
        if read is not None and (about is None or abs(read - about) <= max(2, 0.1 * read)):
            draft.processed_tokens = read
        elif about is not None:
            near = prompt is not None and abs(prompt - about) <= max(2, SURE_FRAC * prompt)
            draft.processed_tokens = prompt if near else about
        if (
            prompt is not None
            and draft.processed_tokens is not None
            and (read is not None or draft.processed_tokens == prompt)
        ):
            draft.cached_tokens = max(prompt - draft.processed_tokens, 0)


def _tokens(timed: re.Match[str]) -> int | None:
    """Tokens of a phase, from its time and either speed."""
    time_s, ms, speed = seconds(timed[1]), number(timed[2]), number(timed[3])
    if time_s is None:
        return None
    if speed:
        return round(time_s * speed)
    return round(time_s * 1e3 / ms) if ms else None


READER = Koboldcpp
