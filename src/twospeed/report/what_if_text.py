"""The table of scenarios, and the local machine beside another, for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twospeed.cures.elsewhere import Elsewhere, Faster, Line, Shape
from twospeed.cures.scenario import Priced
from twospeed.fits.interval import Interval
from twospeed.report.numbers import UNKNOWN, rate, seconds, seconds_range, tokens
from twospeed.report.plain import plain

NOW = "now"
LONGEST_CHANGE = 27
WAIT_WIDTH = 10
LONGEST_TOTAL = 24
MANY = 1000
"""Requests whose price is told: one costs next to nothing."""
FASTER_TEXT: dict[Faster, str] = {
    "here": "faster here",
    "there": "faster there",
    "too close to tell": "too close to tell",
    "unknown": UNKNOWN,
}
_OTHER: dict[Faster, str] = {"here": "there", "there": "here"}


def table_head() -> tuple[str, ...]:
    """Names of the columns."""
    return ("what if", "wait", "stream", "whole request")


def table_row(priced: Priced) -> tuple[str, str, str, str]:
    """Cells of one row: likely values, and the range of the whole request."""
    total = seconds(priced.total_s.likely) if priced.total_s else UNKNOWN
    if priced.total_s is not None and priced.change:
        ranged = f"{total} ({seconds_range(priced.total_s)})"
        narrow = seconds_range(priced.total_s) == total
        total = total if narrow or len(ranged) > LONGEST_TOTAL else ranged
    return (
        priced.change or NOW,
        seconds(priced.wait_s.likely) if priced.wait_s else UNKNOWN,
        f"{rate(priced.stream_tps.likely)} tok/s" if priced.stream_tps else UNKNOWN,
        f"needs {priced.needs}" if priced.needs else total,
    )


def text_rows(rows: Sequence[Priced], most: int) -> Iterator[str]:
    """Lines of the table: the request as it is and as many scenarios as there is room for."""
    for priced in rows[: most + 1]:
        change, wait, stream, total = (plain(cell) for cell in table_row(priced))
        shown = change if len(change) <= LONGEST_CHANGE else f"{change[: LONGEST_CHANGE - 1]}…"
        if priced.needs:
            yield f"{shown:<{LONGEST_CHANGE}} {total}"
        else:
            yield f"{shown:<{LONGEST_CHANGE}} {wait:>{WAIT_WIDTH}} {stream:>11}  {total}"


def elsewhere_lines(found: Elsewhere) -> list[str]:
    """Who is faster at the workload's request, and where that changes."""
    request = found.request
    here = seconds(request.here_s.likely) if request.here_s else UNKNOWN
    lines = [f"{here} here, {seconds(request.there_s)} there: {FASTER_TEXT[request.faster]}"]
    if request.faster == "unknown":
        return lines
    beside = f"with {tokens(request.output_tokens)} out"
    lines.append(_line_text(found.prompt_line, "in", beside))
    beside = f"with {tokens(request.prompt_tokens)} in"
    lines.append(_line_text(found.output_line, "out", beside))
    return [*lines, *_money(request)]


def _line_text(line: Line, what: str, beside: str) -> str:
    side = FASTER_TEXT[line.below]
    if line.at_tokens is None:
        return f"{side} for any number of tokens {what} ({beside})"
    at, other = tokens(line.at_tokens), _OTHER.get(line.below, UNKNOWN)
    return f"{side} up to {at} tokens {what} ({beside}), {other} beyond"


def _money(request: Shape) -> list[str]:
    prices = ((request.here_price, "here"), (request.there_price, "there"))
    parts = [f"{MANY * price:,.3g} {where}" for price, where in prices if price is not None]
    return [f"{MANY:,} such requests cost {' and '.join(parts)}"] if parts else []


def shape_cells(shape: Shape) -> tuple[str, str, str, str, str]:
    """One request of the table of shapes."""
    here = "" if shape.here_s is None else _spread(shape.here_s)
    return (
        tokens(shape.prompt_tokens),
        tokens(shape.output_tokens),
        here or UNKNOWN,
        seconds(shape.there_s),
        shape.faster,
    )


def _spread(found: Interval) -> str:
    return f"{seconds(found.likely)} ({seconds_range(found)})"
