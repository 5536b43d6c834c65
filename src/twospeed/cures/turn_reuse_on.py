"""Not reading again what the turn before already read: reuse switched on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob, amount
from twospeed.cures.pace import Change, Factor, Pace, chance
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import Tried, change_line, request_line
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.findings.prompt_cache import REUSABLE_FRAC, reuse_is_off
from twospeed.fits.interval import Interval

_CAUSES: tuple[Cause, ...] = (
    "prompt_cache.disabled",
    "prompt_cache.prefix_changed",
    "prompt.large",
    "prefill.compute_low",
    "prefill.batch_too_small",
)
_OTHERWISE = "switch prompt (prefix) caching on, or use a runtime that has it"


def propose(observed: Observed) -> list[Proposal]:
    """What reuse would save from the second turn on; nothing where a prompt is reused already."""
    if not reuse_is_off(observed):
        return []
    run = observed.run
    by_request = request_line(run, "cache_prompt", otherwise=_OTHERWISE)
    by_flag = change_line(run, "prefix_cache", otherwise=_OTHERWISE)
    return proposal(
        observed,
        "turn reuse on",
        _CAUSES,
        reused(REUSABLE_FRAC),
        how=tuple(dict.fromkeys((by_flag, by_request))),
        tried=_tried(observed),
    )


def _tried(observed: Observed) -> Tried:
    off, on = ("off", "on") if observed.run.source.kind == "engine" else ("false", "true")
    return Tried(setting="cache_prompt", old=off, new=on)


def reused(part: Interval | Factor) -> Change:
    """So much of the prompt comes from the cache, or what does now where that is more."""

    def change(pace: Pace) -> Pace:
        frac = chance(part, "reusable part") if isinstance(part, Interval) else part
        cached = np.maximum(frac * pace.prompt_tokens, pace.cached_tokens)
        # A full hit still processes its last token.
        most = np.maximum(pace.prompt_tokens - 1.0, 0.0)
        return replace(pace, cached_tokens=np.minimum(cached, most))

    return change


def _read(text: str) -> float | bool:
    return text == "on" if text in {"on", "off"} else amount(text)


def _asked(observed: Observed, wanted: float | bool) -> Change:  # noqa: ARG001 (one form for all)
    if wanted is False:
        return lambda pace: replace(pace, cached_tokens=pace.cached_tokens * 0.0)
    if wanted is True:
        return reused(REUSABLE_FRAC)
    return lambda pace: reused(-wanted if wanted <= 0 else wanted / pace.prompt_tokens)(pace)


KNOB = Knob(
    key="cache",
    form="on, off, a part such as 0.9, or tokens",
    read=_read,
    change=_asked,
    needs="nothing more",
    rank=3,
)
