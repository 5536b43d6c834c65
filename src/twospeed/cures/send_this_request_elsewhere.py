"""Another server for this request: a nearer one, or one that reads and writes faster."""

from __future__ import annotations

from dataclasses import replace

from twospeed.cures.cure import CureName, Proposal
from twospeed.cures.elsewhere import Remote
from twospeed.cures.pace import Pace, chance, constant
from twospeed.cures.proposing import proposal
from twospeed.findings.finding import CAUSES
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

NETWORK_SAVED = Interval(0.5, 0.9, 1.0)
"""Part of a slow connection that a nearer server does without."""
_CURE: CureName = "send this request elsewhere"


def propose(observed: Observed) -> list[Proposal]:
    """A nearer server; how fast another one works is for its user to say (see `propose_to`)."""
    return proposal(
        observed,
        _CURE,
        ("network.latency",),
        _nearer,
        how=("use a server that is nearer, or keep the connection open between requests",),
        assumes_cause=True,
    )


def propose_to(observed: Observed, remote: Remote) -> list[Proposal]:
    """What a server of known speed would save on this request; negative where it is slower."""

    def there(pace: Pace) -> Pace:
        wait_s = remote.ttft_s + remote.ttft_per_1k_s * pace.prompt_tokens / 1000.0
        none = constant(0.0)
        return replace(
            pace,
            load_s=none,
            queue_s=none,
            network_s=none,
            held_s=none,
            overhead_s=wait_s,
            per_token_s=none,
            per_token2_s=none,
            step_s=constant(1.0 / remote.tps),
            depth_s=none,
        )

    how = (f"counted with {remote.ttft_s:g} s to the first token and {remote.tps:g} tok/s there",)
    return proposal(observed, _CURE, CAUSES, there, how=how)


def _nearer(pace: Pace) -> Pace:
    left = 1.0 - chance(NETWORK_SAVED, "nearer server")
    return replace(pace, network_s=pace.network_s * left)
