"""One pair of a trial: the same request in both arms, one right after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from typing import Literal, NamedTuple

from msgspec import Struct

from twospeed.findings.phase_times import decode_steps
from twospeed.fits.observations import FEWEST_STEPS, FEWEST_UNCACHED_TOKENS
from twospeed.fits.paired import Phase
from twospeed.fits.phases import (
    DecodeTime,
    PrefillTime,
    client_decode,
    client_prefill,
    server_decode,
    server_prefill,
)
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.records.run import Conditions, Workload

Clock = Literal["server", "client"]
MOST_HOST_LOAD = 0.20
"""Share of the processors in other programs' use from which a pair counts as disturbed."""


class Sample(Struct, frozen=True, kw_only=True):
    """One request in one arm, and what else the machine did meanwhile."""

    record: RequestRecord
    conditions: Conditions = Conditions()


Measure = Callable[[int, Probe, int], Sample]
"""Sends a probe to arm 0 or 1; the number names its prompt, the same for both arms of a pair."""


class Reading(Struct, frozen=True, kw_only=True):
    """How records are turned into seconds."""

    clock: Clock
    round_trips_s: tuple[float | None, float | None] = (None, None)
    """Of a trivial request, in either arm."""
    per_prompt_token: bool = False
    """Count a prompt's cached tokens too: where what is compared is reuse itself."""


class PhaseSeconds(NamedTuple):
    """Seconds of one request, by phase; None where the clock does not show it."""

    prefill_per_token_s: float | None
    decode_per_token_s: float | None
    rest_s: float
    """Of the whole request, in neither phase; model load left out."""

    def workload_s(self, workload: Workload) -> float | None:
        """Seconds of a whole request of the workload at these speeds."""
        prefill, decode = self.prefill_per_token_s, self.decode_per_token_s
        if prefill is None or decode is None:
            return None
        return prefill * workload.prompt_tokens + decode * decode_steps(workload) + self.rest_s


class Pair(Struct, frozen=True, kw_only=True):
    """Both requests of a pair that was answered."""

    number: int
    prompt_tokens: int
    """Wanted length."""
    first_sent: int
    """The arm that went first, 0 or 1."""
    samples: tuple[Sample, Sample]
    """By arm, not by order."""

    @property
    def disturbed(self) -> bool:
        """Whether other programs were at work."""
        spans = [(sample.conditions, sample.record.client.end_s or 1.0) for sample in self.samples]
        loads = [(seen.host_load, s) for seen, s in spans if seen.host_load is not None]
        if len(loads) < len(spans):
            return not all(seen.trusted for seen, _ in spans)
        # Of both requests together: a short one alone is not long against the system's ticks.
        return sum(load * s for load, s in loads) > MOST_HOST_LOAD * sum(s for _, s in loads)


def seconds_of(record: RequestRecord, arm: int, reading: Reading) -> PhaseSeconds:
    """Both phases of one request by the chosen clock."""
    prefill, decode = _prefill(record, arm, reading), _decode(record, reading.clock)
    load_s = (record.server.load_s if record.server else None) or 0.0
    known_s = (prefill.s if prefill else 0.0) + (decode.s if decode else 0.0) + load_s
    return PhaseSeconds(
        prefill_per_token_s=prefill.s / _tokens(prefill, reading) if prefill else None,
        decode_per_token_s=decode.s / decode.steps if decode else None,
        rest_s=max((record.client.end_s or known_s) - known_s, 0.0),
    )


def log_ratio(pair: Pair, phase: Phase, reading: Reading, workload: Workload) -> float | None:
    """log(second / first) of a phase's seconds; None unless both arms show it."""
    first, second = (_phase_s(pair, arm, phase, reading, workload) for arm in (0, 1))
    return log(second / first) if first and second else None


def log_ratios(
    pairs: Sequence[Pair], phase: Phase, reading: Reading, workload: Workload
) -> list[float]:
    """Those of all pairs that show the phase, in the order of measuring."""
    found = (log_ratio(pair, phase, reading, workload) for pair in pairs)
    return [value for value in found if value is not None]


def phase_seconds(
    pairs: Sequence[Pair], arm: int, phase: Phase, reading: Reading, workload: Workload
) -> list[float]:
    """Seconds of one arm (per token for the two phases), in the order of measuring."""
    found = (_phase_s(pair, arm, phase, reading, workload) for pair in pairs)
    return [value for value in found if value]


def clock_for(pairs: Sequence[Pair], *, same_runtime: bool) -> Clock:
    """Whose clock shows more of the pairs; the server's only where both arms are of one runtime.

    Two runtimes put the border between the phases at different places.
    """
    if not same_runtime:
        return "client"
    told, seen = (_shown(pairs, Reading(clock=clock)) for clock in ("server", "client"))
    return "server" if told >= seen else "client"


def _shown(pairs: Sequence[Pair], reading: Reading) -> int:
    return sum(
        (value is not None)
        for pair in pairs
        for arm in (0, 1)
        for value in seconds_of(pair.samples[arm].record, arm, reading)[:2]
    )


def _phase_s(
    pair: Pair, arm: int, phase: Phase, reading: Reading, workload: Workload
) -> float | None:
    seconds = seconds_of(pair.samples[arm].record, arm, reading)
    if phase == "prefill":
        return seconds.prefill_per_token_s
    if phase == "decode":
        return seconds.decode_per_token_s
    return seconds.workload_s(workload)


def _prefill(record: RequestRecord, arm: int, reading: Reading) -> PrefillTime | None:
    if reading.clock == "server":
        found = server_prefill(record)
    else:
        found = client_prefill(record, reading.round_trips_s[arm])
    if found is None or _tokens(found, reading) < FEWEST_UNCACHED_TOKENS:
        return None
    return found


def _tokens(prefill: PrefillTime, reading: Reading) -> int:
    cached = prefill.cached_tokens if reading.per_prompt_token else 0
    return prefill.uncached_tokens + cached


def _decode(record: RequestRecord, clock: Clock) -> DecodeTime | None:
    found = server_decode(record) if clock == "server" else client_decode(record)
    return found if found is not None and found.steps >= FEWEST_STEPS else None
