"""What a diagnosis predicted of a change, and whether it came true."""

from __future__ import annotations

from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace

from twospeed.cures.cure import CURES, CureName
from twospeed.cures.registry import weigh
from twospeed.findings.observed import Observed, observe
from twospeed.findings.prompt_cache import REUSABLE_FRAC
from twospeed.findings.registry import find_all
from twospeed.fits.interval import Interval
from twospeed.records.errors import UsageError
from twospeed.records.ledger import Held
from twospeed.records.run import Run, Workload

REUSE_CURES: frozenset[CureName] = frozenset({"turn reuse on", "keep the prefix stable"})
"""Seen only from the second turn of a conversation on."""


class Prediction(Struct, frozen=True, kw_only=True):
    """Seconds that a change was said to save on one request of the workload."""

    cure: CureName
    listed: str
    """"cures", or "wont_help" where the diagnosis advised against it."""
    saves_s: Interval


def prediction_for(before: Run, name: str) -> Prediction:
    """The prediction that a saved diagnosis makes, found by the name of the change or its cause.

    Args:
        before: the saved run, which is diagnosed again.
        name: a cure ("larger batch", also with hyphens), or the beginning of a cause
            ("prefill.batch") that it acts on; what follows "=" is the user's own note.

    Raises:
        UsageError: there is no such cure, or this diagnosis says nothing of it.
    """
    observed = observe(before)
    cures, idle = weigh(observed, find_all(observed))
    wanted = name.partition("=")[0].strip().lower().replace("-", " ")
    known = {
        one.cure: Prediction(cure=one.cure, listed="wont_help", saves_s=one.saves_s) for one in idle
    }
    known |= {
        one.cure: Prediction(cure=one.cure, listed="cures", saves_s=one.saves_s) for one in cures
    }
    if wanted in known:
        return known[wanted]
    by_cause = [one.cure for one in cures if wanted and one.for_cause.startswith(wanted)]
    if by_cause:
        return known[by_cause[0]]
    raise _unknown(name, wanted, list(known))


def request_after(cure: CureName, observed: Observed) -> Workload:
    """The request that is left to do once a change is made; most changes leave it as it was."""
    work, reasons = observed.run.workload, observed.reasoning.share or 0.0
    if cure == "shorter prompt":
        half = work.prompt_tokens // 2
        return replace(
            work, prompt_tokens=half, cached_prompt_tokens=min(work.cached_prompt_tokens, half)
        )
    if cure == "shorter answer":
        return replace(work, output_tokens=max(round(work.output_tokens * (1 + reasons) / 2), 1))
    if cure == "less reasoning":
        return replace(work, output_tokens=max(round(work.output_tokens * (1 - reasons / 2)), 1))
    if cure in REUSE_CURES:
        cached = int(REUSABLE_FRAC.likely * work.prompt_tokens)
        return replace(work, cached_prompt_tokens=max(cached, work.cached_prompt_tokens))
    return work


def score(predicted: Interval, measured: Interval | None) -> Held:
    """Whether a prediction held.

    Args:
        predicted: seconds saved.
        measured: seconds saved, with the interval of the comparison; None when nothing is known.
    """
    if measured is None:
        return "cannot tell"
    if predicted.holds(measured.likely):
        return "yes"
    apart = measured.high < predicted.low or measured.low > predicted.high
    return "no" if apart else "cannot tell"


def _unknown(name: str, wanted: str, predicted: list[CureName]) -> UsageError:
    if wanted in CURES:
        said = ", ".join(predicted) or "nothing, since nothing was slow"
        return UsageError(
            f"That diagnosis predicted nothing of '{wanted}'.", hint=f"It spoke of: {said}."
        )
    close = get_close_matches(wanted, CURES, n=3) or list(predicted)
    return UsageError(
        f"--cure {name}: no such change.",
        hint="Did you mean " + " or ".join(close) + "?" if close else "",
    )
