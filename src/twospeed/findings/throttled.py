"""The hardware runs below its clocks."""

from __future__ import annotations

from twospeed.findings.finding import Evidence, Finding
from twospeed.findings.observed import Observed
from twospeed.findings.slowness import is_slow
from twospeed.findings.throttling import Throttled, throttled_graphics, throttled_processor
from twospeed.limits.ceilings import runs_on_processor

ORDER = 85


def find(observed: Observed) -> list[Finding]:
    """A graphics device, or the processor where the model runs on it, says that it holds back."""
    if not is_slow(observed):
        return []
    run = observed.run
    graphics = throttled_graphics(run.machine)
    if graphics is not None:
        return [_finding(observed, graphics)]
    processor = throttled_processor(run.machine)
    if processor is not None and runs_on_processor(run.facts, run.probe):
        return [_finding(observed, processor)]
    return []


def _finding(observed: Observed, throttled: Throttled) -> Finding:
    evidence = [
        Evidence(what="runs below its clocks", value=throttled.part, origin="client"),
        Evidence(what="reason", value=", ".join(throttled.reasons), origin="client"),
    ]
    if throttled.clock_frac is not None:
        what = "clock at work / highest"
        evidence.append(Evidence(what=what, value=throttled.clock_frac, origin="client"))
    return Finding(
        cause="host.throttled",
        phase=observed.slow_phase,
        certainty="reported",
        costs_s=None,
        evidence=tuple(evidence),
    )
