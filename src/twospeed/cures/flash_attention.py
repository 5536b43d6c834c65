"""Attention without its large intermediate matrix: less to write and read at depth.

It helps one phase and may hurt the other, so each has its own range, and a run that does not show
whether it is on already gets one that holds "nothing changes".
"""

from __future__ import annotations

from twospeed.cures.computing import Factors, computes_on, or_nothing
from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob, switch
from twospeed.cures.pace import Change, Pace, chance, slowed
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import Tried, change_line
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

BENT = Factors(processor=Interval(0.15, 0.3, 0.8), graphics=Interval(0.1, 0.35, 1.0))
"""Attention of prefill with it, over that without.

Source: docs/physics.md: processor, prefill of 2,000 tokens 1.3 to 1.6 times as fast; cards, .04 to
.20 of peak without, .21 to .45 with it.
"""
DEPTH = Factors(processor=Interval(0.9, 1.2, 1.85), graphics=Interval(0.1, 0.4, 1.0))
"""What depth costs a decode step with it, over that without.

Source: docs/physics.md: processor, decode at 2,000 .65 to 1.0 times as fast; cards, cache reads .06
to .24 of bandwidth without, .40 to .87 with it.
"""
_CAUSES: tuple[Cause, ...] = (
    "decode.depth",
    "prompt.large",
    "prefill.compute_low",
    "placement.memory_spill",
)


def propose(observed: Observed) -> list[Proposal]:
    """On where it is off or unknown; off where it is on and a processor computes."""
    is_on = observed.run.facts.flash_attn
    if is_on and computes_on(observed) != "processor":
        return []
    wanted = "off" if is_on else "on"
    change = flash_attention(observed, not is_on)
    line = change_line(
        observed.run, "flash_attn", wanted, otherwise=f"switch flash attention {wanted}"
    )
    known = {True: "on", False: "off", None: None}[is_on]
    return proposal(
        observed,
        "flash attention",
        _CAUSES,
        change,
        how=(line, "it acts on both phases, and not always for the better: check both"),
        tried=Tried(setting="flash_attn", old=known or "off", new=wanted),
    )


def flash_attention(observed: Observed, wanted: bool) -> Change:
    """Both kinds of attention with flash attention on or off."""
    is_on, computes = observed.run.facts.flash_attn, computes_on(observed)
    if is_on is wanted:
        return lambda pace: pace
    bent, depth = BENT.on(computes), DEPTH.on(computes)
    if not wanted:
        bent, depth = bent.divided_into(1.0), depth.divided_into(1.0)
    if is_on is None:
        bent, depth = or_nothing(bent), or_nothing(depth)

    def change(pace: Pace) -> Pace:
        return slowed(
            pace,
            bent=chance(bent, "flash attention of prefill"),
            depth=chance(depth, "flash attention of decode"),
        )

    return change


KNOB = Knob(
    key="flash_attn",
    form="on or off",
    read=switch,
    change=flash_attention,
    needs="nothing more",
)
