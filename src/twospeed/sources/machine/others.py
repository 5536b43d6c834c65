"""Which other programs used most processor time; asked only at the ends of a run."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable

import psutil

NOTABLE_CORES = 0.05
"""Below this share of one processor a program is no neighbour worth a name."""
MOST_NAMES = 3

Spent = dict[psutil.Process, tuple[str, float]]
"""Name, and processor seconds since it began, of each process."""


class OthersWatch:
    """Compares all processes at both ends; one that begins and ends between them is missed."""

    def __init__(self) -> None:
        self._before: Spent = {}
        self._since_s = 0.0

    def start(self) -> None:
        """Look at all processes once."""
        self._before = spent_by_all()
        self._since_s = time.monotonic()

    def stop(self, ours: Iterable[int]) -> tuple[str, ...]:
        """Names of the other programs that used most, the busiest first.

        Args:
            ours: process ids of twospeed and of the server.
        """
        span_s = time.monotonic() - self._since_s
        return busiest(self._before, spent_by_all(), span_s, frozenset(ours))


def spent_by_all() -> Spent:
    """Name and processor seconds of every process that this user may see."""
    return {
        process: (
            process.info["name"],
            process.info["cpu_times"].user + process.info["cpu_times"].system,
        )
        for process in psutil.process_iter(["name", "cpu_times"])
        if process.info["name"] and process.info["cpu_times"] is not None
    }


def busiest(before: Spent, after: Spent, span_s: float, ours: frozenset[int]) -> tuple[str, ...]:
    """Names of the programs that used most between two looks; those of one name count together.

    Args:
        before: processes at the start.
        after: processes at the end.
        span_s: seconds between.
        ours: process ids to leave out.
    """
    used: dict[str, float] = defaultdict(float)
    for process, (name, cpu_s) in after.items():
        if process.pid not in ours:
            used[name] += cpu_s - before.get(process, (name, 0.0))[1]
    notable = [name for name, cpu_s in used.items() if cpu_s > NOTABLE_CORES * span_s]
    return tuple(sorted(notable, key=lambda name: used[name], reverse=True)[:MOST_NAMES])
