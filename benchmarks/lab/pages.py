"""The tables of the lab."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from controls import BLIND
from scenario import NO_FAULT, Scenario


def confusion(
    scenarios: Sequence[Scenario], trials: Sequence[dict[str, Any]], page: Path | None
) -> str:
    """How often each fault was named right, as a Markdown table."""
    rows = [_row(one, [t for t in trials if t["name"] == one.name]) for one in scenarios]
    named = [(s, t) for s in scenarios for t in trials if t["name"] == s.name]
    faults = [_right(s, t) for s, t in named if s.causes]
    healthy = [_right(s, t) for s, t in named if not s.causes and not is_blind(s)]
    blind = [_right(s, t) for s, t in named if is_blind(s)]
    table = "\n".join(
        [
            "| fault | right first | what was named first | host load |",
            "|---|---|---|---|",
            *rows,
            "",
            (
                f"With a fault: {sum(faults)} of {len(faults)} right. "
                f"Healthy controls: {sum(healthy)} of {len(healthy)} without a false finding. "
                f"Evidence missing: {sum(blind)} of {len(blind)} not called healthy."
            ),
        ]
    )
    if page is not None:
        put(table, "lab", page)
    return table


def put(table: str, name: str, page: Path) -> None:
    """Write a table between the marks of its name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = page.read_text("utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n{table}\n{end}{after}", "utf-8")


def _row(scenario: Scenario, trials: Sequence[dict[str, Any]]) -> str:
    right = sum(_right(scenario, trial) for trial in trials)
    first = Counter(_first(trial) for trial in trials)
    named = ", ".join(f"{cause} {count}" for cause, count in first.most_common())
    loads = [trial["load"] for trial in trials if trial["load"] is not None]
    load = f"{min(loads):.2f} to {max(loads):.2f}" if loads else ""
    return f"| {scenario.name} | {right} of {len(trials)} | {named} | {load} |"


def _first(trial: dict[str, Any]) -> str:
    if trial["error"]:
        return "error"
    return str(trial["causes"][0]) if trial["causes"] else f"nothing ({trial['slow_phase']})"


def _right(scenario: Scenario, trial: dict[str, Any]) -> bool:
    if trial["error"]:
        return False
    if scenario.causes:
        return bool(trial["causes"]) and trial["causes"][0] in scenario.causes
    quiet = all(cause in NO_FAULT for cause in trial["causes"])
    if is_blind(scenario):
        return quiet and trial["slow_phase"] != "none"
    return quiet and trial["slow_phase"] != "unknown"


def is_blind(scenario: Scenario) -> bool:
    """Whether its evidence is too thin for a healthy verdict."""
    return scenario.name.startswith(BLIND)
