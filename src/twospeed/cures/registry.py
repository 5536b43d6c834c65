"""Which changes are worth making: a module of this room with `propose(observed)` is asked.

A change goes to the cures when it acts on a cause that was found and saves enough; else it is
named among those that will not help, with its seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from twospeed import cures
from twospeed.cures.cure import Cure, Proposal, WhyNot, WontHelp, verify_line
from twospeed.findings.finding import Cause, Finding
from twospeed.findings.observed import Observed

WORTH_FRAC = 0.05
WORTH_S = 0.3
"""Under this share of the request, or these seconds, nobody notices."""

Propose = Callable[[Observed], list[Proposal]]


@cache
def proposers() -> tuple[Propose, ...]:
    """The `propose` of every cure module."""
    names = [f"{cures.__name__}.{module.name}" for module in iter_modules(cures.__path__)]
    modules = [import_module(name) for name in names]
    return tuple(module.propose for module in modules if hasattr(module, "propose"))


def weigh(
    observed: Observed, findings: Sequence[Finding]
) -> tuple[tuple[Cure, ...], tuple[WontHelp, ...]]:
    """The changes worth making, largest saving first, and the ones that are not.

    Nothing is proposed where nothing was found, or where it is not known what is slow.
    """
    if not findings or observed.slow_phase in ("none", "unknown"):
        return (), ()
    found = [finding.cause for finding in findings]
    worth, idle = [], []
    for proposal in (one for propose in proposers() for one in propose(observed)):
        why = why_not(proposal, found, observed.budget.total_s)
        if why is None:
            worth.append(_cure(proposal, found, observed))
        else:
            idle.append(WontHelp(cure=proposal.cure, saves_s=proposal.saves_s, why=why))
    worth.sort(key=lambda cure: -cure.saves_s.likely)
    idle.sort(key=lambda wont: -wont.saves_s.likely)
    return tuple(worth), tuple(idle)


def why_not(proposal: Proposal, found: Sequence[Cause], total_s: float | None) -> WhyNot | None:
    """Why a change is not worth making; None when it is."""
    saves = proposal.saves_s
    if proposal.blocked is not None:
        return proposal.blocked
    if not set(proposal.causes) & set(found):
        return "wrong_place"
    if saves.low <= 0.0 and saves.high > WORTH_S:
        return "may_slow_down"
    if saves.likely < max(WORTH_S, WORTH_FRAC * (total_s or 0.0)):
        return "too_little"
    return None


def _cure(proposal: Proposal, found: Sequence[Cause], observed: Observed) -> Cure:
    return Cure(
        cure=proposal.cure,
        for_cause=next(cause for cause in found if cause in proposal.causes),
        saves_s=proposal.saves_s,
        how=proposal.how,
        check=verify_line(observed.run, proposal.cure),
    )
