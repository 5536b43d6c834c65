"""What a change would save on this user's own request, and what would not be worth making.

A cure is one module with `propose(observed)`; `registry.py` finds it and decides.
"""

from __future__ import annotations

import re
import shlex
from typing import Literal, get_args

from msgspec import Struct, field

from twospeed.findings.finding import Cause
from twospeed.fits.interval import Interval
from twospeed.records.run import Run

CureName = Literal[
    "shorter prompt",
    "keep the prefix stable",
    "give the conversation its own slot",
    "bigger cache",
    "turn reuse on",
    "summarise and start fresh",
    "larger batch",
    "flash attention",
    "full offload",
    "smaller quantization",
    "smaller model",
    "quantized KV cache",
    "smaller context",
    "shorter answer",
    "less reasoning",
    "fewer threads",
    "stop the neighbour",
    "keep the model loaded",
    "stop buffering",
    "faster memory",
    "more compute",
    "send this request elsewhere",
]
CURES: tuple[CureName, ...] = get_args(CureName)

WhyNot = Literal["wrong_place", "too_little", "may_slow_down", "reuse_is_off", "after_the_wait"]
"""Why a change is not worth making here.

wrong_place: it acts on a phase that is not what makes this slow. too_little: under 5 % of the
request or 0.3 s. may_slow_down: the interval holds no change or a loss. reuse_is_off: it only pays
once the runtime reuses prompts. after_the_wait: it shortens what follows the slow wait.
"""

NOTHING = Interval(0.0, 0.0, 0.0)


class Proposal(Struct, frozen=True, kw_only=True):
    """One change and what it would save on one request of the workload."""

    cure: CureName
    causes: tuple[Cause, ...]
    """Causes that it acts on, most fitting first."""
    wait_s: Interval = NOTHING
    """Seconds saved before the first answer token."""
    answer_s: Interval = NOTHING
    """Seconds saved after it."""
    how: tuple[str, ...] = ()
    blocked: WhyNot | None = None
    """Why it cannot pay here, whatever its seconds."""

    @property
    def saves_s(self) -> Interval:
        """Seconds saved on the whole request."""
        return self.wait_s.plus(self.answer_s)


class Cure(Struct, frozen=True, kw_only=True):
    """A change worth making."""

    cure: CureName
    for_cause: Cause = field(name="for")
    saves_s: Interval
    how: tuple[str, ...]
    check: str
    """Command line that tests the prediction."""


class WontHelp(Struct, frozen=True, kw_only=True):
    """A popular change that would not pay here."""

    cure: CureName
    saves_s: Interval
    why: WhyNot


def spared(before: Interval, after: Interval) -> Interval:
    """Seconds between two values of one curve.

    Both lie on the same curve, so their errors go together: the interval is that of the curve in
    proportion, not the wide one of two independent numbers.
    """
    likely = max(before.likely - after.likely, 0.0)
    if before.likely <= 0.0:
        return NOTHING
    return Interval(before.low, before.likely, before.high).scaled(likely / before.likely)


def verify_line(run: Run, cure: CureName) -> str:
    """The command that scores this prediction once the change is made; FILE is that of --save."""
    source = run.source
    if source.kind == "engine":
        where = "--embedded"
    elif source.kind in ("live", "simulated"):
        where = shlex.quote(re.sub(r"[^\x21-\x7e]", "", source.where)) or "URL"
    else:
        where = "URL"
    return f"twospeed verify --before FILE {where} --cure {shlex.quote(cure)}"
