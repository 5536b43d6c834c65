"""Slowness first: what a module may look for in a run."""

from __future__ import annotations

from statistics import median

from twospeed.findings.budget import largest_wait_part
from twospeed.findings.comparison import compare
from twospeed.findings.observed import Observed
from twospeed.findings.table import Phase
from twospeed.records.request_record import RequestRecord

WHOLE_FACTOR = 5.0
"""A request that takes so many times the goal of the wait is slow, whichever phase it is."""


def prefill_is_slow(observed: Observed) -> bool:
    """Whether reading the prompt is what makes the wait slow, or slower than it could be."""
    if observed.slow_phase in ("prefill", "both"):
        return True
    slow = observed.wait.verdict == "slow" and not _is_about(observed, "decode")
    return slow and largest_wait_part(observed.budget) == "prefill_s"


def decode_is_slow(observed: Observed) -> bool:
    """Whether the stream is slow, or slower than it could be."""
    if observed.slow_phase in ("decode", "both"):
        return True
    return observed.stream.verdict == "slow" and not _is_about(observed, "prefill")


def _is_about(observed: Observed, phase: Phase) -> bool:
    """Whether a few like requests were compared that differ in this phase."""
    compared = compare(observed.run.records)
    return compared is not None and compared.phase == phase


def is_slow(observed: Observed) -> bool:
    """Whether either phase is slow."""
    return prefill_is_slow(observed) or decode_is_slow(observed)


def is_undivided(observed: Observed) -> bool:
    """Whether only the whole time of requests is known, and it is long."""
    if observed.slow_phase != "unknown":
        return False
    if observed.prefill_s is not None or observed.decode_s is not None:
        return False
    whole = [seconds for record in observed.run.records if (seconds := _whole_s(record))]
    return bool(whole) and median(whole) > WHOLE_FACTOR * observed.run.goals.wait_s


def _whole_s(record: RequestRecord) -> float | None:
    told_s = record.server.total_s if record.server else None
    return record.client.end_s or told_s
