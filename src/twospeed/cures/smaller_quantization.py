"""Half the bytes of weights: only the part of decode that reads them, and less than half of it."""

from __future__ import annotations

import re

from twospeed.cures.cure import Proposal
from twospeed.cures.decode_time import parted
from twospeed.findings.observed import Observed
from twospeed.findings.phase_times import decode_steps
from twospeed.fits.interval import Interval

PROPORTIONAL = Interval(0.6, 0.8, 0.95)
"""Speed reached with half the bytes, as a share of twice the speed.

Source: docs/physics.md: F16 to 4 bits reaches 92 to 96 % of proportional on Apple base, 75 to 87 %
on most GPUs, 59 to 66 % on Ultra and H100.
"""
BELOW_FOUR_BITS = Interval(0.4, 0.55, 0.7)
"""The same from 4 bits down: unpacking costs more than reading saves on CPUs and older GPUs.

Source: docs/physics.md: 7950X Q4_0 11.2, IQ2_XXS 5.5 tok/s; P40 Q4_0 57, Q3_K_S 31.
"""
SMALL_BITS = 5.0


def propose(observed: Observed) -> list[Proposal]:
    """What half the bytes would save; prefill is left as it is."""
    fit = observed.decode
    if fit is None:
        return []
    bits = bits_per_weight(observed)
    reached = BELOW_FOUR_BITS if bits is not None and bits < SMALL_BITS else PROPORTIONAL
    weights_s = fit.per_token_s * decode_steps(observed.run.workload)
    saved = reached.through(lambda share: weights_s * (1.0 - 1.0 / (2.0 * share)))
    proposal = Proposal(
        cure="smaller quantization",
        causes=(
            "decode.bandwidth_bound",
            "decode.below_limit",
            "placement.partial_offload",
            "decode.depth",
            "decode.output_long",
        ),
        how=(_how(bits),),
    )
    return [parted(proposal, saved, observed)]


def bits_per_weight(observed: Observed) -> float | None:
    """Bits of one weight: bytes over parameters, else the digit in the name of the type."""
    facts, header = observed.run.facts, observed.run.header
    if header is not None and header.parameters:
        return 8.0 * header.file_bytes / header.parameters
    if facts.size_bytes and facts.parameters:
        return 8.0 * facts.size_bytes / facts.parameters
    named = re.search(r"(\d+)", facts.quantization or "")
    return float(named.group(1)) if named else None


def _how(bits: float | None) -> str:
    if bits is None:
        return "use a file of half the size: 4-bit (Q4_K_M, AWQ) where the weights have 8 or 16"
    return f"use a file of half the size: {bits:.0f} bits per weight now, about {bits / 2:.0f} then"
