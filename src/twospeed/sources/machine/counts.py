"""Counts that the system keeps since start-up: what a run added is their difference."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from twospeed.records.run import MachineFacts
from twospeed.sources.machine import apple
from twospeed.sources.machine.clocks import Throttling, throttling
from twospeed.sources.machine.control_group import throttled_s
from twospeed.sources.machine.memory import swapped_in_bytes
from twospeed.sources.machine.pressure import share_between, stalled_s
from twospeed.sources.machine.system_files import ROOT

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts at one moment; None where the system keeps none."""

    at_s: float
    throttling: Throttling | None = None
    quota_s: float | None = None
    """In which a quota stopped the server."""
    memory_waits_s: float | None = None
    swapped_in_bytes: int | None = None


def counts_now(pid: int | None, root: Path = ROOT) -> Counts:
    """All counts at this moment.

    Args:
        pid: the server's process, or None.
        root: below it lie /proc and /sys.
    """
    swapped = swapped_in_bytes(root)
    return Counts(
        at_s=time.monotonic(),
        throttling=throttling(root),
        quota_s=None if pid is None else throttled_s(pid, root),
        memory_waits_s=stalled_s("memory", root),
        swapped_in_bytes=apple.swapped_in_bytes() if swapped is None else swapped,
    )


def with_counts(facts: MachineFacts, before: Counts, after: Counts) -> MachineFacts:
    """Facts with what was added between two moments."""
    hot, over_power = _throttled(before, after)
    reasons = [*(["thermal"] if hot else []), *(["power"] if over_power else [])]
    return replace(
        facts,
        throttle_events=None if hot is None else hot + (over_power or 0),
        throttled_by=tuple(dict.fromkeys([*facts.throttled_by, *reasons])),
        cgroup_throttled_s=_added(before.quota_s, after.quota_s),
        memory_pressure=share_between(
            before.memory_waits_s, after.memory_waits_s, after.at_s - before.at_s
        ),
        swap_read_bytes=_added(before.swapped_in_bytes, after.swapped_in_bytes),
    )


def _throttled(before: Counts, after: Counts) -> tuple[int | None, int | None]:
    if before.throttling is None or after.throttling is None:
        return None, None
    added = after.throttling.since(before.throttling)
    return added.hot, added.over_power


def _added(before: Number | None, after: Number | None) -> Number | None:
    if before is None or after is None or after < before:  # fewer: another group, another count
        return None
    return after - before
