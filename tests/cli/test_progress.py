"""The live line, drawn on a terminal that only remembers."""

from __future__ import annotations

from io import StringIO

import pytest

from twospeed.cli.terminal.progress import Progress

ERASE = "\r\x1b[K"


class Terminal(StringIO):
    """Keeps what was written, and how often."""

    def __init__(self, *, live: bool = True) -> None:
        super().__init__()
        self.live = live
        self.flushes = 0

    def isatty(self) -> bool:
        return self.live

    def flush(self) -> None:
        self.flushes += 1


@pytest.fixture(autouse=True)
def _width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")


def test_line_replaces_the_one_before_and_goes_away():
    terminal = Terminal()
    progress = Progress(terminal)
    progress.show("one")
    progress.show("two", force=True)
    progress.note("stays")
    progress.clear()
    assert terminal.getvalue() == f"{ERASE}one{ERASE}two{ERASE}stays\n"


def test_drawing_is_rare_unless_forced():
    terminal = Terminal()
    progress = Progress(terminal)
    for number in range(1000):
        progress.show(str(number))
    assert terminal.getvalue().startswith(f"{ERASE}0")
    assert terminal.flushes < 100


def test_line_never_wraps_and_holds_no_escape():
    terminal = Terminal()
    Progress(terminal).show("\x1b[2J\r\n\u202e" + "x" * 100)
    assert terminal.getvalue() == ERASE + "?[2J???" + "x" * 32


def test_elsewhere_only_notes_are_written():
    log = Terminal(live=False)
    progress = Progress(log)
    progress.show("one", force=True)
    progress.note("stays\x1b]0;title\x07")
    progress.clear()
    assert log.getvalue() == "stays?]0;title?\n"


def test_quiet_is_silent_even_on_a_terminal():
    terminal = Terminal()
    progress = Progress(terminal, quiet=True)
    progress.show("one", force=True)
    progress.note("two")
    progress.clear()
    assert terminal.getvalue() == ""
