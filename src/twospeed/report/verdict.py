"""What a comparison says, schema `twospeed.verdict/1` (`schema/verdict-1.json`).

Every key is always present; unknown is null. Changes are additive only. All ratios are seconds of
the second arm over seconds of the first: below 1 the second one is faster.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from twospeed.cures.trial import TrialStop
from twospeed.cures.trial_result import LengthResult, PairRow
from twospeed.fits.interval import Interval
from twospeed.fits.paired import Comparison, Phase
from twospeed.records.json_text import encoded
from twospeed.records.ledger import Held
from twospeed.report.document import SourcePart, WorkloadPart

SCHEMA: Literal["twospeed.verdict/1"] = "twospeed.verdict/1"
RATIO_OF = "seconds, second arm / first arm"

ArmKind = Literal["url", "engine", "command", "request", "before"]
Method = Literal["pairs", "sessions"]


class ArmPart(Struct, frozen=True, kw_only=True):
    """One of the two configurations."""

    name: str
    """As a person would tell it from the other one."""
    kind: ArmKind
    source: SourcePart
    settings: dict[str, str]
    """What the command line set."""
    facts: dict[str, Any]
    """What the runtime says about itself."""


class PhasePart(Comparison, frozen=True, kw_only=True):
    """A comparison, and the seconds of either arm."""

    first_s: float | None = None
    """Median: per token for prefill and decode, of one request for workload."""
    second_s: float | None = None


class PhaseParts(Struct, frozen=True, kw_only=True):
    """All that is compared."""

    prefill: PhasePart
    decode: PhasePart
    workload: PhasePart


class PredictionPart(Struct, frozen=True, kw_only=True):
    """What the earlier diagnosis predicted, and what came of it."""

    cure: str
    listed: str
    """"cures", or "wont_help" where the diagnosis advised against it."""
    saves_s: Interval
    measured_s: Interval | None
    held: Held


class Change(Struct, frozen=True, kw_only=True):
    """Something in which the arms differ."""

    what: str
    first: str | None
    second: str | None


class VerdictConditions(Struct, frozen=True, kw_only=True):
    """What speaks against relying on it."""

    host_load: float | None
    disturbed_pairs: int = 0
    wild_pairs: int = 0
    drift: dict[Phase, float]
    """By which share both arms became slower over the trial."""
    output_tokens_ratio: float | None = None
    """Length of the answers, second / first; null where they do not differ."""
    prompt_tokens_ratio: float | None = None
    trusted: bool
    warnings: tuple[str, ...]


class Verdict(Struct, frozen=True, kw_only=True):
    """Everything that a comparison has to say."""

    schema: Literal["twospeed.verdict/1"] = SCHEMA
    twospeed_version: str
    made_at: str
    verdict: str
    """One or two sentences for a person."""
    method: Method
    """pairs: interleaved. sessions: a saved run against a new one, which is weaker."""
    confidence: float
    """Share of experiments in which all intervals together hold the truth."""
    ratio_of: str = RATIO_OF
    clock: str = ""
    """Whose clock the seconds are from: "server" or "client"; empty where nothing was timed."""
    arms: tuple[ArmPart, ArmPart]
    workload: WorkloadPart
    measured_prompt_tokens: int | None = None
    """Prompt length that gave the verdict; shorter than the workload's on a slow machine."""
    phases: PhaseParts
    lengths: tuple[LengthResult, ...] = ()
    pairs: tuple[PairRow, ...] = ()
    prediction: PredictionPart | None = None
    changes: tuple[Change, ...]
    conditions: VerdictConditions
    renewed_every_pair: bool = False
    """Each pair met servers that were started for it, so that the interval holds what differs
    between two starts of the same settings; otherwise it is about the servers as they ran."""
    why_stopped: TrialStop = "interrupted"
    seconds_needed: float | None = None
    """--budget after which all that is not settled would be known within 3 %."""
    complete: bool = False
    """False when it was interrupted, or ended by errors."""


def to_json(verdict: Verdict) -> bytes:
    """The document as one JSON object; numbers that are not finite become null."""
    return encoded(verdict)
