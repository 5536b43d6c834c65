"""Several graphics devices share one model and wait for each other."""

from __future__ import annotations

from twospeed.findings.comparison import compare
from twospeed.findings.finding import Evidence, Finding
from twospeed.findings.lost_time import lost_seconds
from twospeed.findings.observed import Observed
from twospeed.findings.slowness import is_slow
from twospeed.findings.table import Contrast, contrasts

ORDER = 36

OF_DEVICES = frozenset({"devices", "split_mode", "tensor_split", "main_gpu", "backend"})
"""Settings of a table that say how a model is spread over devices."""
SLOWER = 1.2
"""A split by layers costs a few per cent; more is the way between the devices."""


def find(observed: Observed) -> list[Finding]:
    """The same work was slower on several devices than on one."""
    if not is_slow(observed):
        return []
    return _by_table(observed) or _by_requests(observed)


def _by_table(observed: Observed) -> list[Finding]:
    pairs = [pair for pair in contrasts(observed.run.points) if _spread_is_slower(pair)]
    if not pairs:
        return []
    pair = pairs[0]
    evidence = (
        Evidence(what="devices", value=pair.slow.settings.get("devices"), origin="server"),
        Evidence(
            what="decode is slower by", value=pair.ratio("decode"), unit="times", origin="server"
        ),
    )
    return [
        Finding(
            cause="placement.multi_device",
            phase=observed.slow_phase,
            certainty="measured",
            costs_s=lost_seconds(observed.run.workload, pair),
            evidence=evidence,
        )
    ]


def _spread_is_slower(pair: Contrast) -> bool:
    slow, fast = (one.settings.get("devices") for one in (pair.slow, pair.fast))
    if not isinstance(slow, int) or not isinstance(fast, int) or slow <= fast:
        return False
    return pair.differ <= OF_DEVICES and pair.ratio("decode") >= SLOWER


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
