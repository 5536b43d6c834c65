"""The processor does work that a graphics card was there for."""

from __future__ import annotations

from twospeed.findings.finding import Certainty, Evidence, Finding
from twospeed.findings.observed import Observed
from twospeed.findings.slowness import is_slow, is_undivided
from twospeed.records.run import Run, RuntimeFacts

ORDER = 32

MANY_SPLITS = 10
"""A graph that runs on one card is cut 2 or 3 times: where it enters and leaves.

Source: llama.cpp, ggml-backend.cpp, one split for every change of device.
"""


def find(observed: Observed) -> list[Finding]:
    """No usable card was found, none is used, or attention left the card."""
    undivided = is_undivided(observed)
    if not (is_slow(observed) or undivided):
        return []
    found = _whole_model(observed.run) or _attention(observed.run.facts)
    if found is None:
        return []
    certainty, evidence = found
    return [
        Finding(
            cause="placement.cpu_fallback",
            phase=observed.slow_phase,
            certainty="possible" if undivided else certainty,
            costs_s=None,
            evidence=evidence,
        )
    ]


def _whole_model(run: Run) -> tuple[Certainty, tuple[Evidence, ...]] | None:
    """The runtime says that it found no card, or nothing lies on the one that is there."""
    facts = run.facts
    if facts.gpu_found is False:
        return "reported", (
            Evidence(what="usable graphics device found", value=False, origin="server"),
        )
    if _on_a_card(facts):
        return None
    devices = _devices(run)
    idle = facts.layers_offloaded == 0 or facts.size_vram_bytes == 0 or facts.backend == "cpu"
    if idle and devices:
        return "inferred" if _has_memory(run) else "possible", (
            Evidence(what="graphics devices of this machine", value=devices, origin="client"),
            Evidence(what="layers in graphics memory", value=0, origin="server"),
        )
    if facts.backend == "cpu" and devices is None and not run.points:
        return "possible", (Evidence(what="backend", value=facts.backend, origin="server"),)
    return None


def _on_a_card(facts: RuntimeFacts) -> bool:
    return bool(facts.layers_offloaded) and facts.backend != "cpu"


def _devices(run: Run) -> int | None:
    """Graphics devices beside the server; None where that is not known."""
    if run.machine is not None and run.machine.graphics:
        return len(run.machine.graphics)
    return run.probe.graphics_devices if run.probe is not None else None


def _has_memory(run: Run) -> bool:
    """Whether a device has memory of its own that could hold this model, as far as is told."""
    size = run.facts.size_bytes or (run.header.file_bytes if run.header else 0)
    devices = run.machine.graphics if run.machine else ()
    return any((device.memory_total_bytes or 0) > size for device in devices)


def _attention(facts: RuntimeFacts) -> tuple[Certainty, tuple[Evidence, ...]] | None:
    """All layers are on the card, and yet the graph changes devices again and again."""
    whole = facts.layers_total is not None and facts.layers_offloaded == facts.layers_total
    if not whole or (facts.graph_splits or 0) < MANY_SPLITS:
        return None
    mixed = facts.kv_type_k != facts.kv_type_v
    evidence = [Evidence(what="graph splits", value=facts.graph_splits, origin="server")]
    if mixed:
        types = f"{facts.kv_type_k} and {facts.kv_type_v}"
        evidence.append(Evidence(what="types of keys and values", value=types, origin="server"))
    return "inferred" if mixed else "possible", tuple(evidence)
