"""All finding modules of this room: a module with `ORDER` and `find(observed)` is one.

ORDER is the diagnostic order: each step explains what the next may assume, and it decides between
findings of equal cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from msgspec.structs import replace

from twospeed import findings
from twospeed.findings.finding import Finding, weakened
from twospeed.findings.observed import Observed

MOST_FINDINGS = 3

Find = Callable[[Observed], list[Finding]]


@cache
def finders() -> tuple[Find, ...]:
    """The `find` of every family, in diagnostic order."""
    names = [f"{findings.__name__}.{module.name}" for module in iter_modules(findings.__path__)]
    modules = [import_module(name) for name in names]
    families = [one for one in modules if hasattr(one, "find") and hasattr(one, "ORDER")]
    return tuple(module.find for module in sorted(families, key=lambda module: module.ORDER))


def find_all(observed: Observed) -> tuple[Finding, ...]:
    """At most three findings, worst first; weakened when the conditions cannot be trusted."""
    found = [finding for find in finders() for finding in find(observed)]
    worst = sorted(found, key=_rank)[:MOST_FINDINGS]
    if is_trusted(observed, worst):
        return tuple(worst)
    return tuple(
        finding
        if finding.cause == "measurement.artifact"
        else replace(finding, certainty=weakened(finding.certainty))
        for finding in worst
    )


def is_trusted(observed: Observed, found: Sequence[Finding]) -> bool:
    """Whether the numbers can be relied on: quiet conditions, clocks that agree, steady repeats."""
    return observed.run.conditions.trusted and not disproves(found) and not observed.unsteady


def disproves(found: Sequence[Finding]) -> bool:
    """Whether a finding says that the numbers themselves cannot be trusted."""
    return any(finding.cause == "measurement.artifact" for finding in found)


def _rank(finding: Finding) -> tuple[bool, float]:
    """A doubtful measurement comes before everything that rests on it; unknown costs come last."""
    return (finding.cause != "measurement.artifact", -(finding.costs_s or 0.0))
