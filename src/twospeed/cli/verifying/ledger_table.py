"""How often predictions held, by change."""

from __future__ import annotations

from collections.abc import Sequence

from twospeed.records.json_text import encoded
from twospeed.records.ledger import Outcome
from twospeed.report.numbers import seconds
from twospeed.report.plain import plain

_COLUMNS = "  {:<36} {:>7} {:>5} {:>7} {:>9}"
EMPTY = "No prediction was checked yet: twospeed verify --before FILE URL --cure NAME.\n"


def ledger_table(outcomes: Sequence[Outcome], *, as_json: bool) -> str:
    """The ledger as a table, or as one JSON object.

    Args:
        outcomes: oldest first.
        as_json: `{"schema": "twospeed.ledger/1", "cures": […], "outcomes": […]}`.
    """
    rows = [_row(cure, outcomes) for cure in sorted({one.cure for one in outcomes})]
    if as_json:
        document = {"schema": "twospeed.ledger/1", "cures": rows, "outcomes": list(outcomes)}
        return encoded(document).decode() + "\n"
    if not rows:
        return EMPTY
    lines = [_COLUMNS.format("change", "checked", "held", "did not", "open")]
    lines += [
        _COLUMNS.format(plain(str(row["cure"]), longest=36), *list(row.values())[1:5])
        for row in rows
    ]
    last = outcomes[-1]
    predicted, measured = seconds(last.predicted_likely_s), seconds(last.measured_likely_s)
    named = plain(last.cure, longest=36)
    lines += ["", f"  last: {named}, predicted {predicted}, measured {measured}"]
    return "\n".join(lines) + "\n"


def _row(cure: str, outcomes: Sequence[Outcome]) -> dict[str, str | int]:
    held = [one.held for one in outcomes if one.cure == cure]
    return {
        "cure": cure,
        "checked": len(held),
        "held": held.count("yes"),
        "did_not_hold": held.count("no"),
        "cannot_tell": held.count("cannot tell"),
    }
