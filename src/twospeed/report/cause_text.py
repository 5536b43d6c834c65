"""Pages of causes for a terminal: the small part of Markdown that they use, in 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from twospeed.findings.cause_page import CausePage, CureRow, family, pages_with

WIDTH = 80
INDENT = "  "
CAUSE_CELLS = 31
"""Columns of an identifier in a list, with the gap behind it."""
WHERE_CELLS = 14

_BOLD, _CODE, _DIM, _END = "\x1b[1m", "\x1b[36m", "\x1b[2m", "\x1b[0m"
_LINK = re.compile(r"\[([^\]]*)\]\([^)\s]+\)|<([a-z]+://[^>]+)>")
_MARK = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*")
_WORD = re.compile(r"(?:`[^`]+`|\S)+")
"""A piece of code is one word, so that a command can be copied."""
_ITEM = re.compile(r"^\* ", re.MULTILINE)


def render_page(page: CausePage, *, colour: bool) -> str:
    """One page as terminal text, ending with a newline."""
    blocks = [
        _styled(f"**{page.cause}**: {page.meaning}", colour=colour),
        _dimmed(f"Phase: {page.phase}", colour=colour),
    ]
    for title, text in page.sections.items():
        blocks.append(_styled(f"**{title}**", colour=colour))
        body = _cures(page.cures) if title == "What cures it" else _prose(text)
        blocks[-1] += "\n" + _styled(body, colour=colour)
    return "\n\n".join(blocks) + "\n"


def render_list(pages: Sequence[CausePage], *, colour: bool) -> str:
    """Identifiers and meanings, a group for each family."""
    groups = []
    for _, members in groupby(pages, key=lambda page: family(page.cause)):
        groups.append("\n".join(map(_in_a_list, members)))
    hint = _dimmed("twospeed explain CAUSE shows one of them.", colour=colour)
    return "\n\n".join([*groups, hint]) + "\n"


def render_cures(pages: Sequence[CausePage], cures: Iterable[str], *, colour: bool) -> str:
    """For each change, the causes whose pages name it."""
    blocks = []
    for cure in cures:
        lines = [f"**{cure}**", *map(_in_a_list, pages_with(cure, pages))]
        blocks.append(_styled("\n".join(lines), colour=colour))
    return "\n\n".join(blocks) + "\n"


def _in_a_list(page: CausePage) -> str:
    return f"{INDENT}{page.cause:<{CAUSE_CELLS}}{page.meaning}"


def _prose(text: str) -> str:
    """Paragraphs and lists, filled; an item's later lines hang under its first."""
    filled = []
    for paragraph in _LINK.sub(lambda link: link[1] or link[2], text).split("\n\n"):
        first, *items = _ITEM.split(paragraph)
        parts = [_filled(first, INDENT, INDENT)] if first.strip() else []
        parts += [_filled(item, f"{INDENT}* ", f"{INDENT}  ") for item in items]
        filled.append("\n".join(parts))
    return "\n\n".join(filled)


def _cures(rows: Iterable[CureRow]) -> str:
    lines = []
    for cure, members in groupby(rows, key=lambda row: row.cure):
        lines.append(f"{INDENT}**{cure}**")
        margin = INDENT * 2
        for row in members:
            where = f"{margin}{row.where:<{WHERE_CELLS}} "
            lines.append(_filled(row.how, where, " " * (len(margin) + WHERE_CELLS + 1)))
    return "\n".join(lines)


def _filled(text: str, first: str, rest: str) -> str:
    """Words in lines of at most WIDTH columns; marks take no room."""
    lines, line = [], first
    for word in _WORD.findall(" ".join(text.split())):
        gap = "" if line in (first, rest) else " "
        if gap and len(_bare(line)) + 1 + len(_bare(word)) > WIDTH:
            lines.append(line)
            line, gap = rest, ""
        line += gap + word
    return "\n".join([*lines, line])


def _bare(text: str) -> str:
    return text.replace("`", "").replace("**", "")


def _styled(text: str, *, colour: bool) -> str:
    """Code and strong words in colour, or without their marks."""
    if not colour:
        return _MARK.sub(lambda mark: mark[1] or mark[2], text)
    return _MARK.sub(
        lambda mark: f"{_CODE}{mark[1]}{_END}" if mark[1] else f"{_BOLD}{mark[2]}{_END}", text
    )


def _dimmed(text: str, *, colour: bool) -> str:
    return f"{_DIM}{text}{_END}" if colour else text
