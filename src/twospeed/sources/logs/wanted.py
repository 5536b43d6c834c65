"""The part of a text that is asked for: by words, or by time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from twospeed.records.errors import UsageError

_STAMP = re.compile(r"\d{4}[-/]\d\d[-/]\d\d(?: - |[T ])\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which lines are read."""

    grep: re.Pattern[str] | None = None
    since: str | None = None
    """ISO time; lines before it are passed over."""


class Choice:
    """Chooses among the lines of one text, in their order."""

    def __init__(self, wanted: Wanted | None) -> None:
        self._grep = wanted.grep if wanted else None
        self._since = wanted.since if wanted else None
        self._told = ""
        self.everything = self._grep is None and self._since is None

    def takes(self, raw: str) -> bool:
        """Whether a line is to be read; one without a time is as late as the last that had one."""
        if self._since is not None:
            stamp = _STAMP.search(raw)
            if stamp is not None:
                self._told = stamp[0].replace("/", "-").replace(" - ", "T").replace(" ", "T")
            if self._told < self._since:
                return False
        return self._grep is None or self._grep.search(raw) is not None

    def part_of(self, text: str) -> str:
        """The text with every other line emptied, so that the numbers of lines stay."""
        if self.everything:
            return text
        return "\n".join(raw if self.takes(raw) else "" for raw in text.split("\n"))

    def check(self, where: str) -> None:
        """Complain when a time was asked for and none was seen.

        Raises:
            UsageError: no line carried a date.
        """
        if self._since is not None and not self._told:
            raise UsageError(
                f"--since: no line of {where} carries a date and time.",
                hint="Choose the lines with --grep, or cut the file.",
            )
