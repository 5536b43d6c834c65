"""From a run to its report: fits, limits, findings, cures, words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict, replace

from twospeed.cures.cure import Cure, WontHelp
from twospeed.cures.elsewhere import compare
from twospeed.cures.registry import weigh
from twospeed.findings.blind_spots import blind_spots
from twospeed.findings.finding import Finding
from twospeed.findings.observed import Observed, observe
from twospeed.findings.registry import find_all, is_trusted
from twospeed.findings.table import told_model
from twospeed.fits.observations import request_speeds
from twospeed.records.ledger import Outcome, TrackRecord, track_records
from twospeed.records.request_record import RequestRecord
from twospeed.records.run import Run, Source, Workload
from twospeed.report import words
from twospeed.report.document import (
    Balance,
    ConditionsPart,
    DecodeCurve,
    DecodePart,
    DecodeSeen,
    PointRow,
    PrefillCurve,
    PrefillPart,
    PrefillSeen,
    Report,
    RequestRow,
    SourcePart,
    WontHelpPart,
    WorkloadPart,
)
from twospeed.report.what_if import Asked, priced_rows


def build_report(run: Run, asked: Asked | None = None, outcomes: Sequence[Outcome] = ()) -> Report:
    """Everything that can be said about one run.

    Pure: the same run gives the same report, whenever and wherever it is made.

    Args:
        run: what was measured or read.
        asked: what its user wants to know beyond it.
        outcomes: of predictions that were checked on this machine.
    """
    asked = asked or Asked()
    observed = observe(run)
    findings = find_all(observed)
    cures, idle = weigh(observed, findings, asked.remote)
    return Report(
        twospeed_version=run.twospeed_version,
        made_at=run.made_at,
        source=source_part(_with_model(run)),
        workload=workload_part(run.workload),
        time_budget=observed.budget,
        wait=observed.wait,
        stream=observed.stream,
        slow_phase=observed.slow_phase,
        verdict=words.verdict(observed),
        prefill=_prefill(observed),
        decode=_decode(observed),
        balance=_balance(observed),
        prompt_cache=observed.reuse,
        limits=observed.limits,
        findings=findings,
        cures=cures,
        wont_help=tuple(_wont_help(one, observed) for one in idle),
        track_record=_track_record(cures, outcomes),
        what_if=priced_rows(observed, asked),
        elsewhere=None if asked.remote is None else compare(observed, asked.remote),
        unknown=blind_spots(observed),
        requests=tuple(_row(run, record) for record in run.records),
        points=tuple(PointRow(**asdict(point)) for point in run.points),
        facts=_facts(run),
        conditions=_conditions(observed, findings),
    )


def _track_record(cures: Sequence[Cure], outcomes: Sequence[Outcome]) -> tuple[TrackRecord, ...]:
    named = {cure.cure for cure in cures}
    return tuple(one for one in track_records(outcomes) if one.cure in named)


def _with_model(run: Run) -> Source:
    """The source, with the model whose rows are told where only a table names it."""
    return replace(run.source, model=run.source.model or told_model(run))


def _facts(run: Run) -> dict[str, Any]:
    """What the runtime says about itself; sums over many requests only where there are any."""
    told = {} if run.summary is None else asdict(run.summary)
    return asdict(run.facts) | {name: value for name, value in told.items() if value is not None}


def _wont_help(idle: WontHelp, observed: Observed) -> WontHelpPart:
    why = words.why_not(idle.why, observed.slow_phase, observed.budget.total_s)
    return WontHelpPart(cure=idle.cure, saves_s=idle.saves_s, why=why)


def _conditions(observed: Observed, findings: Sequence[Finding]) -> ConditionsPart:
    conditions = observed.run.conditions
    return ConditionsPart(
        host_load=conditions.host_load,
        other_requests=conditions.other_requests,
        trusted=is_trusted(observed, findings),
        warnings=words.warnings(observed, findings),
    )


def source_part(source: Source) -> SourcePart:
    """The source as documents show it."""
    return SourcePart(
        kind=source.kind,
        where=source.where,
        runtime=source.runtime,
        runtime_version=source.runtime_version,
        model=source.model,
    )


def workload_part(workload: Workload) -> WorkloadPart:
    """The workload as documents show it."""
    return WorkloadPart(
        prompt_tokens=workload.prompt_tokens,
        cached_prompt_tokens=workload.cached_prompt_tokens,
        output_tokens=workload.output_tokens,
        origin=workload.origin,
    )


def _prefill(observed: Observed) -> PrefillPart:
    fit, prefill_tps = observed.prefill, observed.prefill_tps
    return PrefillPart(
        tps=prefill_tps.likely if prefill_tps else None,
        tps_low=prefill_tps.low if prefill_tps else None,
        tps_high=prefill_tps.high if prefill_tps else None,
        origin=observed.prefill_origin if prefill_tps else None,
        curve=PrefillCurve(
            overhead_s=fit.overhead_s,
            per_token_s=fit.per_token_s,
            per_token2_s=fit.per_token2_s,
        )
        if fit
        else None,
        points=tuple(
            PrefillSeen(
                prompt_tokens=point.prompt_tokens,
                cached_tokens=point.cached_tokens,
                s=point.s,
                origin=point.origin,
            )
            for point in observed.prefill_seen
        ),
    )


def _decode(observed: Observed) -> DecodePart:
    fit, decode_tps = observed.decode, observed.decode_tps
    return DecodePart(
        tps=decode_tps.likely if decode_tps else None,
        tps_low=decode_tps.low if decode_tps else None,
        tps_high=decode_tps.high if decode_tps else None,
        origin=observed.decode_origin if decode_tps else None,
        curve=DecodeCurve(per_token_s=fit.per_token_s, per_depth_token_s=fit.per_depth_token_s)
        if fit
        else None,
        points=tuple(
            DecodeSeen(
                depth_tokens=point.depth_tokens,
                per_token_s=point.per_token_s,
                origin=point.origin,
            )
            for point in observed.decode_seen
        ),
    )


def _balance(observed: Observed) -> Balance:
    """Shares of the two phases, and the prompt:answer ratio that would make them equal.

    At the workload's speeds: as many prompt tokens per output token as prefill is faster.
    """
    prefill, decode = observed.prefill_s, observed.decode_s
    if prefill is None or decode is None or prefill.likely + decode.likely <= 0:
        return Balance(prefill_frac=None, decode_frac=None, equal_prompt_per_output_token=None)
    share = prefill.likely / (prefill.likely + decode.likely)
    prefill_tps, decode_tps = observed.prefill_tps, observed.decode_tps
    return Balance(
        prefill_frac=share,
        decode_frac=1.0 - share,
        equal_prompt_per_output_token=prefill_tps.likely / decode_tps.likely
        if prefill_tps and decode_tps
        else None,
    )


def _row(run: Run, record: RequestRecord) -> RequestRow:
    speeds = request_speeds(
        record, round_trip_s=run.round_trip_s, ignore_timings=run.ignore_timings
    )
    return RequestRow(
        prompt_tokens=record.counts.prompt_tokens,
        cached_prompt_tokens=record.counts.cached_prompt_tokens,
        prefill_s=speeds.prefill_s,
        prefill_tps=speeds.prefill_tps,
        output_tokens=record.counts.output_tokens,
        decode_s=speeds.decode_s,
        decode_tps=speeds.decode_tps,
        load_s=speeds.load_s,
        queue_s=speeds.queue_s,
        ttft_s=speeds.ttft_s,
        total_s=speeds.total_s,
        line=record.line,
    )
