"""What a change saves, beside what one diagnosis before it said.

    python benchmarks/lab/savings.py [--seeds 2] [--file savings.jsonl] [--page docs/lab.md]

One diagnosis says what the change would save. Then the change is made: both ways are timed on
engines of their own, or on the one that was diagnosed where only the request changes, in turn
(ABBA), so that a drift of the machine meets both. The difference of the medians must lie inside
the range.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from faults import words
from pages import put
from scenario import engine
from trials import BUDGET_S, report_of

GOALS = ("--wait-goal", "0.3", "--stream-goal", "400")
ORDER = (0, 1, 1, 0, 0, 1, 1, 0)
"""Which arm is timed at each step."""
PHASES = ("wait_s", "answer_s")
NOTABLE_S = 0.1
"""A part that was said to be smaller has no sign that could be checked."""
HELD = 0.9
"""Part of a follow-up prompt that the turn before held; what "turn reuse on" counts with."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change that can be made to the engine or to the request.

    Attributes:
        cure: its name in the report.
        before: settings of the engine.
        after: the same with the change made.
        prompt: tokens before and after.
        output: tokens before and after.
        turns: whether each timed request follows an earlier one of the same conversation.
        goals: from where on a number counts as slow, so that the change is worth naming.
    """

    cure: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    prompt: tuple[int, int] = (1000, 1000)
    output: tuple[int, int] = (100, 100)
    turns: bool = False
    goals: tuple[str, ...] = GOALS


TWO, ONE = ("threads=2",), ("threads=1",)
CHANGES = (
    Change("larger batch", (*TWO, "batch-size=8", "ubatch-size=8"), TWO),
    Change("larger batch", (*TWO, "batch-size=32", "ubatch-size=32"), TWO),
    Change("fewer threads", ("threads=8",), TWO),
    Change("fewer threads", ("threads=4",), TWO),
    Change("shorter prompt", TWO, TWO, prompt=(1000, 500)),
    Change("shorter prompt", ONE, ONE, prompt=(800, 400)),
    Change("shorter prompt", TWO, TWO, prompt=(2000, 1000)),
    Change("shorter answer", TWO, TWO, output=(200, 100)),
    Change("shorter answer", ONE, ONE, output=(150, 75)),
    Change("shorter answer", TWO, TWO, prompt=(300, 300), output=(400, 200)),
    Change("turn reuse on", (*TWO, "cache-prompt=off"), (*TWO, "cache-prompt=on"), turns=True),
    Change("turn reuse on", (*ONE, "cache-prompt=off"), (*ONE, "cache-prompt=on"), turns=True),
    Change(
        "summarise and start fresh",
        TWO,
        TWO,
        prompt=(3000, 600),
        output=(150, 150),
        goals=("--wait-goal", "60", "--stream-goal", "400"),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", default="", help="changes whose name holds these words")
    parser.add_argument("--file", type=Path, default=Path("savings.jsonl"))
    parser.add_argument("--page", type=Path, help="write the table there, below its marker")
    args = parser.parse_args()
    done = kept(args.file)
    with args.file.open("a", encoding="utf-8") as file:
        for seed in range(args.seeds):
            for index, change in enumerate(CHANGES):
                if (index, seed) not in done and args.only in change.cure:
                    line = {"index": index, "seed": seed, **tried(change, seed)}
                    file.write(json.dumps(line) + "\n")
                    file.flush()
                    print(line, flush=True)
    print(table(list(kept(args.file).values()), args.page))


def tried(change: Change, seed: int) -> dict[str, Any]:
    """Diagnose, make the change, and time both ways."""
    with contextlib.ExitStack() as stack:
        if change.before == change.after:
            url = str(stack.enter_context(engine(*change.before)).url)
            before = diagnosis(change, url, "--no-probe")
            timed = both_timed(change, seed, (url, url))
        else:
            pairs = [word for setting in change.before for word in ("--engine", setting)]
            before = diagnosis(change, "--embedded", *pairs)
            engines = [stack.enter_context(engine(*way)) for way in (change.before, change.after)]
            timed = both_timed(change, seed, (str(engines[0].url), str(engines[1].url)))
    said = [one for one in before.get("cures", []) + before.get("wont_help", [])
            if one["cure"] == change.cure]  # fmt: skip
    return {
        "cure": change.cure,
        "settings": " ".join(change.before),
        "request": f"{change.prompt[0]} + {change.output[0]}",
        "said": said[0]["saves_s"] if said else None,
        "said_phases": [said[0].get(part) for part in PHASES] if said else None,
        "first": [one["cause"] for one in before.get("findings", [])],
        "error": before.get("error"),
        **timed,
        "load": [before.get("conditions", {}).get("host_load"), *timed["loads"]],
        "load_average": os.getloadavg()[0],
    }


def diagnosis(change: Change, *where: str) -> dict[str, Any]:
    """The report before the change."""
    shape = (
        "--prompt-tokens", str(change.prompt[0]), "--output-tokens", str(change.output[0])
    )  # fmt: skip
    budget = ("--budget", str(2 * BUDGET_S), "--no-together")
    return report_of("diagnose", *where, *shape, *change.goals, *budget)


def both_timed(change: Change, seed: int, urls: tuple[str, str]) -> dict[str, Any]:
    """Medians of both ways: the whole request, the wait and the answer, before less after."""
    ask: Callable[[str, int, int], list[dict[str, Any]]] = (
        _Turns(change, seed).asked if change.turns else _plain(change)
    )
    for arm, url in enumerate(urls):
        ask(url, arm, -1 - arm)
    rows: tuple[list[dict[str, Any]], ...] = ([], [])
    for step, arm in enumerate(ORDER):
        rows[arm].extend(ask(urls[arm], arm, step))
    times = [
        {
            "total_s": median(row["total_s"] for row in arm),
            "wait_s": median(row["ttft_s"] for row in arm),
            "answer_s": median(row["total_s"] - row["ttft_s"] for row in arm),
        }
        for arm in rows
    ]
    saved = {name: times[0][name] - times[1][name] for name in times[0]}
    return {
        "measured_s": saved["total_s"],
        "measured_wait_s": saved["wait_s"],
        "measured_answer_s": saved["answer_s"],
        "totals_s": [[row["total_s"] for row in arm] for arm in rows],
        "loads": [row["host_load"] for arm in rows for row in arm],
    }


def _plain(change: Change) -> Callable[[str, int, int], list[dict[str, Any]]]:
    def asked(url: str, arm: int, step: int) -> list[dict[str, Any]]:  # noqa: ARG001
        shape = ("--prompt-tokens", str(change.prompt[arm]))
        return _requests(url, *shape, "--output-tokens", str(change.output[arm]))

    return asked


class _Turns:
    """Conversations of two turns; the second one is timed."""

    def __init__(self, change: Change, seed: int) -> None:
        self._change = change
        self._seed = seed
        self._words = change.prompt[0] // 5

    def asked(self, url: str, arm: int, step: int) -> list[dict[str, Any]]:
        """A first turn that is not timed, then one that repeats it and adds to it."""
        text = words(4 * self._words, 100 * self._seed + 10 * step + arm + 40).split()
        held = " ".join(text[: int(HELD * len(text))])
        with TemporaryDirectory() as folder:
            path = Path(folder) / "prompt.txt"
            path.write_text(held, "utf-8")
            _requests(url, "--prompt", str(path), "--output-tokens", "1")
            path.write_text(" ".join(text), "utf-8")
            output = str(self._change.output[arm])
            rows = _requests(url, "--prompt", str(path), "--output-tokens", output)
        if step < 0:
            # The first one only shows how many tokens the words make.
            self._words = int(self._words * self._change.prompt[0] / rows[0]["prompt_tokens"])
        return rows


def _requests(url: str, *words_: str) -> list[dict[str, Any]]:
    timing = report_of("time", url, *words_)
    if "error" in timing:
        raise SystemExit(f"twospeed time: {timing['error']}")
    load = timing["conditions"]["host_load"]
    return [{**row, "host_load": load} for row in timing["requests"]]


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
    signs = [right for one in known for right in _signs(one)]
    text = "\n".join(
        [
            (
                "| change | before | request | said | measured | of it wait, answer | inside "
                "| host load |"
            ),
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            (
                f"Inside the range: {inside} of {len(known)}. "
                f"Median error of the likely value: {100 * median(errors or [0]):.0f} %. "
                f"Median width of the range: {100 * median(widths or [0]):.0f} % of it. "
                f"Sign right in each phase: {sum(signs)} of {len(signs)}. "
                f"Nothing was said in {len(trials) - len(known)} of {len(trials)} trials."
            ),
        ]
    )
    if page is not None:
        put(text, "savings", page)
    return text


def _holds(trial: dict[str, Any]) -> bool:
    return bool(trial["said"]["low"] <= trial["measured_s"] <= trial["said"]["high"])


def _signs(trial: dict[str, Any]) -> list[bool]:
    """Whether each phase gained or lost as was said, where that was told apart and notable."""
    parts = zip(trial.get("said_phases") or (), PHASES, strict=False)
    return [
        (said["likely"] > 0) == (trial[f"measured_{part}"] > 0)
        for said, part in parts
        if said is not None and abs(said["likely"]) >= NOTABLE_S
    ]


def _row(trial: dict[str, Any]) -> str:
    said = trial["said"]
    load = max((one for one in trial["load"] if one is not None), default=None)
    return (
        f"| {trial['cure']} | {trial['settings']} | {trial['request']} "
        f"| {said['likely']:.2f} s ({said['low']:.2f} to {said['high']:.2f}) "
        f"| {trial['measured_s']:.2f} s "
        f"| {trial['measured_wait_s']:.2f}, {trial['measured_answer_s']:.2f} s "
        f"| {'yes' if _holds(trial) else 'no'} "
        f"| {'' if load is None else f'{load:.2f}'} |"
    )


if __name__ == "__main__":
    main()
