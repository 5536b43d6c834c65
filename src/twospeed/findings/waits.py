"""Waits before prefill: a busy slot, a model load, a far connection."""

from __future__ import annotations

from twospeed.findings.finding import Cause, Evidence, Finding, SlowPhase
from twospeed.findings.observed import Observed
from twospeed.records.request_record import Origin

ORDER = 20

NOTABLE_SHARE = 0.2
"""Share of a slow wait from which a part is worth naming."""

_PHASES: dict[Cause, SlowPhase] = {
    "model.load": "load",
    "server.queue": "queue",
    "network.latency": "network",
}


def find(observed: Observed) -> list[Finding]:
    """The parts of a slow wait that come before the prompt is read."""
    if observed.wait.verdict != "slow":
        return []
    run, budget = observed.run, observed.budget
    candidates: list[tuple[Cause, float | None, Origin]] = [
        ("model.load", budget.load_s, "server" if run.loading_s is None else "client"),
        ("server.queue", budget.queue_s, observed.queue.origin or "client"),
        ("network.latency", budget.network_s, "client"),
    ]
    found = [_part(observed, *candidate) for candidate in candidates]
    return [finding for finding in found if finding is not None]


def _part(
    observed: Observed, cause: Cause, seconds: float | None, origin: Origin
) -> Finding | None:
    wait_s = observed.wait.seconds
    if seconds is None or wait_s is None or seconds < NOTABLE_SHARE * wait_s:
        return None
    phase = _PHASES[cause]
    return Finding(
        cause=cause,
        phase=phase,
        certainty="reported" if origin == "server" else "measured",
        costs_s=seconds,
        evidence=(
            Evidence(what=f"{phase} time", value=seconds, unit="s", origin=origin),
            Evidence(what="share of the wait", value=seconds / wait_s, origin=origin),
        ),
    )
