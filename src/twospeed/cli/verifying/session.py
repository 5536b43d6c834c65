"""A saved diagnosis against the same server now: part of its prompts again, and the prediction."""

from __future__ import annotations

import asyncio
import os
import random
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from twospeed import __version__
from twospeed.cli.measuring.book import Book
from twospeed.cli.measuring.conduct import workload_of
from twospeed.cli.terminal.progress import Progress
from twospeed.cli.verifying.sending import Sending
from twospeed.cli.verifying.stage import Stage, told_facts
from twospeed.cures.prediction import (
    REUSE_CURES,
    Prediction,
    prediction_for,
    request_after,
    score,
)
from twospeed.cures.sessions import SessionResult, compare_runs
from twospeed.findings.observed import observe
from twospeed.records.errors import EndpointError, InputError
from twospeed.records.ledger import Outcome, append_outcome, ledger_path
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.records.run import Conditions, Run, Workload
from twospeed.records.run_file import read_run
from twospeed.report.verdict import PredictionPart, Verdict
from twospeed.report.verdict_build import About, arm_part, verdict_of_sessions
from twospeed.report.verdict_words import BUSY

ROUNDS = 3
OUTPUT_TOKENS = 64
NEW_SHARE = 3
"""So many requests of the changed shape for each one of an earlier length."""
WARMUP_PROMPT_TOKENS = 64
WARMUP_OUTPUT_TOKENS = 16


def session_verdict(
    args: Namespace, stage: Stage, runner: asyncio.Runner, progress: Progress
) -> Verdict:
    """One arm against the run of --before.

    Raises:
        TwospeedError: the run cannot be read, predicts nothing of --cure, or nothing answers.
    """
    before = read_before(args)
    prediction = None if args.cure is None else prediction_for(before, args.cure)
    after = before.workload
    if prediction is not None:
        after = request_after(prediction.cure, observe(before))
    reuse = prediction is not None and prediction.cure in REUSE_CURES
    stage.open_all()
    book = Book(before.workload, before.goals, save=args.save, ignore_timings=before.ignore_timings)
    try:
        probes = session_probes(before, after, args.seed, reuse=reuse)
        complete = Repeating(args, stage, progress, book).run(runner, probes, primed=reuse)
    finally:
        book.close()
    result = compare_runs(before, book.run, after, reuse=reuse)
    scored = None if prediction is None else scored_prediction(prediction, result)
    if scored is not None:
        keep_outcome(scored, book.run)
    return verdict_of_sessions(
        result,
        about_of(stage, before, book.run),
        loads=(before.conditions.host_load, book.run.conditions.host_load),
        prediction=scored,
        complete=complete,
        warnings=[*before.conditions.warnings, *book.run.conditions.warnings],
    )


def read_before(args: Namespace) -> Run:
    """The saved run, with the workload of this command line where it names one.

    Raises:
        InputError: it cannot be read, or holds too few requests for both curves.
    """
    run = read_run(args.before)
    run = replace(run, workload=workload_of(args, run.workload))
    observed = observe(run)
    if observed.prefill is None or observed.decode is None:
        raise InputError(
            f"{args.before} does not show both phases at two prompt lengths: nothing to compare.",
            hint="Keep a whole diagnosis: twospeed diagnose URL --save FILE.",
        )
    return run


class Repeating:
    """Sends part of the earlier prompts again.

    Args:
        args: the command line.
        stage: with its one arm open.
        progress: where to say what happens.
        book: takes every record.
    """

    def __init__(self, args: Namespace, stage: Stage, progress: Progress, book: Book) -> None:
        self._args = args
        self._stage = stage
        self._progress = progress
        self._book = book
        self._seen: list[tuple[float, Conditions]] = []

    def run(self, runner: asyncio.Runner, probes: Iterator[Probe], *, primed: bool) -> bool:
        """Fill the book; False when that was interrupted.

        Raises:
            EndpointError: the first request was not answered, or two in a row were not.
        """
        self._open_book()
        sending = Sending(
            self._stage,
            runner,
            self._progress,
            seed=self._args.seed,
            shared=False,
            primed=primed,
            kept=lambda _, record: self._book.add(record),
        )
        complete = False
        try:
            self._send_all(sending, probes)
            self._stage.refresh_facts()
            complete = True
        except KeyboardInterrupt:
            self._progress.note("Stopped: what follows rests on the requests until then.")
        self._book.add(together(self._seen))
        if complete:
            self._book.complete()
        return complete

    def _open_book(self) -> None:
        opened = self._stage.known[0]
        self._book.open(opened.source, opened.facts)
        self._book.round_trip(opened.round_trip_s)
        self._book.loading(opened.endpoint.loading_s)
        self._progress.note(
            f"Sending part of the earlier prompts again, for {self._args.budget:.0f} s at most. "
            "This is weaker than two servers side by side."
        )

    def _send_all(self, sending: Sending, probes: Iterator[Probe]) -> None:
        began_s = time.monotonic()
        for number, probe in enumerate(probes, 1):
            cost_s = usual_s(self._book.run.records, probe)
            if number > 2 and time.monotonic() - began_s + cost_s > self._args.budget:
                return
            sample = sending.measure(0, probe, number)
            self._seen.append((sample.record.client.end_s or 0.0, sample.conditions))
            refuse_hopeless(self._book.run.records)


def session_probes(before: Run, after: Workload, seed: int, *, reuse: bool) -> Iterator[Probe]:
    """A warm-up, then the earlier lengths in mixed order; mostly the new shape where it changed."""
    yield Probe(
        step="warmup",
        prompt_tokens=WARMUP_PROMPT_TOKENS,
        output_tokens=WARMUP_OUTPUT_TOKENS,
    )
    lots = random.Random(seed)  # noqa: S311 (lots, not secrets)
    asked = [one.probe for one in before.records if one.step == "curve" and one.probe is not None]
    lengths = sorted({probe.prompt_tokens for probe in asked})
    output = max((probe.output_tokens for probe in asked), default=OUTPUT_TOKENS)
    new = Probe(
        step="reuse" if reuse else "curve", prompt_tokens=after.prompt_tokens, output_tokens=output
    )
    changed = reuse or after.prompt_tokens != before.workload.prompt_tokens
    for _ in range(ROUNDS):
        lots.shuffle(lengths)
        for tokens in lengths:
            yield from [new] * (NEW_SHARE if changed else 0)
            if not reuse:
                yield Probe(step="curve", prompt_tokens=tokens, output_tokens=output)


def usual_s(records: Sequence[RequestRecord], probe: Probe) -> float:
    """Seconds of the slowest request so far that was as long."""
    alike = [
        one.client.end_s or 0.0
        for one in records
        if one.probe is not None and one.probe.prompt_tokens >= probe.prompt_tokens
    ]
    return min(alike, default=0.0)


def refuse_hopeless(records: Sequence[RequestRecord]) -> None:
    """End with the server's own words when nothing but failures came.

    Raises:
        EndpointError: two in a row, or the first one.
    """
    errors = [one.error for one in records[-2:]]
    last = errors[-1]
    if last is not None and (len(records) == 1 or None not in errors):
        raise EndpointError(last.message, http_status=last.http_status)


def together(seen: Sequence[tuple[float, Conditions]]) -> Conditions:
    """Conditions over all requests, each by its seconds."""
    loads = [(s, one.host_load) for s, one in seen if one.host_load is not None]
    total_s = sum(s for s, _ in loads)
    warned = sum(not one.trusted for _, one in seen)
    busy = 2 * warned > len(seen)
    return Conditions(
        host_load=sum(s * load for s, load in loads) / total_s if total_s else None,
        trusted=not busy,
        warnings=(BUSY.format(some=warned, all=len(seen)),) if busy else (),
    )


def scored_prediction(prediction: Prediction, result: SessionResult) -> PredictionPart:
    """The prediction beside what was measured."""
    return PredictionPart(
        cure=prediction.cure,
        listed=prediction.listed,
        saves_s=prediction.saves_s,
        measured_s=result.saved_s,
        held=score(prediction.saves_s, result.saved_s),
    )


def keep_outcome(scored: PredictionPart, now: Run) -> None:
    """Write the outcome into the ledger."""
    measured = scored.measured_s
    append_outcome(
        ledger_path(os.environ),
        Outcome(
            made_at=now.made_at,
            twospeed_version=__version__,
            cure=scored.cure,
            predicted_low_s=scored.saves_s.low,
            predicted_likely_s=scored.saves_s.likely,
            predicted_high_s=scored.saves_s.high,
            measured_low_s=measured.low if measured else None,
            measured_likely_s=measured.likely if measured else None,
            measured_high_s=measured.high if measured else None,
            held=scored.held,
            runtime=now.source.runtime,
            model=now.source.model,
        ),
    )


def about_of(stage: Stage, before: Run, now: Run) -> About:
    """Arms and workload of the comparison."""
    arm, opened = stage.arms[0], stage.known[0]
    return About(
        arms=(
            arm_part("before", "before", before.source, {}, told_facts(before.facts)),
            arm_part(arm.name, arm.kind, opened.source, {}, told_facts(opened.facts)),
        ),
        workload=before.workload,
        made_at=now.made_at,
        twospeed_version=__version__,
    )
