"""Work beside the model's own for each token: choosing it, or drafting tokens in vain."""

from __future__ import annotations

from twospeed.findings.finding import Evidence, Finding
from twospeed.findings.observed import Observed
from twospeed.findings.signs import SAMPLING_FRAC, drafting, fields_frac, sampling_frac
from twospeed.findings.slowness import decode_is_slow

ORDER = 75


def find(observed: Observed) -> list[Finding]:
    """Rejected drafts, or sampling that takes a notable part of decode."""
    if not decode_is_slow(observed):
        return []
    return [*_drafts(observed), *_sampling(observed)]


def _drafts(observed: Observed) -> list[Finding]:
    """That drafts are rejected is reported; what drafting costs is not known without it."""
    drafts = drafting(observed.run.records)
    if drafts is None or not drafts.rejected:
        return []
    return [
        Finding(
            cause="decode.draft_rejected",
            phase="decode",
            certainty="reported",
            costs_s=None,
            evidence=(
                Evidence(what="drafted tokens", value=float(drafts.drafted), origin="server"),
                Evidence(what="share of them accepted", value=drafts.share, origin="server"),
            ),
        )
    ]


def _sampling(observed: Observed) -> list[Finding]:
    """Sampling by the runtime's own clock, or by what decode takes without the user's fields."""
    records, decode_s = observed.run.records, observed.decode_s
    told, tried = sampling_frac(records), fields_frac(records)
    share = told if told is not None else tried
    if share is None or share < SAMPLING_FRAC:
        return []
    if told is not None:
        seen = Evidence(what="sampling / decode", value=share, origin="server")
    else:
        seen = Evidence(what="part of decode gone without --request", value=share, origin="client")
    return [
        Finding(
            cause="decode.sampling",
            phase="decode",
            certainty="measured" if told is None else "reported",
            costs_s=decode_s.likely * share if decode_s is not None else None,
            evidence=(seen,),
        )
    ]
