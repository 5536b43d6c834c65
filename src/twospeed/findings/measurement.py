"""The server's clock and ours disagree, so that one of the numbers is not what it says."""

from __future__ import annotations

from twospeed.findings.finding import Evidence, Finding
from twospeed.findings.observed import Observed

ORDER = 0


def find(observed: Observed) -> list[Finding]:
    """A disagreement of more than 10 % in either phase."""
    clocks = observed.clocks
    if clocks is None:
        return []
    return [
        Finding(
            cause="measurement.artifact",
            phase=clocks.phase,
            certainty="measured",
            costs_s=None,
            evidence=(
                Evidence(
                    what=f"{clocks.phase} by our clock / by the server's",
                    value=clocks.ratio,
                    origin="client",
                ),
            ),
        )
    ]
