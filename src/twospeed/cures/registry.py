"""Which changes are worth making: a module of this room with `propose(observed)` is asked.

A change goes to the cures when it acts on a cause that was found and saves enough; else it is
named among those that will not help, with its seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from twospeed import cures
from twospeed.cures.cure import CURES, Cure, CureName, Proposal, WhyNot, WontHelp
from twospeed.cures.elsewhere import Remote
from twospeed.cures.send_this_request_elsewhere import propose_to
from twospeed.findings.finding import Cause, Finding
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

WORTH_FRAC = 0.05
WORTH_S = 0.3
"""Under this share of what is slow, or these seconds, nobody notices."""
ASKED_FOR: tuple[CureName, ...] = (
    "smaller quantization",
    "shorter prompt",
    "larger batch",
    "more compute",
    "faster memory",
    "full offload",
    "fewer threads",
    "smaller context",
    "flash attention",
    "quantized KV cache",
    "smaller model",
    "shorter answer",
)
"""What people try first, whatever is slow; the others follow."""

Propose = Callable[[Observed], list[Proposal]]


@cache
def proposers() -> tuple[Propose, ...]:
    """The `propose` of every cure module."""
    names = [f"{cures.__name__}.{module.name}" for module in iter_modules(cures.__path__)]
    modules = [import_module(name) for name in names]
    return tuple(module.propose for module in modules if hasattr(module, "propose"))


def weigh(
    observed: Observed, findings: Sequence[Finding], remote: Remote | None = None
) -> tuple[tuple[Cure, ...], tuple[WontHelp, ...]]:
    """The changes worth making, largest saving first, and the others, most asked-for first.

    Nothing is proposed where nothing was found, or where it is not known what is slow.

    Args:
        observed: the run.
        findings: its causes.
        remote: a server that the request could be sent to, if the user knows one.
    """
    if not findings or observed.slow_phase in ("none", "unknown"):
        return (), ()
    found = [finding.cause for finding in findings]
    proposals = [one for propose in proposers() for one in propose(observed)]
    proposals += [] if remote is None else propose_to(observed, remote)
    worth, idle = [], []
    worth_s = least_worth_s(observed)
    for proposal in _best_of_each(proposals, found, worth_s):
        why = why_not(proposal, found, worth_s)
        if why is None:
            worth.append(_cure(proposal, found))
        else:
            saves_s = _left_to_save(proposal, findings, observed)
            idle.append(
                WontHelp(
                    cure=proposal.cure,
                    saves_s=saves_s if why == "wrong_place" else proposal.saves_s,
                    why=why,
                )
            )
    worth.sort(key=lambda cure: -cure.saves_s.likely)
    idle.sort(key=_rank)
    return tuple(worth), tuple(idle)


def least_worth_s(observed: Observed) -> float:
    """Seconds from which a saving is noticed: in the wait where that is slow, else in the whole."""
    slow_wait = observed.wait.verdict == "slow" and observed.stream.verdict != "slow"
    felt_s = observed.wait.seconds if slow_wait else observed.budget.total_s
    return max(WORTH_S, WORTH_FRAC * (felt_s or 0.0))


def why_not(proposal: Proposal, found: Sequence[Cause], worth_s: float) -> WhyNot | None:
    """Why a change is not worth making; None when it is.

    Args:
        proposal: the change.
        found: causes that were found.
        worth_s: see `least_worth_s`.
    """
    saves = proposal.saves_s
    if proposal.blocked is not None:
        return proposal.blocked
    if not set(proposal.causes) & set(found):
        return "wrong_place"
    if saves.low <= 0.0 and max(saves.high, -saves.likely) > WORTH_S:
        return "may_slow_down"
    return "too_little" if saves.likely < worth_s else None


def _best_of_each(
    proposals: Iterable[Proposal], found: Sequence[Cause], worth_s: float
) -> list[Proposal]:
    """One proposal of each change: one that is worth making, else the one that saves most."""
    best: dict[CureName, tuple[tuple[bool, float], Proposal]] = {}
    for proposal in proposals:
        if proposal.assumes_cause and not set(proposal.causes) & set(found):
            continue
        rank = (why_not(proposal, found, worth_s) is None, proposal.saves_s.likely)
        if proposal.cure not in best or rank > best[proposal.cure][0]:
            best[proposal.cure] = (rank, proposal)
    return [proposal for _, proposal in best.values()]


def _left_to_save(proposal: Proposal, findings: Sequence[Finding], observed: Observed) -> Interval:
    """What a change saves of the seconds that the findings do not blame on other causes."""
    left = {
        phase: 1.0 - _blamed_frac(phase, findings, seconds)
        for phase, seconds in (("prefill", observed.prefill_s), ("decode", observed.decode_s))
    }
    return proposal.wait_s.scaled(left["prefill"]).plus(proposal.answer_s.scaled(left["decode"]))


def _blamed_frac(phase: str, findings: Sequence[Finding], seconds: Interval | None) -> float:
    blamed = sum(one.costs_s or 0.0 for one in findings if one.phase in (phase, "both"))
    if seconds is None or seconds.likely <= 0.0:
        return 0.0
    return min(max(blamed / seconds.likely, 0.0), 1.0)


def _rank(idle: WontHelp) -> int:
    return (*ASKED_FOR, *CURES).index(idle.cure)


def _cure(proposal: Proposal, found: Sequence[Cause]) -> Cure:
    return Cure(
        cure=proposal.cure,
        for_cause=next(cause for cause in found if cause in proposal.causes),
        saves_s=proposal.saves_s,
        wait_s=proposal.wait_s,
        answer_s=proposal.answer_s,
        how=proposal.how,
        check=proposal.check,
    )
