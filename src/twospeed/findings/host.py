"""Other programs used this machine while it was measured."""

from __future__ import annotations

from twospeed.findings.finding import Evidence, Finding
from twospeed.findings.observed import Observed

ORDER = 10

BUSY = 0.25
"""Share of the processors in other programs' use from which both phases can suffer."""


def find(observed: Observed) -> list[Finding]:
    """Contention, when something is slow on a local machine that was busy with other work.

    What it costs is not known: only a quiet run would show it.
    """
    load, local = observed.run.conditions.host_load, observed.run.source.local
    if load is None or load < BUSY or not local or observed.slow_phase in ("none", "unknown"):
        return []
    evidence = Evidence(what="processors used by other programs", value=load, origin="client")
    return [
        Finding(
            cause="host.contention",
            phase=observed.slow_phase,
            certainty="possible",
            costs_s=None,
            evidence=(evidence,),
        )
    ]
