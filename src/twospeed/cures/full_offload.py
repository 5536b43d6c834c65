"""The whole model, and its cache, in the memory of one graphics card."""

from __future__ import annotations

from twospeed.cures.cure import Proposal
from twospeed.cures.knob import Knob
from twospeed.cures.pace import Change, Pace, chance, phases_slowed
from twospeed.cures.proposing import proposal
from twospeed.cures.spelling import Tried, change_line
from twospeed.findings.observed import Observed
from twospeed.findings.placement import SLOWER, gpu_share, offload_saving_frac
from twospeed.fits.interval import Interval

ALL_LAYERS = "99"
PREFILL_SHARE = Interval(0.0, 0.5, 1.0)
"""Saving on prefill over that on decode: nobody has measured it, so from nothing to as much."""
CACHE_DECODE_SAVED = Interval(0.3, 0.53, 0.7)
CACHE_PREFILL_SAVED = Interval(0.5, 0.94, 0.97)
"""Source: docs/physics.md, Offload: cache in system memory, decode .47 and prefill .06 as fast."""
ONE_CARD_SAVED = Interval(0.02, 0.04, 0.3)
"""Source: docs/physics.md, Offload: split by layer over several cards, decode .96 as fast."""
_ROOM = "make room first: a smaller context, a smaller quantization or model"
_OTHERWISE = "set GPU offload to all layers"


def propose(observed: Observed) -> list[Proposal]:
    """What each kind of misplacement costs, where the runtime reports it."""
    return [
        *_of_layers(observed),
        *_of_cache(observed),
        *_of_a_forgotten_card(observed),
        *_of_several_cards(observed),
    ]


def all_on_card(observed: Observed) -> Change | None:
    """No layer left in system memory; None where it is not known that some are."""
    share = gpu_share(observed.run.facts)
    return None if share is None else _without(offload_saving_frac(share), PREFILL_SHARE)


def _of_layers(observed: Observed) -> list[Proposal]:
    change = all_on_card(observed)
    if change is None:
        return []
    line = change_line(observed.run, "gpu_layers", ALL_LAYERS, otherwise=_OTHERWISE)
    facts = observed.run.facts
    old = None if facts.layers_offloaded is None else str(facts.layers_offloaded)
    return proposal(
        observed,
        "full offload",
        ("placement.partial_offload", "placement.memory_spill"),
        change,
        how=(line, _ROOM),
        tried=Tried(setting="gpu_layers", old=old, new=ALL_LAYERS),
    )


def _of_cache(observed: Observed) -> list[Proposal]:
    line = change_line(observed.run, "kv_offload", otherwise="keep the KV cache in graphics memory")

    def change(pace: Pace) -> Pace:
        decode = 1.0 - chance(CACHE_DECODE_SAVED, "cache of decode")
        prefill = 1.0 - chance(CACHE_PREFILL_SAVED, "cache of prefill")
        return phases_slowed(pace, prefill=prefill, decode=decode)

    return proposal(
        observed,
        "full offload",
        ("placement.kv_cache_off_gpu",),
        change,
        how=(line, _ROOM),
        tried=Tried(setting="kv_offload", old="off", new="on"),
        assumes_cause=True,
    )


def _of_a_forgotten_card(observed: Observed) -> list[Proposal]:
    saved = Interval(*(1.0 - 1.0 / times for times in (SLOWER.low, SLOWER.likely, SLOWER.high)))
    line = change_line(observed.run, "gpu_layers", ALL_LAYERS, otherwise=_OTHERWISE)
    return proposal(
        observed,
        "full offload",
        ("placement.cpu_fallback",),
        _without(saved, Interval(1.0, 1.0, 1.0)),
        how=(line, "install a build for your card, and its driver"),
        assumes_cause=True,
    )


def _of_several_cards(observed: Observed) -> list[Proposal]:
    return proposal(
        observed,
        "full offload",
        ("placement.multi_device",),
        _without(ONE_CARD_SAVED, Interval(0.0, 0.0, 0.0)),
        how=("put the whole model on one card, if it fits", _ROOM),
        assumes_cause=True,
    )


def _without(decode_saved: Interval, prefill_share: Interval) -> Change:
    def change(pace: Pace) -> Pace:
        saved = chance(decode_saved, "offload")
        decode, prefill = 1.0 - saved, 1.0 - saved * chance(prefill_share, "offload of prefill")
        return phases_slowed(pace, prefill=prefill, decode=decode)

    return change


def _read(text: str) -> str:
    if text != "full":
        raise ValueError(text)
    return text


KNOB = Knob(
    key="offload",
    form="full",
    read=_read,
    change=lambda observed, _: all_on_card(observed),
    needs="a model of which a known part lies in system memory",
)
