"""Half the prompt: prefill shrinks, and with the depth a little of decode."""

from __future__ import annotations

from twospeed.cures.cure import Proposal, spared
from twospeed.cures.decode_time import parted
from twospeed.findings.observed import Observed
from twospeed.findings.phase_times import decode_steps


def propose(observed: Observed) -> list[Proposal]:
    """What half the prompt would save; nothing without a prefill curve."""
    work, prefill, decode = observed.run.workload, observed.prefill, observed.decode
    if prefill is None or observed.prefill_s is None:
        return []
    half = work.prompt_tokens // 2
    cached = min(work.cached_prompt_tokens, half)
    wait_s = spared(observed.prefill_s, prefill.seconds(half, cached))
    proposal = Proposal(
        cure="shorter prompt",
        causes=(
            "prompt.large",
            "prefill.compute_low",
            "prefill.batch_too_small",
            "decode.depth",
            "prompt_cache.disabled",
            "prompt_cache.cannot_rewind",
        ),
        wait_s=wait_s,
        how=(
            f"send {half:,} tokens instead of {work.prompt_tokens:,}",
            "fewer files and tool definitions, a shorter system prompt, older turns summarised",
        ),
    )
    if decode is None or observed.decode_s is None:
        return [proposal]
    saved = spared(observed.decode_s, decode.seconds(half, decode_steps(work)))
    return [parted(proposal, saved, observed)]
