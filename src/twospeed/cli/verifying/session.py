"""A saved diagnosis against the same server now: part of its prompts again, and the prediction."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace

from msgspec.structs import replace

from twospeed import __version__
from twospeed.cli.measuring.book import Book
from twospeed.cli.measuring.conduct import workload_of
from twospeed.cli.terminal.progress import Progress
from twospeed.cli.verifying.repeating import Repeating, session_probes
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
from twospeed.records.errors import InputError
from twospeed.records.ledger import Outcome, append_outcome, ledger_path
from twospeed.records.run import Run
from twospeed.records.run_file import read_run
from twospeed.report.verdict import PredictionPart, Verdict
from twospeed.report.verdict_build import About, arm_part, verdict_of_sessions


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
