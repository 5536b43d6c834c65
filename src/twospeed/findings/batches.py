"""How many prompt tokens a runtime reads at once, and what the size of a step costs."""

from __future__ import annotations

from statistics import median

from msgspec import Struct

from twospeed.findings.command_line import BATCH, STEP, number_asked
from twospeed.findings.lost_time import lost_seconds
from twospeed.findings.table import contrasts
from twospeed.records.request_record import Origin, RequestRecord
from twospeed.records.run import Run

SMALL_BATCH_TOKENS = 32
"""Batches up to this leave most of a processor idle.

Source: a llama-bench sweep in which a prompt of 512 took 15 times as long at 16 as at 512.
"""
SMALL_STEP_TOKENS = 256
"""Steps below this are small beside the usual 512 to 2048; the machine decides what they cost."""
FEWEST_STEPS = 4
"""A prompt of fewer steps does not show their size."""
SLOWER = 1.5


class Batch(Struct, frozen=True, kw_only=True):
    """Prompt tokens of one step, and who says so."""

    tokens: int
    origin: Origin = "server"


def told_batch(run: Run) -> Batch | None:
    """The smaller of the two batch sizes; None where neither is told."""
    facts = run.facts
    told = [tokens for tokens in (facts.n_batch, facts.n_ubatch) if tokens]
    if told:
        return Batch(tokens=min(told))
    asked = [tokens for options in (BATCH, STEP) if (tokens := number_asked(run, options))]
    return Batch(tokens=min(asked), origin="client") if asked else None


def seen_step(run: Run) -> Batch | None:
    """Largest step of the progress that the runtime showed, where prompts had several."""
    steps = [step for record in run.records if (step := _step_of_many(record)) is not None]
    return Batch(tokens=round(median(steps))) if steps else None


def _step_of_many(record: RequestRecord) -> int | None:
    """The step of a prompt of which enough was read to show it; what was cached was not read."""
    step = record.signs.prefill_step_tokens if record.signs is not None else None
    read = (record.counts.prompt_tokens or 0) - (record.counts.cached_prompt_tokens or 0)
    return step if step and read >= FEWEST_STEPS * step else None


class BatchLoss(Struct, frozen=True, kw_only=True):
    """Rows of a table that differ in the batch only."""

    tokens: int
    ratio: float
    """How many times slower the small batch reads."""
    seconds: float | None


def batch_loss(run: Run) -> BatchLoss | None:
    """What the smallest batch of a table costs beside the fastest; None where none shows it."""
    pairs = [p for p in contrasts(run.points, "batch") if p.ratio("prefill") >= SLOWER]
    if not pairs:
        return None
    worst = max(pairs, key=lambda pair: pair.ratio("prefill"))
    sizes = [worst.slow.settings.get(name) for name in ("n_batch", "n_ubatch")]
    return BatchLoss(
        tokens=min(size for size in sizes if isinstance(size, int)),
        ratio=worst.ratio("prefill"),
        seconds=lost_seconds(run.workload, worst, ("prefill",)),
    )
