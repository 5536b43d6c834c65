"""The whole model in graphics memory."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.cures.decode_time import parted
from twospeed.findings.observed import Observed
from twospeed.findings.placement import gpu_share, offload_saving_frac

_HOW = {
    "llama-server": "start with --n-gpu-layers 99",
    "ollama": "check with `ollama ps` that it says 100% GPU",
}
_HOW_ELSEWHERE = "set GPU offload to all layers"
_ROOM = "make room first: a smaller context, a smaller quantization or model"


def propose(observed: Observed) -> list[Proposal]:
    """What full offload would save; nothing where the model is not split."""
    share = gpu_share(observed.run.facts)
    if share is None or observed.decode_s is None:
        return []
    fracs = offload_saving_frac(share)
    seconds = observed.decode_s.likely
    proposal = Proposal(
        cure="full offload",
        causes=("placement.partial_offload",),
        how=(_HOW.get(observed.run.source.runtime or "", _HOW_ELSEWHERE), _ROOM),
    )
    return [parted(proposal, fracs.scaled(seconds), observed)]
