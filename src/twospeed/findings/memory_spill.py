"""Weights or context do not fit where they should be and are fetched again and again."""

from __future__ import annotations

from statistics import median

from twospeed.findings.comparison import compare
from twospeed.findings.finding import Certainty, Evidence, Finding
from twospeed.findings.observed import Observed
from twospeed.findings.slowness import is_slow
from twospeed.fits.phases import server_decode, server_prefill
from twospeed.records.run import GraphicsDevice, Run, ServerProcess

ORDER = 34

FULL_FRAC = 0.9
"""Graphics memory is full from this share on; what it cannot hold goes elsewhere."""
SHARED_BYTES = 512 * 10**6
"""System memory in use as graphics memory; drivers always take a little."""
RESIDENT_FRAC = 0.8
"""A model of which less is in memory is read from storage as it goes."""
MANY_FAULTS = 500
SWAPPED_FRAC = 0.05
READ_AGAIN = 1.5
"""Bytes read during the run / size of the model: reading it once is loading."""
PAGE_IN = 5.0
"""A prompt token that costs so many decode steps: no computation does, fetching weights does."""

_Found = tuple[Certainty, tuple[Evidence, ...], float | None]


def find(observed: Observed) -> list[Finding]:
    """Graphics memory that overflows, weights that are paged in, swapping."""
    if not is_slow(observed):
        return []
    found = _graphics(observed.run) or _server(observed.run) or _page_in(observed.run)
    if found is None:
        return []
    certainty, evidence, costs_s = found
    return [
        Finding(
            cause="placement.memory_spill",
            phase=observed.slow_phase,
            certainty=certainty,
            costs_s=costs_s,
            evidence=evidence,
        )
    ]


def _graphics(run: Run) -> _Found | None:
    devices = run.machine.graphics if run.machine else ()
    spilled = [device for device in devices if _overflows(device)]
    if not spilled:
        return None
    device = spilled[0]
    evidence = [
        Evidence(
            what="system memory used as graphics memory",
            value=float(device.shared_memory_used_bytes or 0),
            unit="B",
            origin="client",
        ),
    ]
    if device.memory_used_bytes is not None:
        evidence.append(
            Evidence(
                what="graphics memory in use",
                value=float(device.memory_used_bytes),
                unit="B",
                origin="client",
            )
        )
    return "inferred", tuple(evidence), None


def _overflows(device: GraphicsDevice) -> bool:
    if (device.shared_memory_used_bytes or 0) < SHARED_BYTES:
        return False
    used, total = device.memory_used_bytes, device.memory_total_bytes
    return used is None or total is None or used >= FULL_FRAC * total


def _server(run: Run) -> _Found | None:
    """What the server's process had to fetch from storage."""
    server = run.machine.server if run.machine else None
    size = run.facts.size_bytes or (run.header.file_bytes if run.header else None)
    if server is None or not size:
        return None
    faults = server.major_faults or 0
    evidence = [
        Evidence(what=what, value=float(value), unit=unit, origin="client")
        for what, value, unit, telling in (
            ("pages fetched from storage", faults, "pages", faults >= MANY_FAULTS),
            ("server's memory in swap", server.swapped_bytes, "B", _swapped(server, size)),
            ("model in memory", server.resident_bytes, "B", _squeezed(run, server, size)),
            ("read from storage", server.read_bytes, "B", _read_again(server, size)),
        )
        if telling and value is not None
    ]
    fetched = faults >= MANY_FAULTS and (_squeezed(run, server, size) or _swapped(server, size))
    if not fetched and not _read_again(server, size):
        return None
    return "inferred", tuple(evidence), None


def _squeezed(run: Run, server: ServerProcess, size_bytes: int) -> bool:
    """Less in memory than the model takes; on a card it need not be in memory at all."""
    on_a_card = bool(run.facts.layers_offloaded or run.facts.size_vram_bytes)
    resident = server.resident_bytes
    return not on_a_card and resident is not None and resident < RESIDENT_FRAC * size_bytes


def _swapped(server: ServerProcess, size_bytes: int) -> bool:
    return (server.swapped_bytes or 0) > SWAPPED_FRAC * size_bytes


def _read_again(server: ServerProcess, size_bytes: int) -> bool:
    return (server.read_bytes or 0) > READ_AGAIN * size_bytes


def _page_in(run: Run) -> _Found | None:
    """A first request whose prompt tokens cost many decode steps each."""
    compared, usual_s = compare(run.records), _usual_step_s(run)
    for record in run.records:
        if record.step != "user" or record.error is not None:
            continue
        prefill = server_prefill(record)
        if prefill is None or usual_s is None:
            continue
        steps = (prefill.s / prefill.uncached_tokens) / usual_s
        if steps < PAGE_IN or prefill.s < run.goals.wait_s:
            continue
        shown = compared is not None and compared.slow == record.number
        evidence = (
            Evidence(what="prompt token / decode step", value=steps, unit="times", origin="server"),
        )
        costs_s = compared.seconds if compared is not None and shown else None
        return "inferred" if shown else "possible", evidence, costs_s
    return None


def _usual_step_s(run: Run) -> float | None:
    steps = [decode.s / decode.steps for r in run.records if (decode := server_decode(r))]
    return median(steps) if steps else None
