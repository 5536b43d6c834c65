"""Other programs used this machine while it was measured."""

from __future__ import annotations

from twospeed.findings.finding import Certainty, Evidence, Finding
from twospeed.findings.observed import Observed
from twospeed.findings.table import is_noisy
from twospeed.limits.ceilings import runs_on_processor
from twospeed.records.run import Run

ORDER = 10

BUSY = 0.25
"""Share of the processors in other programs' use from which both phases can suffer."""
PRESSED = 0.25
"""Share of the time in which work waited for a processor."""
STOLEN = 0.1
"""Share of processor time that the hypervisor kept."""
STOPPED_FRAC = 0.05
"""Share of the requests' time in which a quota stopped the server."""


def find(observed: Observed) -> list[Finding]:
    """Contention, when something is slow on a machine that was busy with other work.

    What it costs is not known: only a quiet run would show it. A model on the processor is sure to
    suffer; one on a graphics card may not. Where the slow phase stayed unknown, the company may be
    the reason for that, too.
    """
    if is_noisy(observed.run.points):
        return [_finding(observed, "possible", (_noise(observed.run),))]
    if not observed.run.source.local or observed.slow_phase == "none":
        return []
    evidence = _evidence(observed.run)
    if not evidence:
        return []
    known = observed.slow_phase != "unknown"
    on_processor = known and runs_on_processor(observed.run.facts, observed.run.probe)
    return [_finding(observed, "inferred" if on_processor else "possible", evidence)]


def _finding(observed: Observed, certainty: Certainty, evidence: tuple[Evidence, ...]) -> Finding:
    return Finding(
        cause="host.contention",
        phase=observed.slow_phase,
        certainty=certainty,
        costs_s=None,
        evidence=evidence,
    )


def _evidence(run: Run) -> tuple[Evidence, ...]:
    conditions = run.conditions
    found = [
        Evidence(what=what, value=value, origin="client")
        for what, value, bound in (
            ("processors used by other programs", conditions.host_load, BUSY),
            ("processor time kept by the hypervisor", conditions.steal, STOLEN),
            ("time in which the server was stopped by its quota", _stopped(run), STOPPED_FRAC),
        )
        if value is not None and value >= bound
    ]
    if found and run.machine is not None and run.machine.busiest:
        busiest = ", ".join(run.machine.busiest)
        found.append(Evidence(what="busiest programs", value=busiest, origin="client"))
    if found and (conditions.cpu_pressure or 0.0) >= PRESSED:
        what = "time in which work waited for a processor"
        found.append(Evidence(what=what, value=conditions.cpu_pressure, origin="client"))
    return tuple(found)


def _stopped(run: Run) -> float | None:
    """Share of the time of all requests in which a processor quota stopped the server."""
    stopped_s = run.machine.cgroup_throttled_s if run.machine else None
    spent_s = sum(record.client.end_s or 0.0 for record in run.records)
    return stopped_s / spent_s if stopped_s is not None and spent_s > 0 else None


def _noise(run: Run) -> Evidence:
    worst = max(point.sd / point.tps for point in run.points if point.sd is not None)
    return Evidence(what="spread of the repeats / their mean", value=worst, origin="server")
