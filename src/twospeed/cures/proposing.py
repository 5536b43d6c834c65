"""From a change of the pace to a proposal with its seconds."""

from __future__ import annotations

from twospeed.cures.cure import NOTHING, CureName, Proposal, WhyNot
from twospeed.cures.pace import Change, pace_of, saved_between
from twospeed.cures.spelling import Tried, verify_line
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed


def proposal(
    observed: Observed,
    cure: CureName,
    causes: tuple[Cause, ...],
    change: Change,
    *,
    how: tuple[str, ...],
    tried: Tried | None = None,
    blocked: WhyNot | None = None,
    assumes_cause: bool = False,
) -> list[Proposal]:
    """What a change would save; empty where nothing that it acts on was measured.

    Args:
        observed: the run.
        cure: name of the change.
        causes: what it acts on, most fitting first.
        change: what becomes of the request's seconds.
        how: concrete steps, the exact one first.
        tried: the setting that it changes, if it is one.
        blocked: why it cannot pay here, whatever its seconds.
        assumes_cause: its seconds hold only where one of its causes was found.
    """
    now = pace_of(observed)
    saved = saved_between(observed, now, change(now))
    if saved.total_s is None:
        return []
    return [
        Proposal(
            cure=cure,
            causes=causes,
            wait_s=saved.wait_s or NOTHING,
            answer_s=saved.answer_s or NOTHING,
            saves_s=saved.total_s,
            how=how,
            check=verify_line(observed.run, cure, tried),
            blocked=blocked,
            assumes_cause=assumes_cause,
        )
    ]
