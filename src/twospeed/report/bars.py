"""Bars and small curves made of characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from rich.text import Text

GOAL_MARK = "┃"
REST = "·"
HEIGHTS = "▁▂▃▄▅▆▇█"

_ASCII = str.maketrans(
    {
        **dict(zip(HEIGHTS, "_.-:=+*#", strict=True)),
        "▒": "%",
        "░": "~",
        "▓": "=",
        "╌": "-",
        GOAL_MARK: "|",
        REST: ".",
        "…": "~",
        "·": ".",
        "—": "-",
    }
)


class Slice(NamedTuple):
    """One part of a bar."""

    amount: float
    glyph: str
    style: str


def bar(slices: Sequence[Slice], *, goal: float, width: int) -> Text:
    """A bar of slices with the goal marked; it ends at the larger of both, or a little after.

    Args:
        slices: from left to right; amounts below 0 are left out.
        goal: where the mark stands, in the same unit.
        width: in terminal cells.
    """
    amounts = [max(piece.amount, 0.0) for piece in slices]
    full = max(sum(amounts), goal) * 1.04
    if full <= 0.0:
        return Text(REST * width, style="dim")
    ends = [round(total / full * width) for total in accumulate(amounts)]
    cells = Text()
    for piece, start, end in zip(slices, [0, *ends], ends, strict=False):
        cells.append(piece.glyph * (end - start), style=piece.style)
    cells.append(REST * (width - len(cells)), style="dim")
    mark = min(round(goal / full * width), width - 1)
    return Text.assemble(cells[:mark], (GOAL_MARK, "bold"), cells[mark + 1 :])


def sparkline(values: Sequence[float]) -> str:
    """Values as heights from 0 to the largest."""
    top = max(values, default=0.0)
    if top <= 0.0:
        return HEIGHTS[0] * len(values)
    steps = len(HEIGHTS) - 1
    return "".join(HEIGHTS[round(max(value, 0.0) / top * steps)] for value in values)


def in_ascii(text: str) -> str:
    """The same picture in ASCII, for terminals without UTF-8."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
