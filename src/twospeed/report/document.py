"""The report as one document, schema `twospeed.report/1` (`schema/report-1.json`).

Every key is always present; unknown is null. Changes are additive only.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from twospeed.cures.cure import Cure, CureName
from twospeed.cures.elsewhere import Elsewhere
from twospeed.cures.scenario import Priced
from twospeed.findings.budget import Stream, TimeBudget, Wait
from twospeed.findings.finding import Finding, SlowPhase
from twospeed.findings.reuse import CacheObservation
from twospeed.fits.interval import Interval
from twospeed.limits.ceilings import Limits
from twospeed.records.json_text import encoded
from twospeed.records.ledger import TrackRecord
from twospeed.records.request_record import Origin
from twospeed.records.run import Blind, SourceKind, WorkloadFrom

SCHEMA: Literal["twospeed.report/1"] = "twospeed.report/1"


class SourcePart(Struct, frozen=True, kw_only=True):
    """Where the numbers come from."""

    kind: SourceKind
    where: str
    runtime: str | None
    runtime_version: str | None
    model: str | None


class WorkloadPart(Struct, frozen=True, kw_only=True):
    """The request whose seconds are reported."""

    prompt_tokens: int
    cached_prompt_tokens: int
    output_tokens: int
    origin: WorkloadFrom = field(name="from")


class PrefillCurve(Struct, frozen=True, kw_only=True):
    """`t(n) = overhead + a·n + b·n²`."""

    overhead_s: float
    per_token_s: float
    per_token2_s: float


class PrefillSeen(Struct, frozen=True, kw_only=True):
    """One measured prefill."""

    prompt_tokens: int
    cached_tokens: int
    s: float
    origin: Origin


class PrefillPart(Struct, frozen=True, kw_only=True):
    """Prefill speed at the workload's prompt length, and its curve."""

    tps: float | None
    tps_low: float | None
    tps_high: float | None
    origin: Origin | None
    curve: PrefillCurve | None
    points: tuple[PrefillSeen, ...]


class DecodeCurve(Struct, frozen=True, kw_only=True):
    """`t(d) = p + q·d` per token; q is null when the measured depths do not show it."""

    per_token_s: float
    per_depth_token_s: float | None


class DecodeSeen(Struct, frozen=True, kw_only=True):
    """One measured decode."""

    depth_tokens: float
    per_token_s: float
    origin: Origin


class DecodePart(Struct, frozen=True, kw_only=True):
    """Decode speed at mid-answer depth, and its curve."""

    tps: float | None
    tps_low: float | None
    tps_high: float | None
    origin: Origin | None
    curve: DecodeCurve | None
    points: tuple[DecodeSeen, ...]


class WontHelpPart(Struct, frozen=True, kw_only=True):
    """A popular change that would not pay here, and why."""

    cure: CureName
    saves_s: Interval
    why: str


class RequestRow(Struct, frozen=True, kw_only=True):
    """One request as it was read or measured."""

    prompt_tokens: int | None
    cached_prompt_tokens: int | None
    prefill_s: float | None
    prefill_tps: float | None
    output_tokens: int | None
    decode_s: float | None
    decode_tps: float | None
    load_s: float | None
    queue_s: float | None
    ttft_s: float | None
    total_s: float | None
    line: int | None


class PointRow(Struct, frozen=True, kw_only=True):
    """One row of a benchmark table."""

    phase: Literal["prefill", "decode", "mixed"]
    tokens: int | None
    depth_tokens: int | None
    tps: float
    sd: float | None
    settings: dict[str, Any]
    line: int | None


class ConditionsPart(Struct, frozen=True, kw_only=True):
    """Whether the numbers can be trusted."""

    host_load: float | None
    other_requests: int | None
    trusted: bool
    warnings: tuple[str, ...]


class Balance(Struct, frozen=True, kw_only=True):
    """How prefill and decode share the request; null while either is unknown."""

    prefill_frac: float | None
    decode_frac: float | None
    equal_prompt_per_output_token: float | None
    """Prompt tokens per output token at which both phases take equally long."""


class Report(Struct, frozen=True, kw_only=True):
    """Everything that twospeed has to say about one run."""

    schema: Literal["twospeed.report/1"] = SCHEMA
    twospeed_version: str
    made_at: str
    source: SourcePart
    workload: WorkloadPart
    time_budget: TimeBudget
    wait: Wait
    stream: Stream
    slow_phase: SlowPhase
    verdict: str
    prefill: PrefillPart
    decode: DecodePart
    balance: Balance
    prompt_cache: CacheObservation
    limits: Limits
    findings: tuple[Finding, ...]
    cures: tuple[Cure, ...]
    wont_help: tuple[WontHelpPart, ...]
    track_record: tuple[TrackRecord, ...] = ()
    """How often predictions of these cures held on this machine, where `verify` checked any."""
    what_if: tuple[Priced, ...] = ()
    """The request as it is, then with each --what-if; empty where none was asked for."""
    elsewhere: Elsewhere | None = None
    """Null unless a remote server was described."""
    unknown: tuple[Blind, ...]
    requests: tuple[RequestRow, ...]
    points: tuple[PointRow, ...] = ()
    facts: dict[str, Any]
    conditions: ConditionsPart


def to_json(report: Report) -> bytes:
    """The report as one JSON object; numbers that are not finite become null."""
    return encoded(report)
