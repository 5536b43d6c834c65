"""What a change saves, beside what one diagnosis before it said.

    python benchmarks/lab/savings.py [--seeds 2] [--file savings.jsonl] [--page docs/lab.md]

Each pair is diagnosed before and after the change on the embedded engine; the measured saving is
the difference of the whole request's seconds, and must lie inside the range that was predicted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from pages import put
from trials import BUDGET_S, report_of

GOALS = ("--wait-goal", "0.3", "--stream-goal", "400")


@dataclass(frozen=True, slots=True)
class Change:
    """One change that can be made to the engine or to the request."""

    cure: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    prompt: tuple[int, int] = (1000, 1000)
    output: tuple[int, int] = (100, 100)


CHANGES = (
    Change("larger batch", ("threads=2", "batch-size=8", "ubatch-size=8"), ("threads=2",)),
    Change("larger batch", ("threads=2", "batch-size=32", "ubatch-size=32"), ("threads=2",)),
    Change("fewer threads", ("threads=8",), ("threads=2",)),
    Change("shorter prompt", ("threads=2",), ("threads=2",), prompt=(1000, 500)),
    Change("shorter prompt", ("threads=1",), ("threads=1",), prompt=(800, 400)),
    Change("shorter answer", ("threads=2",), ("threads=2",), output=(200, 100)),
    Change("shorter answer", ("threads=1",), ("threads=1",), output=(150, 75)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--file", type=Path, default=Path("savings.jsonl"))
    parser.add_argument("--page", type=Path, help="write the table there, below its marker")
    args = parser.parse_args()
    done = kept(args.file)
    with args.file.open("a", encoding="utf-8") as file:
        for seed in range(args.seeds):
            for index, change in enumerate(CHANGES):
                if (index, seed) not in done:
                    line = {"index": index, "seed": seed, **tried(change)}
                    file.write(json.dumps(line) + "\n")
                    file.flush()
                    print(line, flush=True)
    print(table(list(kept(args.file).values()), args.page))


def tried(change: Change) -> dict[str, Any]:
    """Diagnose, make the change, diagnose again."""
    before = diagnosis(change.before, change.prompt[0], change.output[0])
    after = diagnosis(change.after, change.prompt[1], change.output[1])
    said = [one for one in before.get("cures", []) + before.get("wont_help", [])
            if one["cure"] == change.cure]  # fmt: skip
    measured = None
    if "error" not in before and "error" not in after:
        measured = before["time_budget"]["total_s"] - after["time_budget"]["total_s"]
    return {
        "cure": change.cure,
        "settings": " ".join(change.before),
        "request": f"{change.prompt[0]} + {change.output[0]}",
        "said": said[0]["saves_s"] if said else None,
        "measured_s": measured,
        "load": [one.get("conditions", {}).get("host_load") for one in (before, after)],
        "load_average": os.getloadavg()[0],
    }


def diagnosis(settings: tuple[str, ...], prompt: int, output: int) -> dict[str, Any]:
    """The report on the embedded engine with these settings."""
    pairs = [word for setting in settings for word in ("--engine", setting)]
    shape = ("--prompt-tokens", str(prompt), "--output-tokens", str(output))
    budget = ("--budget", str(2 * BUDGET_S), "--no-together")
    return report_of("diagnose", "--embedded", *pairs, *shape, *GOALS, *budget)


def kept(path: Path) -> dict[tuple[int, int], dict[str, Any]]:
    """Trials of an earlier run."""
    if not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    return {(line["index"], line["seed"]): line for line in lines}


def table(trials: list[dict[str, Any]], page: Path | None) -> str:
    """Said against measured, as a Markdown table."""
    known = [one for one in trials if one["said"] and one["measured_s"] is not None]
    rows = [_row(one) for one in known]
    inside = sum(_holds(one) for one in known)
    errors = [abs(one["said"]["likely"] / one["measured_s"] - 1) for one in known
              if one["measured_s"] > 0]  # fmt: skip
    widths = [(one["said"]["high"] - one["said"]["low"]) / one["said"]["likely"] for one in known
              if one["said"]["likely"] > 0]  # fmt: skip
    text = "\n".join(
        [
            "| change | before | request | said | measured | inside | host load |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            (
                f"Inside the range: {inside} of {len(known)}. "
                f"Median error of the likely value: {100 * median(errors or [0]):.0f} %. "
                f"Median width of the range: {100 * median(widths or [0]):.0f} % of it."
            ),
        ]
    )
    if page is not None:
        put(text, "savings", page)
    return text


def _holds(trial: dict[str, Any]) -> bool:
    return bool(trial["said"]["low"] <= trial["measured_s"] <= trial["said"]["high"])


def _row(trial: dict[str, Any]) -> str:
    said = trial["said"]
    load = max((one for one in trial["load"] if one is not None), default=None)
    return (
        f"| {trial['cure']} | {trial['settings']} | {trial['request']} "
        f"| {said['likely']:.2f} s ({said['low']:.2f} to {said['high']:.2f}) "
        f"| {trial['measured_s']:.2f} s | {'yes' if _holds(trial) else 'no'} "
        f"| {'' if load is None else f'{load:.2f}'} |"
    )


if __name__ == "__main__":
    main()
