"""A model that is there when the request comes."""

from __future__ import annotations

from dataclasses import replace

from twospeed.cures.cure import Proposal
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import change_line
from twospeed.findings.observed import Observed

_OTHERWISE = "switch off unloading after idle time"


def propose(observed: Observed) -> list[Proposal]:
    """The seconds of loading, where it was seen."""
    if not observed.budget.load_s:
        return []
    return proposal(
        observed,
        "keep the model loaded",
        ("model.load",),
        lambda pace: replace(pace, load_s=pace.load_s * 0.0),
        how=(
            change_line(observed.run, "keep_loaded", otherwise=_OTHERWISE),
            "change neither model nor context between requests: either reloads it",
        ),
    )
