"""Puts the lines of a small text in their order: newest first turned round, wrapped ones joined."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from twospeed.sources.logs.cleaning import cleaned
from twospeed.sources.logs.collector import Line

_KIND = re.compile(
    r"(prompt eval|\beval|total)\s+time\s*=|stop processing|processing task|new prompt,"
)
_RANK = {"processing task": 0, "new prompt,": 1, "prompt eval": 2, "eval": 3, "total": 4,
         "stop processing": 5}  # fmt: skip
_OWN_RECORD = re.compile(r"\stime\s*=|^\s*(?:>\s*)?s?lot\s|:\s")
MOST_JOINED = 12


def arranged(text: str) -> list[Line]:
    """The lines of a text that is wholly there, as its program wrote them."""
    lines = _joined([*_numbered(text)])
    return lines[::-1] if _is_reversed(lines) else lines


def _numbered(text: str) -> list[tuple[str, int]]:
    return [(raw, number) for number, raw in enumerate(text.split("\n"), start=1)]


def _joined(raws: Sequence[tuple[str, int]]) -> list[Line]:
    """One line for each record: a line that goes on indented belongs to the one before."""
    lines: list[Line] = []
    open_until = 0
    before = ""
    for raw, number in raws:
        text, clock = cleaned(raw)
        goes_on = (
            lines
            and before.endswith((" ", ","))
            and raw.startswith("  ")
            and not _OWN_RECORD.search("".join(raw.partition("=")[:2])[:40])
            and open_until < MOST_JOINED
        )
        if goes_on:
            lines[-1] = Line(f"{lines[-1].text} {text}", lines[-1].number, lines[-1].clock)
            open_until += 1
        else:
            lines.append(Line(text, number, clock))
            open_until = 0
        before = raw.rstrip("\r")
    return lines


def _is_reversed(lines: Sequence[Line]) -> bool:
    """Whether the stages of requests run backwards."""
    found = (_KIND.search(line.text) for line in lines)
    ranks = [_RANK[hit[1] or hit[0]] for hit in found if hit is not None]
    down = sum(one > two for one, two in pairwise(ranks))
    up = sum(one < two for one, two in pairwise(ranks))
    return down > up
