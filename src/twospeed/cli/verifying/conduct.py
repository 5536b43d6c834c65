"""Conducts one comparison: arms are opened, the trial asks, the arms answer."""

from __future__ import annotations

import asyncio
import os
import time
from argparse import Namespace
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from twospeed import __version__
from twospeed.cli.measuring.conduct import workload_of
from twospeed.cli.terminal.output import refuse_closed_stdout, write_text
from twospeed.cli.terminal.progress import Progress
from twospeed.cli.timing.saving import Saving
from twospeed.cli.verifying.arms import arms_of, compares_reuse, refuse_arms
from twospeed.cli.verifying.ledger_table import ledger_table
from twospeed.cli.verifying.output import (
    check_output,
    deliver,
    exit_status,
    parse_fail_on,
)
from twospeed.cli.verifying.sending import Sending
from twospeed.cli.verifying.session import session_verdict
from twospeed.cli.verifying.stage import Stage, told_facts
from twospeed.cures.trial import Trial
from twospeed.cures.trial_plan import TrialPlan
from twospeed.cures.trial_result import result_of
from twospeed.records.errors import EndpointError, TwospeedError
from twospeed.records.ledger import ledger_path, read_outcomes
from twospeed.records.run import CHAT_TURN, Workload
from twospeed.records.run_file import read_run
from twospeed.report.verdict import ArmPart, Verdict
from twospeed.report.verdict_build import About, arm_part, verdict_of_trial


def verified(args: Namespace) -> int:
    """Compare what the options ask for, print it, and return the exit status.

    Raises:
        TwospeedError: nothing could be compared.
    """
    refuse_closed_stdout(args)
    if args.ledger:
        refuse_arms(args)
        write_text(ledger_table(read_outcomes(ledger_path(os.environ)), as_json=args.json), args)
        return 0
    gate = parse_fail_on(args.fail_on)
    check_output(args)
    arms = arms_of(args)
    args.url = args.urls[0] if args.urls else None
    progress = Progress(quiet=args.json)
    try:
        # The default loop of Windows cannot watch a socket of our own.
        with (
            asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner,
            Stage(arms, args, runner, progress) as stage,
        ):
            if args.before is not None:
                verdict = session_verdict(args, stage, runner, progress)
            else:
                stage.open_all()
                verdict = trial_verdict(args, stage, runner, progress)
    finally:
        progress.clear()
    deliver(verdict, args, gate)
    return exit_status(verdict, gate)


def trial_verdict(
    args: Namespace, stage: Stage, runner: asyncio.Runner, progress: Progress
) -> Verdict:
    """Two arms, compared by interleaved pairs.

    Raises:
        EndpointError: no request was answered.
    """
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    workload = asked_workload(args)
    with ExitStack() as files:
        savings = [files.enter_context(Saving(path)) for path in save_paths(args.save)]
        for saving, arm in zip(savings, stage.known.values(), strict=True):
            saving.open(arm.source, arm.facts, made_at)
        sending = Sending(
            stage,
            runner,
            progress,
            shared=stage.arms[0].kind == "request",
            primed=compares_reuse(stage.arms),
            starts=args.starts,
            kept=lambda arm, record: savings[arm].add(record),
        )
        failed_start = None
        trial = trial_of(args, workload, stage, sending)
        announce(trial, progress)
        try:
            trial.run()
            stage.refresh_facts()
            for saving in savings:
                saving.complete()
        except KeyboardInterrupt:
            progress.note("Stopped: what follows rests on the pairs until then.")
        except TwospeedError as error:
            if not trial.pairs:
                raise
            trial.why_stopped = "errors"
            failed_start = str(error)
    about = About(
        arms=(arm_of(stage, 0), arm_of(stage, 1)),
        workload=workload,
        made_at=made_at,
        twospeed_version=__version__,
    )
    failure = failed_start or last_failure(trial)
    return verdict_of_trial(result_of(trial), about, failure=failure)


def trial_of(args: Namespace, workload: Workload, stage: Stage, sending: Sending) -> Trial:
    """The experiment for what is known of both arms."""
    first, second = stage.known[0], stage.known[1]
    contexts = [arm.facts.n_ctx for arm in (first, second) if arm.facts.n_ctx is not None]
    plan = TrialPlan(
        workload, n_ctx=min(contexts, default=None), budget_s=args.budget, seed=args.seed
    )
    return Trial(
        sending.measure,
        plan,
        lambda: time.monotonic() - stage.outside_s,
        same_runtime=first.source.runtime == second.source.runtime,
        round_trips_s=(first.round_trip_s, second.round_trip_s),
        per_prompt_token=compares_reuse(stage.arms),
        renew=sending.renew,
    )


def asked_workload(args: Namespace) -> Workload:
    """The request shape of the flags, of the saved run of --from, or the default."""
    otherwise = CHAT_TURN if args.from_file is None else read_run(args.from_file).workload
    # Pairs are of unique prompts: nothing of them is cached.
    return replace(workload_of(args, otherwise), cached_prompt_tokens=0)


def announce(trial: Trial, progress: Progress) -> None:
    """Say what will be sent before anything is."""
    progress.note(
        f"Sending made-up prompts of up to {trial.plan.main_tokens:,} tokens to both in turn, for "
        f"{trial.plan.budget_s:.0f} s at most. No ratio is shown before the end."
    )
    progress.note("They may push a conversation out of a server's prompt cache.")


def last_failure(trial: Trial) -> str | None:
    """Message of the request that ended the trial, if one did.

    Raises:
        EndpointError: no pair was answered before it.
    """
    error = trial.failed[-1].error if trial.failed else None
    if trial.why_stopped != "errors" or error is None:
        return None
    if not trial.pairs:
        raise EndpointError(error.message, http_status=error.http_status)
    return error.message


def arm_of(stage: Stage, index: int) -> ArmPart:
    """One arm as the document shows it."""
    arm, opened = stage.arms[index], stage.known[index]
    return arm_part(arm.name, arm.kind, opened.source, opened.settings, told_facts(opened.facts))


def save_paths(path: Path | None) -> tuple[Path | None, Path | None]:
    """One record file for each arm: run.jsonl becomes run-1.jsonl and run-2.jsonl."""
    if path is None:
        return None, None
    return path.with_stem(f"{path.stem}-1"), path.with_stem(f"{path.stem}-2")
