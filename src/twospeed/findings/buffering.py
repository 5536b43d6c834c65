"""Something between server and client collects tokens before it lets them go."""

from __future__ import annotations

from twospeed.findings.finding import Evidence, Finding
from twospeed.findings.observed import Observed
from twospeed.fits.phases import server_decode

ORDER = 25


def find(observed: Observed) -> list[Finding]:
    """Tokens that come in bursts, or all at once. Each is late by up to a pause."""
    holding = observed.holding
    if holding is None or observed.slow_phase in ("none", "unknown"):
        return []
    clocked = any(server_decode(record) for record in observed.run.records)
    return [
        Finding(
            cause="network.buffered_stream",
            phase="network",
            certainty="measured" if clocked else "inferred",
            costs_s=holding.pause_s,
            evidence=(
                Evidence(
                    what="texts at one instant",
                    value=holding.texts_per_burst,
                    origin="client",
                ),
                Evidence(
                    what="pause before them", value=holding.pause_s, unit="s", origin="client"
                ),
            ),
        )
    ]
