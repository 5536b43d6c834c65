"""Other requests in the same batch: their prompts, or too little room, hold this one up."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from twospeed.findings.finding import Certainty, Evidence, Finding
from twospeed.findings.observed import Observed
from twospeed.findings.signs import disturbed_s
from twospeed.findings.slowness import decode_is_slow, is_slow
from twospeed.fits.phases import DecodeTime, client_decode, server_decode
from twospeed.records.request_record import APART, Origin, RequestRecord

ORDER = 28

SLOWER = 1.5
"""Decode beside others / alone from which the others are to blame for it."""
MOST_COMPARED = 100
"""Requests of a long log that are compared with those that ran alone."""
SAME_SIZE = 2.0
"""Prompts within this factor of each other are comparable in depth."""


def find(observed: Observed) -> list[Finding]:
    """Preemption, neighbours whose prompts were read meanwhile, or decode far slower than alone."""
    if not is_slow(observed):
        return []
    found = _crowded(observed) or _disturbed(observed) or _slower_than_alone(observed)
    if found is None and decode_is_slow(observed):
        found = _never_alone(observed)
    if found is None:
        return []
    certainty, costs_s, evidence = found
    return [
        Finding(
            cause="server.shared_batch",
            phase=observed.slow_phase,
            certainty=certainty,
            costs_s=costs_s,
            evidence=(evidence,),
        )
    ]


_Found = tuple[Certainty, float | None, Evidence]


def _crowded(observed: Observed) -> _Found | None:
    """Running requests were pushed out, or there was no room left for their next tokens."""
    summary = observed.run.summary
    pushed = sum(bool(r.signs and r.signs.preempted) for r in observed.run.records)
    pushed += (summary.preemptions or 0) if summary else 0
    if pushed:
        evidence = Evidence(what="requests pushed out", value=float(pushed), origin="server")
        return "reported", None, evidence
    if observed.load_view is None or not observed.load_view.crowded or summary is None:
        return None
    share = (summary.kv_cache_usage_max_pct or 0.0) / 100
    return "inferred", None, Evidence(what="KV cache in use", value=share, origin="server")


def _disturbed(observed: Observed) -> _Found | None:
    seconds = disturbed_s(observed.run.records)
    if seconds is None or not decode_is_slow(observed):
        return None
    what = "time in which other prompts were read"
    return "reported", seconds, Evidence(what=what, value=seconds, unit="s", origin="server")


def _slower_than_alone(observed: Observed) -> _Found | None:
    """Requests of one size, some beside others and some alone."""
    if not decode_is_slow(observed):
        return None
    ratios = [
        ratio
        for record in _beside_others(observed.run.records)
        if (ratio := _ratio(record, observed.run.records)) is not None
    ]
    if not ratios or median(ratios) < SLOWER:
        return None
    ratio = median(ratios)
    costs_s = observed.decode_s.likely * (1.0 - 1.0 / ratio) if observed.decode_s else None
    what = "decode is slower beside others by"
    evidence = Evidence(what=what, value=ratio, unit="times", origin=_whose(observed))
    return "measured", costs_s, evidence


def _beside_others(records: Sequence[RequestRecord]) -> list[RequestRecord]:
    beside = [r for r in records if r.other_requests and r.step not in APART]
    return beside[:MOST_COMPARED]


def _ratio(record: RequestRecord, records: Sequence[RequestRecord]) -> float | None:
    """Time per token of a request beside others / alone."""
    own = _decode(record)
    alone = [
        decode.s / decode.steps
        for other in records
        if other.error is None and other.step not in APART
        if not other.other_requests and _same_size(record, other)
        if (decode := _decode(other))
    ]
    return (own.s / own.steps) / median(alone) if own and alone else None


def _decode(record: RequestRecord) -> DecodeTime | None:
    return server_decode(record) or client_decode(record)


def _same_size(one: RequestRecord, other: RequestRecord) -> bool:
    sizes = [record.counts.prompt_tokens or 0 for record in (one, other)]
    return 0 < max(sizes) <= SAME_SIZE * min(sizes)


def _never_alone(observed: Observed) -> _Found | None:
    """Every request of ours had company, so that nothing shows its speed alone."""
    records = [r for r in observed.run.records if r.step == "curve" and r.error is None]
    if not records or not all(record.other_requests for record in records):
        return None
    most = max(record.other_requests or 0 for record in records)
    what = "other requests at the same time"
    return "inferred", None, Evidence(what=what, value=float(most), origin="server")


def _whose(observed: Observed) -> Origin:
    return observed.decode_seen[0].origin if observed.decode_seen else "server"
