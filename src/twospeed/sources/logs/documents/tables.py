"""Rows of pipe tables and of CSV, by the names of their columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import NamedTuple

_MARKS = " \t*`<-"
"""What people put around a line that they point at; the last dashes of a rule do not matter."""
_BOX = str.maketrans("│┃║", "|||")
MOST_COLUMNS = 128
LONGEST_LINE = 16_384


class TableRow(NamedTuple):
    """Cells of one row by column name in lower case, and its line counted from 1."""

    cells: dict[str, str]
    line: int


def pipe_rows(text: str, *needed: str) -> Iterator[TableRow]:
    """Rows of every pipe table whose header has all `needed` names.

    Lines of other programs between the rows are stepped over; a row has as many cells as the
    header, or an empty one more.
    """
    header: list[str] = []
    for line, cells in _pipe_lines(text):
        names = [cell.casefold() for cell in cells]
        if _names_all(needed, names):
            header = names
        elif header and not _is_rule(cells) and _fits(cells, header):
            yield TableRow(dict(zip(header, cells, strict=False)), line)


def csv_rows(text: str, *needed: str) -> Iterator[TableRow]:
    """Rows of every CSV table whose header has all `needed` names.

    Where a row has more values than the header has names (llama-bench of 2023 forgot one), the
    last columns are aligned.
    """
    header: list[str] = []
    for line, raw in enumerate(text.split("\n"), start=1):
        if raw.count(",") == 0 or len(raw) > LONGEST_LINE:
            header = [] if header and not raw.strip() else header
            continue
        cells = _csv_cells(raw)
        names = [cell.casefold() for cell in cells]
        if _names_all(needed, names):
            header = names
        elif header and len(header) <= len(cells) <= len(header) + 2:
            yield TableRow(dict(zip(header, cells[-len(header) :], strict=False)), line)


def _names_all(needed: tuple[str, ...], names: list[str]) -> bool:
    """Whether a row is the header; its first name may have lost its first letter in the paste."""
    missing = sorted(set(needed) - set(names))
    if len(missing) == 1 and names and missing[0][1:] == names[0]:
        names[0] = missing[0]
        return True
    return not missing


def _pipe_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for line, raw in enumerate(text.translate(_BOX).split("\n"), start=1):
        if "|" in raw and len(raw) <= LONGEST_LINE:
            cells = [cell.strip(" \t*`") for cell in raw.strip(_MARKS).strip("|").split("|")]
            if 1 < len(cells) <= MOST_COLUMNS:
                yield line, cells


def _is_rule(cells: list[str]) -> bool:
    return set("".join(cells)) <= set("-:+=━─ ")


def _fits(cells: list[str], header: list[str]) -> bool:
    return len(cells) == len(header) or (len(cells) == len(header) + 1 and not cells[-1])


def _csv_cells(raw: str) -> list[str]:
    try:
        rows = list(csv.reader([raw.strip(" \t*`<")], skipinitialspace=True))
    except csv.Error:
        return []
    return [cell.strip() for cell in rows[0][:MOST_COLUMNS]] if rows else []
