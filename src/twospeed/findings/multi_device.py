"""Several graphics devices share one model and wait for each other."""

from __future__ import annotations

from twospeed.findings.comparison import compare
from twospeed.findings.finding import Evidence, Finding
from twospeed.findings.lost_time import shown_by_rows
from twospeed.findings.observed import Observed
from twospeed.findings.slowness import is_slow
from twospeed.findings.table import contrasts

ORDER = 36

SLOWER = 1.2
"""A split by layers costs a few per cent; more is the way between the devices."""


def find(observed: Observed) -> list[Finding]:
    """The same work was slower on several devices than on one."""
    if not is_slow(observed):
        return []
    return _by_table(observed) or _by_requests(observed)


def _by_table(observed: Observed) -> list[Finding]:
    pairs = [p for p in contrasts(observed.run.points, "devices") if p.ratio("decode") >= SLOWER]
    if not pairs:
        return []
    pair = pairs[0]
    evidence = (
        Evidence(what="devices", value=pair.slow.settings.get("devices"), origin="server"),
        Evidence(
            what="decode is slower by", value=pair.ratio("decode"), unit="times", origin="server"
        ),
    )
    return [shown_by_rows(observed, pair, "placement.multi_device", evidence)]


def _by_requests(observed: Observed) -> list[Finding]:
    """One of a few like requests was slow in decode, and several devices were in use."""
    devices = observed.run.facts.devices or 0
    compared = compare(observed.run.records)
    if devices < 2 or compared is None or compared.phase != "decode":
        return []
    return [
        Finding(
            cause="placement.multi_device",
            phase="decode",
            certainty="possible",
            costs_s=compared.seconds,
            evidence=(
                Evidence(what="devices", value=devices, origin="server"),
                Evidence(
                    what="decode of the same request is slower by",
                    value=compared.ratio,
                    unit="times",
                    origin="server",
                ),
            ),
        )
    ]
