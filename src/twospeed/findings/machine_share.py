"""What a phase reaches of its ceiling, as evidence."""

from __future__ import annotations

from typing import Literal

from twospeed.findings.finding import Evidence
from twospeed.limits.normal import NormalRange
from twospeed.records.run import Quantity


def share_evidence(
    phase: Literal["prefill", "decode"], share: Quantity | None, normal: NormalRange | None
) -> list[Evidence]:
    """The share of the ceiling and where normal begins, each where it is known."""
    evidence = []
    if share is not None:
        what = f"share of the {phase} ceiling"
        evidence.append(Evidence(what=what, value=share.value, origin=share.origin))
    if normal is not None:
        evidence.append(Evidence(what="normal from", value=normal.low, origin="catalogue"))
    return evidence
