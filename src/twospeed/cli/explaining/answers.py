"""From the words of `twospeed explain` to pages, lists and their three forms."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twospeed.cli.terminal.abilities import shows_colour
from twospeed.findings.cause_page import (
    BY_HAND,
    CausePage,
    all_pages,
    cause_page,
    causes_meant,
    normalised,
    pages_with,
    suggestions,
)
from twospeed.findings.finding import CAUSES
from twospeed.records.errors import UsageError
from twospeed.report.cause_text import render_cures, render_list, render_page

SCHEMA = "twospeed.explanation/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What goes to stdout, and what to stderr beside it."""

    text: str
    notes: tuple[str, ...] = ()


def answer(words: Sequence[str], args: Namespace) -> Said:
    """What the words ask for: the list, pages, a family, or the causes of a change.

    Raises:
        UsageError: a word names no cause; the message suggests some.
    """
    if not words:
        return Said(text=_listed(all_pages(), args))
    if (cures := cures_meant(words)) is not None:
        return Said(text=_by_cure(cures, args))
    pages: dict[str, CausePage] = {}
    notes = []
    whole_family = False
    for word in words:
        found = causes_meant(word)
        if not found:
            raise _unknown(word)
        whole_family |= len(found) > 1
        if len(found) == 1 and normalised(word) not in found[0]:
            notes.append(f"{word}: showing {found[0]}.")
        pages |= {cause: cause_page(cause) for cause in found}
    shown = tuple(pages.values())
    text = _listed(shown, args) if whole_family else _paged(shown, args)
    return Said(text=text, notes=tuple(notes))


def cures_meant(words: Sequence[str]) -> tuple[str, ...] | None:
    """The changes that the words name together, all of them for "cures"; None when they do not."""
    wanted = " ".join(words).lower()
    named = dict.fromkeys(row.cure for page in all_pages() for row in page.cures)
    named.pop(BY_HAND, None)
    if wanted == "cures":
        return tuple(sorted(named))
    fitting = [cure for cure in named if cure.lower() == wanted]
    return tuple(fitting) or None


def explained(page: CausePage) -> dict[str, Any]:
    """One page as the members of a JSON object; sections are Markdown."""
    return {
        "cause": page.cause,
        "phase": page.phase,
        "meaning": page.meaning,
        "sections": page.sections,
        "cures": [{"cure": row.cure, "where": row.where, "how": row.how} for row in page.cures],
    }


def _paged(pages: Sequence[CausePage], args: Namespace) -> str:
    if args.json:
        shown = [explained(page) for page in pages]
        return _json(shown[0] if len(shown) == 1 else {"causes": shown})
    if args.markdown:
        return "\n".join(page.markdown for page in pages)
    colour = shows_colour(no_color=args.no_color)
    return "\n".join(render_page(page, colour=colour) for page in pages)


def _listed(pages: Sequence[CausePage], args: Namespace) -> str:
    if args.json:
        return _json({"causes": [_short(page) for page in pages]})
    if args.markdown:
        return "".join(f"* `{page.cause}`: {page.meaning}\n" for page in pages)
    return render_list(pages, colour=shows_colour(no_color=args.no_color))


def _by_cure(cures: Sequence[str], args: Namespace) -> str:
    pages = all_pages()
    if args.json:
        acting = [
            {"cure": cure, "causes": [_short(page) for page in pages_with(cure, pages)]}
            for cure in cures
        ]
        return _json({"cures": acting})
    if args.markdown:
        lines = (
            f"* {cure}: " + ", ".join(f"`{page.cause}`" for page in pages_with(cure, pages)) + "\n"
            for cure in cures
        )
        return "".join(lines)
    return render_cures(pages, cures, colour=shows_colour(no_color=args.no_color))


def _short(page: CausePage) -> dict[str, str]:
    return {"cause": page.cause, "phase": page.phase, "meaning": page.meaning}


def _json(members: dict[str, Any]) -> str:
    return json.dumps({"schema": SCHEMA, **members}, indent=2) + "\n"


def _unknown(word: str) -> UsageError:
    alike = suggestions(word)
    if alike:
        hint = f"Did you mean {' or '.join(alike)}?"
    else:
        hint = f"twospeed explain lists all {len(CAUSES)}."
    return UsageError(f'No cause is called "{word}".', hint=hint)
