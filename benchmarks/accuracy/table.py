"""The outcomes as text, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Mapping

from outcome import Cell, Outcome, figures

WIDTH = 100
KINDS = ("ttft_quantiles_ms", "gap_quantiles_ms", "ttft_pairs_ms", "gap_pairs_ms")
PARTS = ("TTFT quantiles", "gap quantiles", "TTFT pairs", "gap pairs")
HEADS = (
    f"{'Errors in ms':<19}" + "".join(f"{part:>14}" for part in PARTS),
    " " * 19 + "    p50    p99" * len(PARTS) + "  own   CPU lost host",
)
NOTES = (
    "own: share of the TTFT that came in a read of their own; the pairs rest on these",
    "CPU: seconds of the client, start-up included",
    "host: highest load average at a start / most that other programs used during a run",
    "      (* the machine was not quiet before)",
    "GuideLLM tells the mean gap of a request, not each",
)


def table(outcomes: Mapping[Cell, Outcome], versions: Mapping[str, str]) -> str:
    """One block for each load and number of streams."""
    lines = list(HEADS)
    heading = None
    for cell, outcome in outcomes.items():
        if heading != (cell.load, cell.streams):
            heading = cell.load, cell.streams
            lines.append(f"{cell.streams} streams, {cell.load}")
        lines.append(row(cell.client, outcome))
    told = ", ".join(f"{tool} {version}" for tool, version in versions.items())
    return "\n".join([*lines, *NOTES, told])


def row(name: str, outcome: Outcome) -> str:
    """One client at one place."""
    told = figures(outcome)
    if "not_run" in told:
        return f"{name:<20} not run: {told['not_run']}"[:WIDTH]
    numbers = [number for kind in KINDS for number in (told[kind] or [None, None])]
    alone = "-" if told["ttft_alone"] is None else f"{told['ttft_alone']:.0%}"
    host = f"{told['load_average']:.1f}/{told['other_programs']:.0%}{'*' * outcome.unquiet}"
    errors = "".join(f"{shown(number):>7}" for number in numbers)
    return f"{name:<20}{errors[1:]} {alone:>4} {told['cpu_s']:5.1f} {told['lost']:4d} {host}"


def shown(number: float | None) -> str:
    """To the hundredth below 10 ms, to the tenth below 100, and no finer above."""
    if number is None:
        return "-"
    size = abs(number)
    return f"{number:.{2 if size < 10 else 1 if size < 100 else 0}f}"
