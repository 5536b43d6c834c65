"""A cache of fewer bytes: less to read at depth, more to unpack, and often a slower attention."""

from __future__ import annotations

from twospeed.cures.computing import Computes, Factors, computes_on
from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob
from twospeed.cures.pace import Change, Pace, chance, slowed
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import Tried, change_line
from twospeed.findings.finding import Cause
from twospeed.findings.observed import Observed
from twospeed.fits.interval import Interval
from twospeed.limits.ggml_types import bytes_per_weight

CARD_AT_WORST = 1.2
"""A card may lose this much by unpacking."""
PROCESSOR_DEPTH = Interval(0.75, 0.95, 2.1)
"""What depth costs a decode step with q8_0, over f16, on a processor.

Source: docs/physics.md: decode 1.16 times as fast at 2,000, half as fast at 16,000.
"""
PREFILL = Factors(processor=Interval(1.1, 1.6, 2.1), graphics=Interval(0.97, 1.02, 1.15))
"""Prefill with q8_0 over that with f16: attention is then not tiled on a processor.

Source: docs/physics.md, Settings: processor, prefill .48 to .64 times as fast.
"""
USUAL = "q8_0"
_CAUSES: tuple[Cause, ...] = (
    "decode.depth",
    "placement.kv_cache_off_gpu",
    "placement.memory_spill",
    "placement.partial_offload",
)


def propose(observed: Observed) -> list[Proposal]:
    """What q8_0 would save; nothing where the cache is that small already."""
    change = cache_of(observed, USUAL)
    if change is None or _ratio(observed, USUAL) >= 1.0:
        return []
    run, now = observed.run, present_type(observed)
    keys = change_line(run, "kv_type_k", USUAL, otherwise="store the KV cache in 8 bits")
    values = change_line(run, "kv_type_v", USUAL, otherwise=keys)
    return proposal(
        observed,
        "quantized KV cache",
        _CAUSES,
        change,
        how=tuple(dict.fromkeys((keys, values))),
        tried=Tried(setting="kv_type_k", old=now, new=USUAL, beside=("kv_type_v",)),
    )


def present_type(observed: Observed) -> str:
    """Type of the cached keys, f16 where the runtime does not say."""
    return observed.run.facts.kv_type_k or "f16"


def cache_of(observed: Observed, kind: str) -> Change | None:
    """Both phases with a cache of this type; None where a type has no known size."""
    if bytes_per_weight(kind) is None or bytes_per_weight(present_type(observed)) is None:
        return None
    ratio, computes = _ratio(observed, kind), computes_on(observed)
    if ratio == 1.0:
        return lambda pace: pace
    wider = ratio > 1.0
    depth = _depth(1.0 / ratio if wider else ratio, computes)
    depth = depth.divided_into(1.0) if wider else depth

    prefill = PREFILL.on(computes)

    def change(pace: Pace) -> Pace:
        slower = 1.0 if wider else chance(prefill, "attention over fewer bytes")
        fewer = chance(depth, "cache of fewer bytes")
        return slowed(pace, linear=slower, bent=slower, depth=fewer)

    return change


def _depth(ratio: float, computes: Computes) -> Interval:
    card = Interval(ratio, (1.0 + ratio) / 2.0, CARD_AT_WORST)
    if computes == "graphics":
        return card
    if computes == "processor":
        return PROCESSOR_DEPTH
    likely = (card.likely + PROCESSOR_DEPTH.likely) / 2.0
    return Interval(min(card.low, PROCESSOR_DEPTH.low), likely, PROCESSOR_DEPTH.high)


def _ratio(observed: Observed, kind: str) -> float:
    now, then = bytes_per_weight(present_type(observed)), bytes_per_weight(kind)
    return 1.0 if now is None or then is None else then / now


def _read(text: str) -> str:
    if bytes_per_weight(text) is None:
        raise ValueError(text)
    return text.lower()


KNOB = Knob(
    key="kv",
    form="a type such as q8_0, q4_0 or f16",
    read=_read,
    change=cache_of,
    needs="the present cache type",
)
