"""What a report needs beyond the run: questions of the command line, settings, the ledger."""

from __future__ import annotations

import os
from argparse import Namespace

from msgspec.structs import replace

from twospeed.cures.elsewhere import Remote
from twospeed.cures.scenario import read_scenarios
from twospeed.records.errors import InputError, UsageError
from twospeed.records.ledger import Outcome, ledger_path, read_outcomes
from twospeed.records.run import Run
from twospeed.report.what_if import Asked
from twospeed.runtimes.registry import settings_of

REMOTE_DETAILS = ("remote_ttft_per_1k", "price_in", "price_out", "local_watts", "price_kwh")
PAIRS = (("remote_ttft", "remote_tps"), ("price_in", "price_out"), ("local_watts", "price_kwh"))


def asked_of(args: Namespace) -> Asked:
    """The questions of `argument_types.question_arguments`, read before anything is measured.

    Raises:
        UsageError: a scenario that cannot be read, or half of a description.
    """
    return Asked(scenarios=read_scenarios(args.what_if), remote=_remote(args))


def known_outcomes() -> tuple[Outcome, ...]:
    """The ledger of this machine; a report does without one that cannot be read."""
    try:
        return read_outcomes(ledger_path(os.environ))
    except InputError:
        return ()


def with_settings(run: Run) -> Run:
    """The run with the spellings of its runtime, where its source did not bring them."""
    return run if run.settings else replace(run, settings=settings_of(run.source.runtime))


def _remote(args: Namespace) -> Remote | None:
    for one, other in PAIRS:
        if (getattr(args, one) is None) != (getattr(args, other) is None):
            raise UsageError(
                f"{_option(one)} and {_option(other)} are given together or not at all."
            )
    if args.remote_ttft is None:
        idle = [name for name in REMOTE_DETAILS if getattr(args, name) is not None]
        if idle:
            raise UsageError(
                f"{_option(idle[0])} describes another server, and none is given.",
                hint="Add --remote-ttft SECONDS and --remote-tps TOK/S.",
            )
        return None
    return Remote(
        ttft_s=args.remote_ttft,
        tps=args.remote_tps,
        ttft_per_1k_s=args.remote_ttft_per_1k or 0.0,
        price_in=args.price_in,
        price_out=args.price_out,
        local_watts=args.local_watts,
        price_kwh=args.price_kwh,
    )


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
