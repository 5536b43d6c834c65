"""Do the server's clock and ours tell the same time?

A fixed delay on the way (a proxy, a tokenizer) adds the same seconds to every request; a wrong
clock is wrong in proportion. Only the second makes a number untrue; the first is shown as the
unexplained part of the wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean, median, pstdev

from msgspec import Struct

from twospeed.findings.finding import SlowPhase
from twospeed.findings.waiting import before_prefill_s
from twospeed.fits.observations import ClockDisagreement, clock_disagreement
from twospeed.records.run import Run

TOLERANCE = 0.10
"""Ratios up to 10 % apart are jitter and rounding."""
NOTABLE_EXCESS_S = 0.1
"""Tokenizing and templates may take this long outside the server's prefill clock."""
CLOCK_STEP_S = 0.01
"""Coarse clocks and rounding make a server's time longer than ours by no more than this."""
FEWEST_PAIRS = 2
"""One request can be disturbed; two in the same direction are a pattern."""
LATE_START_S = 0.05
"""A request that waited this long before prefill says nothing about the prefill clock."""


class Disagreement(Struct, frozen=True, kw_only=True):
    """A phase in which one of the clocks is wrong."""

    phase: SlowPhase
    ratio: float
    """Our seconds / the server's."""

    @property
    def server_tells_less(self) -> bool:
        """True when the user waits longer than the server says, so that our clock is the truth.

        The other way round text may have been held back and released at once.
        """
        return self.ratio > 1.0


def observe_clocks(run: Run) -> Disagreement | None:
    """The phase in which the clocks disagree by more than 10 %; None when they agree."""
    if run.ignore_timings:
        return None
    ratio = _impossible_prefill_ratio(run)
    if ratio is not None:
        return Disagreement(phase="prefill", ratio=ratio)
    prompt = [r for r in run.records if (before_prefill_s(run, r) or 0.0) < LATE_START_S]
    pairs = [clock_disagreement([record], run.round_trip_s) for record in prompt]
    ratio = _prefill_ratio(pairs)
    if ratio is not None and _apart(ratio):
        return Disagreement(phase="prefill", ratio=ratio)
    decode = clock_disagreement(run.records, run.round_trip_s)
    ratio = decode.decode_ratio if decode.decode_pairs >= FEWEST_PAIRS else None
    if ratio is not None and _apart(ratio):
        return Disagreement(phase="decode", ratio=ratio)
    return None


def _impossible_prefill_ratio(run: Run) -> float | None:
    """Median TTFT / server prefill where prefill is said to end long after its first token came.

    However short, that has no innocent cause: nothing between server and client saves time.
    """
    ratios = [
        record.client.ttft_s / told_s
        for record in run.records
        if record.error is None and record.step != "warmup" and record.server is not None
        if (told_s := record.server.prefill_s) and record.client.ttft_s is not None
        if told_s - record.client.ttft_s > CLOCK_STEP_S
    ]
    ratio = median(ratios) if len(ratios) >= FEWEST_PAIRS else None
    return ratio if ratio is not None and _apart(ratio) else None


def _prefill_ratio(pairs: Iterable[ClockDisagreement]) -> float | None:
    """Median ratio; None with too few pairs, for a short excess, or for a fixed delay."""
    timed = [
        (pair.prefill_ratio, pair.prefill_excess_s)
        for pair in pairs
        if pair.prefill_ratio is not None and pair.prefill_excess_s is not None
    ]
    if len(timed) < FEWEST_PAIRS:
        return None
    excesses = [excess_s for _, excess_s in timed]
    if abs(median(excesses)) <= NOTABLE_EXCESS_S:
        return None
    if _spread(excesses) < _spread([ratio - 1.0 for ratio, _ in timed]):
        return None
    return median(ratio for ratio, _ in timed)


def _spread(values: list[float]) -> float:
    """Standard deviation relative to the mean."""
    mean = abs(fmean(values))
    return pstdev(values) / mean if mean > 0 else float("inf")


def _apart(ratio: float) -> bool:
    return not 1.0 - TOLERANCE <= ratio <= 1.0 + TOLERANCE
