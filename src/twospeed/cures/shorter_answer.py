"""Half the answer, or half the reasoning before it: fewer tokens at the same speed."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.findings.budget import largest_wait_part
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.findings.phase_times import decode_steps
from twospeed.fits.interval import Interval

_CAUSES: tuple[Cause, ...] = (
    "decode.output_long",
    "decode.bandwidth_bound",
    "decode.below_limit",
    "decode.depth",
    "placement.partial_offload",
)
_THINK = {"ollama": 'send "think": false'}


def propose(observed: Observed) -> list[Proposal]:
    """What half the answer and half the reasoning would save; nothing without a decode curve."""
    work, share = observed.run.workload, observed.reasoning.share or 0.0
    steps = decode_steps(work)
    runtime = observed.run.source.runtime or ""
    proposals = []
    answer = _last_steps_s(observed, steps * (1.0 - share) / 2)
    if answer is not None:
        limit = '"num_predict"' if runtime == "ollama" else '"max_tokens"'
        how = f"ask for brevity; cap it with {limit}: {work.output_tokens // 2}"
        reasons_long = largest_wait_part(observed.budget) == "reasoning_s"
        late = reasons_long and observed.stream.verdict != "slow"
        proposals.append(
            Proposal(
                cure="shorter answer",
                causes=_CAUSES,
                answer_s=answer,
                how=(how,),
                blocked="after_the_wait" if late else None,
            )
        )
    reasoning = _last_steps_s(observed, steps * share / 2)
    if reasoning is not None:
        how = _THINK.get(runtime, "lower the reasoning effort, or switch thinking off")
        proposals.append(
            Proposal(cure="less reasoning", causes=_CAUSES, wait_s=reasoning, how=(how,))
        )
    return proposals


def _last_steps_s(observed: Observed, fewer: float) -> Interval | None:
    """Seconds of the deepest decode steps: the ones that fall away."""
    fit, work = observed.decode, observed.run.workload
    if fit is None or fewer < 1.0:
        return None
    return fit.seconds(work.prompt_tokens + decode_steps(work) - fewer, fewer)
