"""Not reading again what the turn before already read."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.findings.prompt_cache import REUSABLE_FRAC, reuse_saving_s

_CAUSES: tuple[Cause, ...] = (
    "prompt_cache.disabled",
    "prompt_cache.prefix_changed",
    "prompt.large",
    "prefill.compute_low",
    "prefill.batch_too_small",
)

_TURN_ON = {
    "llama-server": 'send "cache_prompt": true and start without --no-cache-prompt',
    "vllm": "start with --enable-prefix-caching",
    "sglang": "start without --disable-radix-cache",
}
_TURN_ON_ELSEWHERE = "switch prompt (prefix) caching on, or use a runtime that has it"


def propose(observed: Observed) -> list[Proposal]:
    """What reuse would save from the second turn on; nothing without a prefill curve."""
    saved = reuse_saving_s(observed)
    if saved is None:
        return []
    stable = Proposal(
        cure="keep the prefix stable",
        causes=_CAUSES[1:],
        wait_s=saved,
        how=_keep_stable(observed),
    )
    if observed.reuse.reused != "no":
        return [stable]
    turn_on = Proposal(
        cure="turn reuse on",
        causes=_CAUSES,
        wait_s=saved,
        how=(_TURN_ON.get(observed.run.source.runtime or "", _TURN_ON_ELSEWHERE),),
    )
    blocked = Proposal(
        cure=stable.cure, causes=_CAUSES, wait_s=stable.wait_s, blocked="reuse_is_off"
    )
    return [turn_on, blocked]


def _keep_stable(observed: Observed) -> tuple[str, ...]:
    same = f"{REUSABLE_FRAC.likely * 100:.0f} %"
    how = [
        f"only append to the prompt; counted with {same} of it unchanged",
        "no clock, random id or changing tool list early in it",
    ]
    if observed.reuse.reused == "unknown":
        how.append("whether this runtime reuses a prompt was not seen; check that first")
    return tuple(how)
