"""Numbers of load generators that cannot be told apart by request, as one summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_type_hints

from twospeed.records.run import LoadSummary
from twospeed.runtimes.fields import LARGEST_WHOLE, LONGEST_S

LONGEST_MS = LONGEST_S * 1e3
_WHOLE = frozenset(name for name, kind in get_type_hints(LoadSummary).items() if kind == int | None)


def summary_of(told: Mapping[str, float | None]) -> LoadSummary | None:
    """The summary with every number that can be one; None where it tells no latency at all.

    Args:
        told: numbers by the names of LoadSummary. A time of 0 was not measured; a count that is
            not whole, or anything negative, is left out.
    """
    kept: dict[str, float] = {}
    for name, number in told.items():
        if number is None or not 0 <= number <= LARGEST_WHOLE:
            continue
        if name in _WHOLE:
            if float(number).is_integer():
                kept[name] = int(number)
        elif 0 < number <= LONGEST_MS and not (name == "duration_s" and number > LONGEST_S):
            kept[name] = float(number)
    if not any(name.endswith("_ms") for name in kept):
        return None
    return LoadSummary(**kept)  # type: ignore[arg-type]
