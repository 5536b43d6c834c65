"""The page of each cause, read from the one file that `twospeed explain` and the documents share.

A page is Markdown of a fixed form: a title with identifier and meaning, the phase, six sections,
and a table of cures. Nothing heavy is imported, so that a page shows at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from pkgutil import get_data
from typing import cast

from twospeed.findings.finding import CAUSES, Cause, SlowPhase

SECTIONS = (
    "What happens",
    "How it is recognised",
    "How sure that is",
    "What cures it",
    "What does not help",
    "Sources",
)
BY_HAND = "by hand"
"""Stands for the name of a cure where a change is not among those that twospeed prices."""
ALIKE = 0.8
"""Similarity from which a misspelt word is taken for an identifier."""
SOMEWHAT_ALIKE = 0.6
"""Similarity from which an identifier is worth suggesting."""
MOST_SUGGESTIONS = 3

_TITLE = re.compile(r"# (?P<cause>\S+): (?P<meaning>.+)\n\nPhase: (?P<phase>\w+)\n")
_SECTION = re.compile(r"^## ([^\n]+)\n\n(.*?)\s*(?=^## |\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CureRow:
    """One change, and how it is made in one place."""

    cure: str
    """Name of the closed list of cures, or "by hand"."""
    where: str
    """Runtime, program or system; "any" for all."""
    how: str
    """Exact flag or setting, as Markdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CausePage:
    """What a cause is, how it is recognised, what cures it and what does not."""

    cause: Cause
    meaning: str
    """What it is, in one line."""
    phase: SlowPhase
    """The phase that it makes slow."""
    sections: dict[str, str]
    """Markdown by title."""
    markdown: str
    """The whole file."""

    @property
    def cures(self) -> tuple[CureRow, ...]:
        """The rows of the table of cures; an empty first cell repeats the one above it."""
        rows: list[CureRow] = []
        for line in self.sections["What cures it"].splitlines()[2:]:
            cure, where, how = (cell.strip() for cell in line.strip("|").split("|"))
            rows.append(CureRow(cure=cure or rows[-1].cure, where=where, how=how))
        return tuple(rows)


def cause_page(cause: Cause) -> CausePage:
    """The page of one cause.

    Raises:
        ValueError: the file has not the form of a page; a test keeps that from happening.
    """
    raw = get_data(__package__, f"pages/{cause}.md")
    text = (raw or b"").decode().replace("\r\n", "\n")
    title = _TITLE.match(text)
    if title is None:
        raise ValueError(f"The page of {cause} has no title and phase.")
    return CausePage(
        cause=cause,
        meaning=title["meaning"],
        phase=cast("SlowPhase", title["phase"]),
        sections=dict(_SECTION.findall(text)),
        markdown=text,
    )


def all_pages() -> tuple[CausePage, ...]:
    """Every page, in the order of the closed list."""
    return tuple(cause_page(cause) for cause in CAUSES)


def family(cause: str) -> str:
    """The part of an identifier before its dot."""
    return cause.partition(".")[0]


def causes_meant(word: str) -> tuple[Cause, ...]:
    """The causes that a word can mean: one for an identifier, several for a family.

    An identifier may be shortened to any beginning of it or of its second part, as long as only
    one cause (or one family) begins so, and misspelt a little. Empty when nothing fits.
    """
    wanted = normalised(word)
    for found in (
        tuple(cause for cause in CAUSES if wanted in (cause, cause.partition(".")[2])),
        tuple(cause for cause in CAUSES if wanted == family(cause)),
    ):
        if found:
            return found
    begun = _beginning(wanted)
    if begun:
        whole = "." not in wanted and len({family(cause) for cause in begun}) == 1
        of_family = whole and all(cause.startswith(wanted) for cause in begun)
        return begun if len(begun) == 1 or of_family else ()
    return _ranked(wanted, least=ALIKE)[:1]


def suggestions(word: str) -> tuple[Cause, ...]:
    """The causes that a word could begin, else those most like it, best first."""
    wanted = normalised(word)
    return (_beginning(wanted) or _ranked(wanted, least=SOMEWHAT_ALIKE))[:MOST_SUGGESTIONS]


def pages_with(cure: str, pages: Iterable[CausePage]) -> tuple[CausePage, ...]:
    """The pages that name a cure."""
    return tuple(page for page in pages if any(row.cure == cure for row in page.cures))


def normalised(word: str) -> str:
    """A word in the form of the identifiers: lower case, no spaces, no hyphens."""
    return re.sub(r"[\s-]+", "_", word.strip().lower())


def _beginning(word: str) -> tuple[Cause, ...]:
    """The causes that begin so, by the whole identifier or by its second part."""
    if not word:
        return ()
    return tuple(
        cause
        for cause in CAUSES
        if cause.startswith(word) or cause.partition(".")[2].startswith(word)
    )


def _ranked(word: str, *, least: float) -> tuple[Cause, ...]:
    likeness = {cause: _likeness(word, cause) for cause in CAUSES}
    ranked = sorted(CAUSES, key=lambda cause: -likeness[cause])
    return tuple(cause for cause in ranked if likeness[cause] >= least)


def _likeness(word: str, cause: Cause) -> float:
    """How alike a word and an identifier, or its second part, are (0 ... 1)."""
    parts = (cause, cause.partition(".")[2])
    return max(SequenceMatcher(None, word, part).ratio() for part in parts)
