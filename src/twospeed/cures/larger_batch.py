"""A larger batch: the weights are read once for more prompt tokens, and attention is tiled.

A pass over b prompt tokens reads what a decode step reads, except the output matrix. So of the
seconds of a prompt token, `pass / b` are reading, and a batch of b' leaves `pass / b'`; a decode
step measures the pass. Below a tile, attention costs each token what it costs a decode step, and
from a tile on a small part of that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twospeed.cures.computing import Factors, computes_on
from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob, whole
from twospeed.cures.pace import Change, Pace, chance
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import Tried, change_line, present_value
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

USUAL_BATCH = 512
"""From here on a batch keeps most processors busy (the default n_ubatch of llama.cpp)."""
TILE = 64
"""Batch from which attention is tiled. Source: measured, docs/physics.md, Settings."""
PASS_OF_STEP = Interval(0.6, 0.8, 1.0)
"""A pass as a part of a decode step, output matrix left out: no sampling, no synchronisation.

Source: measured, docs/physics.md, Settings: .6 to .8 with batches of 8 and 32.
"""
TILED_OF_DEPTH = Factors(processor=Interval(0.05, 0.08, 0.15), graphics=Interval(0.05, 0.15, 0.4))
"""Tiled attention as a part of what depth costs a decode step, for each token looked back at.

Source: measured, docs/physics.md, Settings: .07 on two cores; a card reads the cache faster.
"""
LEAST_LEFT = 0.05
"""No batch brings the cost of a prompt token below this part of what it was."""
_CAUSES: tuple[Cause, ...] = ("prefill.batch_too_small", "prefill.compute_low")
_OTHERWISE = "raise the batch size of prefill"


def propose(observed: Observed) -> list[Proposal]:
    """What the usual batch would save; nothing where the present one is unknown or as large."""
    now, change = batch_tokens(observed), batch_of(observed, USUAL_BATCH)
    if now is None or now >= USUAL_BATCH or change is None:
        return []
    new, run = str(USUAL_BATCH), observed.run
    small = [name for name, size in batch_sizes(observed).items() if size < USUAL_BATCH]
    lines = [change_line(run, name, new, otherwise=f"{_OTHERWISE} to {new}") for name in small]
    return proposal(
        observed,
        "larger batch",
        _CAUSES,
        change,
        how=(*dict.fromkeys(lines), f"now {now}; it costs some memory"),
        tried=Tried(setting=small[0], old=str(now), new=new, beside=tuple(small[1:])),
    )


def batch_tokens(observed: Observed) -> int | None:
    """Prompt tokens of one pass: the smaller of the two limits; None where neither is known."""
    return min(batch_sizes(observed).values(), default=None)


def batch_sizes(observed: Observed) -> dict[str, int]:
    """Limits of a pass by the name of their setting, from the runtime or its command line."""
    facts, known = observed.run.facts, {}
    for name, told in (("n_ubatch", facts.n_ubatch), ("n_batch", facts.n_batch)):
        value = present_value(observed.run, name)
        size = told or (int(value) if value is not None and value.isdecimal() else 0)
        if size:
            known[name] = size
    return known


def batch_of(observed: Observed, tokens: int) -> Change | None:
    """Prefill in passes of so many tokens; None where the present batch is not known."""
    now = batch_tokens(observed)
    if now is None or tokens < 1:
        return None
    fewer = 1.0 / now - 1.0 / tokens
    tiled = TILED_OF_DEPTH.on(computes_on(observed))
    of_step = PASS_OF_STEP.scaled(_without_output(observed))

    def change(pace: Pace) -> Pace:
        saved = pace.step_s * chance(of_step, "pass of a step") * fewer
        linear = np.maximum(pace.per_token_s - saved, LEAST_LEFT * pace.per_token_s)
        bent = pace.per_token2_s
        if now < TILE <= tokens:
            bent = np.minimum(bent, pace.depth_s * chance(tiled, "tiled attention"))
        return replace(pace, per_token_s=linear, per_token2_s=bent)

    return change


def _without_output(observed: Observed) -> float:
    """Part of a decode step's bytes that a prefill pass reads too."""
    header = observed.run.header
    if header is None or not header.parameters or not header.read_bytes_per_token:
        return 1.0
    if not header.active_parameters:
        return 1.0
    bytes_each = header.file_bytes / header.parameters
    return min(header.active_parameters * bytes_each / header.read_bytes_per_token, 1.0)


def _read(text: str) -> int:
    tokens = whole(text)
    if tokens < 1:
        raise ValueError(text)
    return tokens


KNOB = Knob(
    key="batch",
    form="tokens, such as 512",
    read=_read,
    change=batch_of,
    needs="the present batch size",
)
