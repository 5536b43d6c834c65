"""How much of a model lies in graphics memory, and what full offload would save."""

from __future__ import annotations

from twospeed.fits.interval import Interval
from twospeed.records.run import RuntimeFacts

SLOWER = Interval(4.0, 10.0, 18.0)
"""How many times slower system memory is than the memory of a graphics card.

Source: docs/physics.md, Offload: 14B on 448 GB/s beside dual-channel DDR4, 83 % of the layers on
the card give 29 % of full speed, hence 15; unified or multi-channel memory is nearer to 4.
"""
ALL_OF_IT = 0.99
"""Sizes are rounded by the runtimes that tell them."""


def gpu_share(facts: RuntimeFacts) -> float | None:
    """Share of the model in graphics memory when it is split; None when it is not, or unknown.

    A model wholly on the processor is no split: there may be no graphics card at all.
    """
    if facts.size_bytes and facts.size_vram_bytes is not None:
        share = facts.size_vram_bytes / facts.size_bytes
    elif facts.layers_total and facts.layers_offloaded is not None:
        share = facts.layers_offloaded / facts.layers_total
    else:
        return None
    return share if 0.0 < share < ALL_OF_IT else None


def offload_saving_frac(share: float) -> Interval:
    """Share of the decode time that full offload would save: harmonic in the two memories.

    `t = share + (1 - share) · r` against `t = 1`, r being how much slower system memory is.
    """
    return SLOWER.through(lambda slower: 1.0 - 1.0 / (share + (1.0 - share) * slower))
