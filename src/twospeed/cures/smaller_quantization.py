"""Fewer bytes of weights: only the part of decode that reads them, and less than in proportion."""

from __future__ import annotations

import math
import re

from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob
from twospeed.cures.pace import Change, Pace, chance, slowed
from twospeed.cures.proposing import proposal
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval

PROPORTIONAL = Interval(0.6, 0.8, 0.95)
"""Speed reached with half the bytes, as a share of twice the speed.

Source: docs/physics.md: F16 to 4 bits reaches 92 to 96 % of proportional on Apple base, 75 to 87 %
on most GPUs, 59 to 66 % on Ultra and H100.
"""
BELOW_FOUR_BITS = Interval(0.4, 0.55, 0.7)
"""The same to below 4 bits: unpacking costs more than reading saves on CPUs and older GPUs.

Source: docs/physics.md: 7950X Q4_0 11.2, IQ2_XXS 5.5 tok/s; P40 Q4_0 57, Q3_K_S 31.
"""
SMALL_BITS = 4.0
BITS = {
    "IQ1_S": 2.0,
    "IQ1_M": 2.15,
    "IQ2_XXS": 2.38,
    "IQ2_XS": 2.59,
    "IQ2_S": 2.74,
    "IQ2_M": 2.93,
    "Q2_K": 3.16,
    "IQ3_XXS": 3.25,
    "Q3_K_S": 3.64,
    "IQ3_M": 3.76,
    "Q3_K_M": 4.0,
    "Q3_K_L": 4.3,
    "IQ4_XS": 4.46,
    "Q4_0": 4.66,
    "Q4_K_S": 4.67,
    "IQ4_NL": 4.68,
    "Q4_K_M": 4.89,
    "Q4_1": 5.12,
    "Q5_0": 5.57,
    "Q5_K_S": 5.57,
    "Q5_K_M": 5.7,
    "Q6_K": 6.56,
    "Q8_0": 8.5,
    "F16": 16.0,
    "BF16": 16.0,
    "F32": 32.0,
}
"""Bits per weight of whole files of an 8B model with 128,000 words, rounded.

Source: llama.cpp tools/quantize/README.md; they agree with the sizes of published files.
"""
_CAUSES: tuple[Cause, ...] = (
    "decode.bandwidth_bound",
    "decode.below_limit",
    "placement.partial_offload",
    "placement.memory_spill",
    "decode.depth",
    "decode.output_long",
)


def propose(observed: Observed) -> list[Proposal]:
    """What half the bytes would save; prefill is left as it is."""
    bits = bits_per_weight(observed)
    change = fewer_bytes(0.5, bits)
    return proposal(observed, "smaller quantization", _CAUSES, change, how=(_how(bits),))


def fewer_bytes(ratio: float, bits: float | None) -> Change:
    """The weights in so many of the present bytes.

    Args:
        ratio: bytes then over bytes now; above 1 the step takes longer by the same rule.
        bits: bits of one weight now, or None where that is not known.
    """
    low = bits is not None and bits * min(ratio, 1.0) < SMALL_BITS
    reached = BELOW_FOUR_BITS if low else PROPORTIONAL
    doublings = min(abs(math.log2(ratio)), 1.0)
    lost = reached.through(lambda share: share**doublings).divided_into(1.0)
    steps = lost.scaled(ratio) if ratio <= 1.0 else lost.divided_into(ratio)

    def change(pace: Pace) -> Pace:
        return slowed(pace, step=chance(steps, "bytes of the weights"))

    return change


def bits_per_weight(observed: Observed) -> float | None:
    """Bits of one weight: bytes over parameters, else those of the named type."""
    facts, header = observed.run.facts, observed.run.header
    if header is not None and header.parameters:
        return 8.0 * header.file_bytes / header.parameters
    if facts.size_bytes and facts.parameters:
        return 8.0 * facts.size_bytes / facts.parameters
    name = facts.quantization or ""
    digits = re.search(r"(\d+)", name)
    return BITS.get(name.upper(), float(digits.group(1)) if digits else None)


def _how(bits: float | None) -> str:
    if bits is None:
        return "use a file of half the size: 4-bit (Q4_K_M, AWQ) where the weights have 8 or 16"
    return f"use a file of half the size: {bits:.0f} bits per weight now, about {bits / 2:.0f} then"


def _read(text: str) -> float:
    if text.upper() not in BITS:
        raise ValueError(text)
    return BITS[text.upper()]


def _asked(observed: Observed, wanted_bits: float) -> Change | None:
    bits = bits_per_weight(observed)
    return fewer_bytes(wanted_bits / bits, bits) if bits else None


KNOB = Knob(
    key="quant",
    form="a type such as q4_k_m or q8_0",
    read=_read,
    change=_asked,
    needs="the present bits per weight",
)
