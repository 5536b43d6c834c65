"""Waits before prefill: a busy slot, a model load, a far connection."""

from __future__ import annotations

from twospeed.findings.finding import Cause, Certainty, Evidence, Finding, SlowPhase
from twospeed.findings.judgement import connects_slowly
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
    return [*_parts(observed), *_line(observed), *_connections(observed)]


def _parts(observed: Observed) -> list[Finding]:
    if observed.wait.verdict != "slow" or observed.load_view is not None:
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


def _line(observed: Observed) -> list[Finding]:
    """Requests of a load stood in line: counted by the runtime, or by how long they waited."""
    view, summary = observed.load_view, observed.run.summary
    if view is None or summary is None or not view.queued:
        return []
    waiting = max(summary.waiting_max or 0, summary.queue_max or 0)
    evidence = [
        Evidence(what=what, value=value, unit=unit, origin=origin)
        for what, value, unit, origin in (
            ("requests that waited", float(waiting) if waiting else None, None, _SERVER),
            ("time to first token", view.ttft_s, "s", _CLIENT),
        )
        if value is not None
    ]
    return [
        Finding(
            cause="server.queue",
            phase="queue",
            certainty="reported" if waiting else "inferred",
            costs_s=view.ttft_s,
            evidence=tuple(evidence),
        )
    ]


_SERVER: Origin = "server"
_CLIENT: Origin = "client"


def _connections(observed: Observed) -> list[Finding]:
    """Every request opens a connection of its own, and that takes about as long as the rest."""
    connect_s = connects_slowly(observed.run)
    if connect_s is None or observed.slow_phase != "network":
        return []
    return [
        Finding(
            cause="network.latency",
            phase="network",
            certainty="measured",
            costs_s=connect_s,
            evidence=(
                Evidence(what="opening a connection", value=connect_s, unit="s", origin="client"),
            ),
        )
    ]
