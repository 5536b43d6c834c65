"""One live line on the terminal while something takes longer than a moment.

Drawing must not disturb what is being timed: one short write, four times a second at most, and
none at all while a stream is arriving faster than that.
"""

from __future__ import annotations

import shutil
import sys
import time
from textwrap import fill
from typing import TextIO

ERASE_LINE = "\r\x1b[K"
MIN_INTERVAL_S = 0.25
COLUMNS = 80


class Progress:
    """A line that is overwritten, and notes that stay. Silent when stderr is no terminal."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._live = not quiet and self._stream.isatty()
        self._quiet = quiet
        self._drawn_at = 0.0
        self._line_is_open = False

    def show(self, text: str, *, force: bool = False) -> None:
        """Replace the live line, unless it was replaced a moment ago."""
        now = time.monotonic()
        if not self._live or (not force and now - self._drawn_at < MIN_INTERVAL_S):
            return
        self._drawn_at = now
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"{ERASE_LINE}{printable(text)[:width]}")
        self._stream.flush()
        self._line_is_open = True

    def note(self, text: str) -> None:
        """Write something that stays, such as what is about to be sent."""
        if self._quiet:
            return
        self.clear()
        lines = fill(printable(text), COLUMNS, break_long_words=False, break_on_hyphens=False)
        self._stream.write(f"{lines}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Remove the live line."""
        if self._line_is_open:
            self._stream.write(ERASE_LINE)
            self._stream.flush()
            self._line_is_open = False


def printable(text: str) -> str:
    """The text without control characters: names come from servers and may hold escapes."""
    return "".join(char if char.isprintable() else "?" for char in text)
