"""How long the model load took that came before the first prompt."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from twospeed.findings.finding import Certainty
from twospeed.fits.prefill import PrefillFit
from twospeed.records.request_record import Origin, RequestRecord
from twospeed.records.run import Run

LEAST_HIDDEN_S = 1.0
"""A first request that lost less than this was warming up, not loading."""
HIDDEN_FACTOR = 2.0
"""It lost more than this many times its own prefill."""


class Load(Struct, frozen=True, kw_only=True):
    """Seconds of model load, and how they are known."""

    seconds: float | None = None
    origin: Origin = "server"
    certainty: Certainty = "reported"


def observe_load(run: Run, cold: PrefillFit | None) -> Load:
    """What we waited for, else what the server told, else what the first request lost.

    In an experiment the model loads once, before its first request. Requests of a user (log,
    recording) are all alike, so there the median counts: a load of every request is a reload.

    Args:
        run: records of one source.
        cold: prefill curve without the first request.
    """
    if run.loading_s is not None:
        return Load(seconds=run.loading_s, origin="client", certainty="measured")
    answered = [r for r in run.records if r.error is None and r.step != "together"]
    loads = [r.server.load_s for r in answered if r.server and r.server.load_s is not None]
    first = min(answered, key=lambda record: record.number, default=None)
    if first is None:
        return Load()
    if first.step == "user":
        return Load(seconds=median(loads) if loads else None)
    if first.server is not None and first.server.load_s is not None:
        return Load(seconds=first.server.load_s)
    return _hidden(first, answered, run, cold)


def _hidden(
    first: RequestRecord, answered: Sequence[RequestRecord], run: Run, cold: PrefillFit | None
) -> Load:
    """A load that no one told of: the first request lost far more than the others did."""
    lost_s, prefill_s = _lost(first, run, cold)
    if lost_s is None or prefill_s is None or first.other_requests:
        return Load()
    others = (_lost(record, run, cold)[0] for record in answered if record is not first)
    usual = [lost for lost in others if lost is not None]
    lost_s -= max(median(usual), 0.0) if usual else 0.0
    if lost_s < max(LEAST_HIDDEN_S, HIDDEN_FACTOR * prefill_s):
        return Load()
    return Load(seconds=lost_s, origin="client", certainty="inferred")


def _lost(
    record: RequestRecord, run: Run, cold: PrefillFit | None
) -> tuple[float | None, float | None]:
    """Seconds until the first text that neither prefill nor the way explains; and its prefill."""
    ttft_s, prompt = record.client.ttft_s, record.counts.prompt_tokens
    prefill_s = record.server.prefill_s if record.server and not run.ignore_timings else None
    if prefill_s is None and cold is not None and prompt is not None:
        prefill_s = cold.seconds(prompt, record.counts.cached_prompt_tokens or 0).likely
    if ttft_s is None or prefill_s is None:
        return None, None
    return ttft_s - prefill_s - (run.round_trip_s or 0.0), prefill_s
