"""Where weights and context lie: a part of them in slower memory sets the pace."""

from __future__ import annotations

from twospeed.findings.finding import Evidence, Finding
from twospeed.findings.lost_time import shown_by_rows
from twospeed.findings.observed import Observed
from twospeed.findings.offload import ALL_OF_IT, SLOWER, gpu_share, offload_saving_frac
from twospeed.findings.slowness import decode_is_slow, is_slow, is_undivided
from twospeed.findings.table import Contrast, contrasts

__all__ = ["ALL_OF_IT", "SLOWER", "find", "gpu_share", "offload_saving_frac"]

ORDER = 30

KV_OFF_GPU_DECODE = 0.47
KV_OFF_GPU_PREFILL = 0.06
"""Speed that is left of each phase with the KV cache in system memory.

Source: docs/physics.md, Offload.
"""
CLIFF = 1.3
"""Rows of a table that differ in layers only, and so many times in speed, show what these cost."""


def find(observed: Observed) -> list[Finding]:
    """Part of the model, or of its context, lies outside the graphics memory."""
    return [
        *(_kv_rows(observed) or _kv_cache(observed)),
        *(_by_layers(observed) or _by_share(observed)),
    ]


def _by_share(observed: Observed) -> list[Finding]:
    """As the runtime reports. Where the phases are not told, that it costs is only possible."""
    share = gpu_share(observed.run.facts)
    undivided = is_undivided(observed)
    if share is None or not (decode_is_slow(observed) or undivided):
        return []
    saved = offload_saving_frac(share)
    decode_s = observed.decode_s
    return [
        Finding(
            cause="placement.partial_offload",
            phase="unknown" if undivided else "decode",
            certainty="possible" if undivided else "reported",
            costs_s=decode_s.likely * saved.likely if decode_s is not None else None,
            evidence=(
                Evidence(
                    what="share of the model in graphics memory", value=share, origin="server"
                ),
                Evidence(
                    what="system memory is slower by",
                    value=SLOWER.likely,
                    unit="times",
                    origin="assumed",
                ),
            ),
        )
    ]


def _by_layers(observed: Observed) -> list[Finding]:
    """Rows of one table that differ in nothing but the layers on the card."""
    pairs = [pair for pair in contrasts(observed.run.points, "layers") if _is_cliff(pair)]
    if not pairs or not is_slow(observed):
        return []
    slow, fast = pairs[0].slow.settings, pairs[0].fast.settings
    evidence = (
        Evidence(what="layers in graphics memory", value=slow["layers_offloaded"], origin="server"),
        Evidence(what="layers of the faster rows", value=fast["layers_offloaded"], origin="server"),
        Evidence(what="slower by", value=_ratio(pairs[0]), unit="times", origin="server"),
    )
    return [shown_by_rows(observed, pairs[0], "placement.partial_offload", evidence)]


def _is_cliff(pair: Contrast) -> bool:
    return bool(pair.slow.settings["layers_offloaded"]) and _ratio(pair) >= CLIFF


def _ratio(pair: Contrast) -> float:
    return max(pair.ratio("prefill"), pair.ratio("decode"))


def _kv_rows(observed: Observed) -> list[Finding]:
    """Rows of one table that differ in nothing but where the KV cache lies."""
    pairs = [p for p in contrasts(observed.run.points, "kv_cache") if _ratio(p) >= CLIFF]
    if not pairs or not is_slow(observed):
        return []
    what = "with the KV cache off the card slower by"
    ratio = Evidence(what=what, value=_ratio(pairs[0]), unit="times", origin="server")
    return [shown_by_rows(observed, pairs[0], "placement.kv_cache_off_gpu", (ratio,))]


def _kv_cache(observed: Observed) -> list[Finding]:
    """The runtime put the KV cache into system memory although layers are on a card."""
    facts = observed.run.facts
    on_a_card = bool(facts.layers_offloaded or facts.size_vram_bytes)
    if facts.kv_cache_on_cpu is not True or not on_a_card or not is_slow(observed):
        return []
    if gpu_share(facts) is not None:
        return []  # layers in system memory keep their part of the cache there
    decode_s, prefill_s = observed.decode_s, observed.prefill_s
    costs_s = (decode_s.likely * (1.0 - KV_OFF_GPU_DECODE) if decode_s else 0.0) + (
        prefill_s.likely * (1.0 - KV_OFF_GPU_PREFILL) if prefill_s else 0.0
    )
    return [
        Finding(
            cause="placement.kv_cache_off_gpu",
            phase=observed.slow_phase,
            certainty="reported",
            costs_s=costs_s or None,
            evidence=(
                Evidence(what="KV cache in system memory", value=True, origin="server"),
                Evidence(
                    what="layers in graphics memory", value=facts.layers_offloaded, origin="server"
                ),
            ),
        )
    ]
