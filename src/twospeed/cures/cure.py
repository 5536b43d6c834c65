"""What a change would save on this user's own request, and what would not be worth making.

A cure is one module with `propose(observed)`: it describes its change of the request's seconds as
a function (see `pace.py`), and names the causes that it acts on. `registry.py` finds it and
decides.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct, field

from twospeed.findings.finding import Cause
from twospeed.fits.interval import Interval

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
"""What can be changed: a closed list, part of the JSON contract."""

CURES: tuple[CureName, ...] = get_args(CureName)

WhyNot = Literal["wrong_place", "too_little", "may_slow_down", "reuse_is_off", "after_the_wait"]
"""Why a change is not worth making here.

wrong_place: it acts on a phase that is not what makes this slow. too_little: under 5 % of what is
slow, or 0.3 s. may_slow_down: the interval holds no change or a loss. reuse_is_off: it only pays
once the runtime reuses prompts. after_the_wait: it shortens what follows the slow wait.
"""

NOTHING = Interval(0.0, 0.0, 0.0)


class Proposal(Struct, frozen=True, kw_only=True):
    """One change and what it would save on one request of the workload; a loss is negative."""

    cure: CureName
    causes: tuple[Cause, ...]
    """Causes that it acts on, most fitting first."""
    wait_s: Interval = NOTHING
    """Seconds saved before the first answer token."""
    answer_s: Interval = NOTHING
    """Seconds saved after it."""
    saves_s: Interval = NOTHING
    """Seconds saved on the whole request, computed as one: errors of the parts may cancel."""
    how: tuple[str, ...] = ()
    check: str = ""
    """Command line that tests the prediction."""
    blocked: WhyNot | None = None
    """Why it cannot pay here, whatever its seconds."""
    assumes_cause: bool = False
    """True where its seconds hold only if one of its causes was found: unsaid otherwise."""


class Cure(Struct, frozen=True, kw_only=True):
    """A change worth making."""

    cure: CureName
    for_cause: Cause = field(name="for")
    saves_s: Interval
    wait_s: Interval
    """Of it, before the first answer token."""
    answer_s: Interval
    """Of it, after that."""
    how: tuple[str, ...]
    check: str
    """Command line that tests the prediction."""


class WontHelp(Struct, frozen=True, kw_only=True):
    """A popular change that would not pay here."""

    cure: CureName
    saves_s: Interval
    why: WhyNot
