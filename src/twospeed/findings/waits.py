"""Waits before prefill: a busy slot, a model load, a far connection."""

from __future__ import annotations

from twospeed.findings.finding import Cause, Certainty, Evidence, Finding, SlowPhase
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
    load, queue = observed.load, observed.queue
    by_queue = queue.origin or "client"
    candidates: list[tuple[Cause, float | None, Origin, Certainty]] = [
        ("model.load", load.seconds, load.origin, load.certainty),
        ("server.queue", queue.seconds, by_queue, _certainty(by_queue)),
        ("network.latency", observed.budget.network_s, "client", "measured"),
    ]
    found = [_part(observed, *candidate) for candidate in candidates]
    return [finding for finding in found if finding is not None]


def _certainty(origin: Origin) -> Certainty:
    return "reported" if origin == "server" else "measured"


def _part(
    observed: Observed, cause: Cause, seconds: float | None, origin: Origin, certainty: Certainty
) -> Finding | None:
    wait_s = observed.wait.seconds
    if seconds is None or wait_s is None or seconds < NOTABLE_SHARE * wait_s:
        return None
    phase = _PHASES[cause]
    return Finding(
        cause=cause,
        phase=phase,
        certainty=certainty,
        costs_s=seconds,
        evidence=(
            Evidence(what=f"{phase} time", value=seconds, unit="s", origin=origin),
            Evidence(what="share of the wait", value=seconds / wait_s, origin=origin),
        ),
    )
