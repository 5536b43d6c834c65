"""A named cause with its evidence: the words a report is made of.

The identifiers are API, a closed list; their wording lives in `report/words.py`.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from twospeed.records.request_record import Origin

Cause = Literal[
    "prompt_cache.prefix_changed",
    "prompt_cache.evicted",
    "prompt_cache.disabled",
    "prompt_cache.cannot_rewind",
    "prompt_cache.context_overflow",
    "prompt.large",
    "prefill.batch_too_small",
    "prefill.compute_low",
    "decode.bandwidth_bound",
    "decode.depth",
    "decode.output_long",
    "decode.sampling",
    "decode.draft_rejected",
    "decode.below_limit",
    "placement.partial_offload",
    "placement.cpu_fallback",
    "placement.kv_cache_off_gpu",
    "placement.memory_spill",
    "placement.multi_device",
    "host.contention",
    "host.threads",
    "host.throttled",
    "server.queue",
    "server.shared_batch",
    "model.load",
    "network.latency",
    "network.buffered_stream",
    "measurement.artifact",
]

SlowPhase = Literal["prefill", "decode", "both", "queue", "load", "network", "none", "unknown"]

Certainty = Literal["measured", "reported", "inferred", "possible"]
"""How well a cause is shown.

measured: our own measurements, or the rows of one table, differ by it.
reported: the runtime says so.
inferred: it follows from measured numbers and an assumption that the evidence names.
possible: it would explain the numbers, and so would something else.
"""

CAUSES: tuple[Cause, ...] = get_args(Cause)


class Evidence(Struct, frozen=True, kw_only=True):
    """One fact that speaks for a cause."""

    what: str
    value: float | str | bool | None
    unit: str | None = None
    origin: Origin


class Finding(Struct, frozen=True, kw_only=True):
    """A cause, how sure it is, and what it costs one request of the workload."""

    cause: Cause
    phase: SlowPhase
    certainty: Certainty
    costs_s: float | None
    """Seconds of one workload request; None where the size is not known."""
    evidence: tuple[Evidence, ...] = ()


_WEAKER: dict[Certainty, Certainty] = {
    "measured": "inferred",
    "reported": "reported",
    "inferred": "possible",
    "possible": "possible",
}


def weakened(certainty: Certainty) -> Certainty:
    """The certainty that is left when other programs disturbed the measurement.

    What a runtime reports about itself does not depend on our clocks and stays.
    """
    return _WEAKER[certainty]
