"""The lab: known faults, and whether the right cause is named first.

    python benchmarks/lab [--seeds 5] [--only WORDS] [--file lab.jsonl] [--page docs/lab.md]

Every trial is written to the file as it ends; a lab that was stopped goes on where it was. The
table at the end names for each fault how often the right cause came first, what came instead, and
the load of the machine meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TextIO

sys.path.insert(0, str(Path(__file__).parent))

from controls import controls
from engine_scenarios import engine_scenarios
from log_scenarios import log_scenarios
from pages import confusion
from saved_scenarios import saved_scenarios
from scenario import Scenario
from simulated_scenarios import simulated_scenarios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="scenarios whose name holds these words")
    parser.add_argument("--file", type=Path, default=Path("lab.jsonl"))
    parser.add_argument("--page", type=Path, help="write the table there, below its marker")
    args = parser.parse_args()
    scenarios = [
        one
        for one in (
            *engine_scenarios(),
            *log_scenarios(),
            *simulated_scenarios(),
            *saved_scenarios(),
            *controls(),
        )
        if args.only in one.name
    ]
    done = kept(args.file)
    with args.file.open("a", encoding="utf-8") as file:
        for seed in range(max(one.seeds or args.seeds for one in scenarios)):
            for scenario in scenarios:
                due = seed < min(scenario.seeds or args.seeds, 4 * args.seeds)
                if due and (scenario.name, seed) not in done:
                    trial(scenario, seed, file)
    rows = [row for scenario in scenarios for row in scenario.rows]
    print(confusion(rows, list(kept(args.file).values()), args.page))


def trial(scenario: Scenario, seed: int, file: TextIO) -> None:
    """Run one scenario and keep what was seen."""
    began_s = time.monotonic()
    seen = scenario.run(seed)
    for row, found in zip(scenario.rows, (seen, seen.hidden), strict=False):
        if found is None:
            continue
        line = {
            "name": row.name,
            "seed": seed,
            "wanted": row.causes,
            "load_average": os.getloadavg()[0],
            **found.as_json(),
        }
        file.write(json.dumps(line) + "\n")
        file.flush()
        said = found.error or ", ".join(found.causes) or found.slow_phase
        print(f"{row.name} [{seed}, {time.monotonic() - began_s:.0f} s]: {said}", flush=True)


def kept(path: Path) -> dict[tuple[str, int], dict[str, object]]:
    """Trials of an earlier run, by scenario and seed."""
    if not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    return {(line["name"], line["seed"]): line for line in lines}


if __name__ == "__main__":
    main()
