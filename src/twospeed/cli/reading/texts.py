"""Reads the texts of one command line and reports what they tell together."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from twospeed.cli.measuring.conduct import goals_of, workload_of
from twospeed.cli.reading.following import follow
from twospeed.cli.reading.listing import render_requests
from twospeed.cli.terminal.output import (
    INCONCLUSIVE,
    check_fail_on,
    check_writable,
    deliver,
    exit_status,
    write_text,
)
from twospeed.cli.terminal.questions import asked_of, known_outcomes, with_settings
from twospeed.fits.workload import typical_workload
from twospeed.records.errors import UsageError
from twospeed.records.request_record import RequestRecord
from twospeed.records.run import CHAT_TURN, Goals, Run, Workload
from twospeed.records.run_file import looks_like_run, read_run_from
from twospeed.report.build import build_report
from twospeed.report.what_if import Asked
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.reading import read_file
from twospeed.sources.logs.run import run_of
from twospeed.sources.logs.text_input import STDIN, head_of, opened
from twospeed.sources.logs.wanted import Wanted

HEAD_BYTES = 4096


def report_texts(args: Namespace) -> int:
    """Read all texts, print what was asked for, and return the exit status.

    Raises:
        UsageError: options that cannot be meant.
        InputError: a text cannot be read, or the result cannot be written.
    """
    check_fail_on(args.fail_on)
    check_writable(args.out)
    asked = asked_of(args)
    wanted = _wanted(args)
    if args.follow:
        return follow(args, wanted, lambda content: _finish(_run_of(content, args, 0), asked, args))
    run = _read(args, wanted)
    if is_empty(run):
        return _nothing(run, args)
    return _finish(run, asked, args)


def is_empty(run: Run) -> bool:
    """Whether the texts told nothing that a verdict, or even a fact, could rest on."""
    facts = replace(run.facts, reports_cached_tokens=None)
    told = run.records or run.points or run.summary or run.machine or run.source.runtime
    return not told and facts == type(facts)()


def _finish(run: Run, asked: Asked, args: Namespace) -> int:
    """Print the run and say how it ends."""
    if args.last and run.records:
        last = run.records[-1:]
        run = replace(run, records=last, workload=_workload(last, args))
    if args.requests:
        write_text(render_requests(run), args)
        return 0 if run.records else _no_requests(run)
    report = build_report(with_settings(run), asked, known_outcomes())
    deliver(report, args)
    return exit_status(report, args.fail_on)


def _read(args: Namespace, wanted: Wanted | None) -> Run:
    saved = _saved_run(args) if len(args.files) == 1 else None
    if saved is not None:
        return saved
    whole, dropped = Content(), 0
    for where in each_once(args.files):
        content, lost = read_file(where, wanted)
        whole.join(content)
        dropped += lost
    return _run_of(whole, args, dropped)


def each_once(files: Sequence[str]) -> list[str]:
    """The texts without those that were named before, by whatever name; says which."""
    found: dict[object, str] = {}
    for where in files:
        same = _identity(where)
        if same in found:
            print(f"twospeed: {where} was given before: it counts once.", file=sys.stderr)
            continue
        found[same] = where
        if where != STDIN and Path(where).is_fifo() and not where.startswith("/dev/fd/"):
            print(f"twospeed: Waiting for what is written into {where} ...", file=sys.stderr)
    return list(found.values())


def _identity(where: str) -> object:
    """What tells a file from others; its name where it cannot be looked at."""
    try:
        state = Path(where).stat() if where != STDIN else None
    except OSError:
        state = None
    return where if state is None else (state.st_dev, state.st_ino)


def _saved_run(args: Namespace) -> Run | None:
    """The run of one of our own record files; None for any other text."""
    where = args.files[0]
    if not looks_like_run(head_of(where, HEAD_BYTES)):
        return None
    with opened(where) as file:
        run = read_run_from(file, where=where)
    goals, workload = goals_of(args, run.goals), workload_of(args, run.workload)
    return replace(run, goals=goals, workload=workload)


def _run_of(content: Content, args: Namespace, dropped: int) -> Run:
    names = ["stdin" if where == STDIN else where for where in args.files]
    run = run_of(content, names, goals=goals_of(args, Goals()), dropped=dropped)
    return replace(run, workload=_workload(run.records, args))


def _workload(records: Sequence[RequestRecord], args: Namespace) -> Workload:
    typical = typical_workload(records, "log") or CHAT_TURN
    if not typical.output_tokens:
        typical = replace(typical, output_tokens=CHAT_TURN.output_tokens)
    return workload_of(args, typical)


def _wanted(args: Namespace) -> Wanted | None:
    if args.grep is None and args.since is None:
        return None
    try:
        pattern = None if args.grep is None else re.compile(args.grep)
    except re.error as error:
        raise UsageError(f"--grep {args.grep}: {error}.") from error
    since = None if args.since is None else args.since.strip().replace(" ", "T")
    if since is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d(T\d\d(:\d\d){0,2})?", since):
        raise UsageError(f"--since {args.since}: not a time.", hint="Write it as 2026-07-24T15:30.")
    return Wanted(grep=pattern, since=since)


def _nothing(run: Run, args: Namespace) -> int:
    """Say that nothing was recognised; JSON says it in its own form."""
    if args.json or args.markdown:
        deliver(build_report(run), args)
    for blind in run.unknown:
        print(f"twospeed: {blind.what}; needs {blind.needs}.", file=sys.stderr)
    print(
        f"twospeed: Nothing was recognised in {_chosen(run, args)}: no timings of a runtime or of "
        "a benchmark that is known here. docs/reading-logs.md lists what can be read.",
        file=sys.stderr,
    )
    return INCONCLUSIVE


def _chosen(run: Run, args: Namespace) -> str:
    """What was read: the texts, or the lines of them that the options left."""
    given = {"--grep": args.grep, "--since": args.since}
    options = " and ".join(name for name, value in given.items() if value is not None)
    lines = f"the lines that {options} chose of " if options else ""
    return f"{lines}{run.source.where}"


def _no_requests(run: Run) -> int:
    """Say that a text, such as a benchmark table, tells of no single request."""
    print(
        f"twospeed: No single request is told of in {run.source.where}. "
        "Leave out --requests to see what it tells.",
        file=sys.stderr,
    )
    return INCONCLUSIVE
