"""A model that stays loaded, a slot that is free."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

QUEUE_SAVED_FRAC = Interval(0.5, 1.0, 1.0)
"""A second slot shares the machine: half of the wait may come back as slower work."""

_LOADED = {
    "ollama": 'set OLLAMA_KEEP_ALIVE=-1, or send "keep_alive": -1; keep num_ctx the same in '
    "every request, a change reloads the model",
}
_LOADED_ELSEWHERE = "switch off unloading after idle time; do not change models between requests"
_SLOT = {
    "llama-server": "start with --parallel 2, and give each conversation its own id_slot",
    "ollama": "set OLLAMA_NUM_PARALLEL=2",
    "vllm": "raise --max-num-seqs",
}
_SLOT_ELSEWHERE = "raise the number of requests that the server works on at once"


def propose(observed: Observed) -> list[Proposal]:
    """What is saved by not loading and by not queueing, where either was seen."""
    runtime, budget = observed.run.source.runtime or "", observed.budget
    proposals = []
    if budget.load_s:
        proposals.append(
            Proposal(
                cure="keep the model loaded",
                causes=("model.load",),
                wait_s=Interval(budget.load_s, budget.load_s, budget.load_s),
                how=(_LOADED.get(runtime, _LOADED_ELSEWHERE),),
            )
        )
    if budget.queue_s:
        proposals.append(
            Proposal(
                cure="give the conversation its own slot",
                causes=("server.queue",),
                wait_s=QUEUE_SAVED_FRAC.scaled(budget.queue_s),
                how=(_SLOT.get(runtime, _SLOT_ELSEWHERE),),
            )
        )
    return proposals
