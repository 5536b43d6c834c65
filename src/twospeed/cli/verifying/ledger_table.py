"""How often predictions held, by change."""

from __future__ import annotations

from collections.abc import Sequence

from twospeed.records.json_text import encoded
from twospeed.records.ledger import Outcome, track_records
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
    rows = track_records(outcomes)
    if as_json:
        document = {"schema": "twospeed.ledger/1", "cures": rows, "outcomes": list(outcomes)}
        return encoded(document).decode() + "\n"
    if not rows:
        return EMPTY
    lines = [_COLUMNS.format("change", "checked", "held", "did not", "open")]
    lines += [
        _COLUMNS.format(
            plain(row.cure, longest=36), row.checked, row.held, row.did_not_hold, row.cannot_tell
        )
        for row in rows
    ]
    last = outcomes[-1]
    predicted, measured = seconds(last.predicted_likely_s), seconds(last.measured_likely_s)
    named = plain(last.cure, longest=36)
    lines += ["", f"  last: {named}, predicted {predicted}, measured {measured}"]
    return "\n".join(lines) + "\n"
