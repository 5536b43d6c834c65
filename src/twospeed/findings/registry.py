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
from twospeed.findings.finding import Cause, Finding, weakened
from twospeed.findings.observed import Observed

MOST_FINDINGS = 3
EXPLAINING = ("placement.", "host.", "server.shared_batch", "decode.draft", "decode.sampling")
"""Families that explain a phase as a whole, so that nothing general is left to say of it."""
REMAINDERS: frozenset[Cause] = frozenset(
    {"prefill.compute_low", "decode.bandwidth_bound", "decode.below_limit"}
)
"""Causes that mean: slower than usual, or as usual, and nothing narrower shown."""

GENERAL: frozenset[Cause] = REMAINDERS | {"prompt.large", "decode.output_long"}
"""Causes that leave open whether something narrower could be changed."""

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
    told = [finding for find in finders() for finding in find(observed)]
    # No seconds at all are no known cost: the workload has nothing of that phase.
    priced = [replace(finding, costs_s=finding.costs_s or None) for finding in told]
    found = _without_remainders(priced)
    worst = sorted(found, key=lambda one: _rank(observed, one))[:MOST_FINDINGS]
    if is_trusted(observed, worst):
        return tuple(worst)
    return tuple(
        finding
        if finding.cause == "measurement.artifact"
        else replace(finding, certainty=weakened(finding.certainty))
        for finding in worst
    )


def _without_remainders(found: Sequence[Finding]) -> list[Finding]:
    """Drops "nothing narrower shown" where something narrower is."""
    shown = [one for one in found if one.cause.startswith(EXPLAINING) and _is_shown(one)]
    phases = {one.phase for one in shown}
    return [
        one
        for one in found
        if one.cause not in REMAINDERS or not phases & {one.phase, "both", "unknown"}
    ]


def _is_shown(finding: Finding) -> bool:
    return finding.certainty != "possible" or finding.costs_s is not None


def is_trusted(observed: Observed, found: Sequence[Finding]) -> bool:
    """Whether the numbers can be relied on: quiet conditions, clocks that agree, steady repeats."""
    return observed.run.conditions.trusted and not disproves(found) and not observed.unsteady


def disproves(found: Sequence[Finding]) -> bool:
    """Whether a finding says that the numbers themselves cannot be trusted."""
    return any(finding.cause == "measurement.artifact" for finding in found)


def _rank(observed: Observed, finding: Finding) -> tuple[bool, float, bool]:
    """A doubtful measurement comes before everything that rests on it, then the dearest cause.

    Of two that may cost the same, the narrower one comes first. A cause whose cost nobody knows may
    cost all of its phase; one that is only possible comes last.
    """
    costs_s = finding.costs_s
    if costs_s is None:
        costs_s = 0.0 if finding.certainty == "possible" else _most_s(observed, finding)
    return (finding.cause != "measurement.artifact", -costs_s, finding.cause in GENERAL)


def _most_s(observed: Observed, finding: Finding) -> float:
    """All the seconds of the phase that a finding explains."""
    prefill = observed.prefill_s.likely if observed.prefill_s is not None else 0.0
    decode = observed.decode_s.likely if observed.decode_s is not None else 0.0
    return {"prefill": prefill, "decode": decode}.get(finding.phase, prefill + decode)
