"""Conducts one diagnosis: an endpoint is found or started, the plan asks, the endpoint answers.

The plan knows statistics and no sockets, the endpoint knows sockets and no statistics; here they
meet. Whatever was measured survives an interruption.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from contextlib import ExitStack

from msgspec.structs import replace

from twospeed.cli.diagnose import api_key
from twospeed.cli.measuring.book import Book
from twospeed.cli.measuring.connection_options import access_options
from twospeed.cli.measuring.embedded import facts_of_engine, source_of_engine, started_engine
from twospeed.cli.measuring.experiment import Experiment
from twospeed.cli.measuring.server_log import learn_from_log
from twospeed.cli.measuring.this_machine import RunWatch, look_at_machine
from twospeed.cli.terminal.progress import Progress
from twospeed.cli.terminal.request_fields import request_fields
from twospeed.records.errors import EndpointError, InputError, UsageError
from twospeed.records.run import CHAT_TURN, Goals, Run, Workload
from twospeed.records.run_file import read_run
from twospeed.sources.engine.engine import Engine
from twospeed.sources.live.discovery import find_local
from twospeed.sources.live.endpoint import Endpoint
from twospeed.sources.live.time_limits import Limits


def measured_or_read_run(args: Namespace) -> Run:
    """The run to report: read again with --from, else measured now.

    Raises:
        UsageError: options that exclude each other.
        TwospeedError: nothing could be measured.
    """
    refuse_contradictions(args)
    if args.from_file is not None:
        return reread(args)
    progress = Progress(quiet=args.json)
    book = Book(
        workload_of(args, CHAT_TURN),
        goals_of(args, Goals()),
        save=args.save,
        ignore_timings=args.ignore_timings,
    )
    try:
        with ExitStack() as cleanup:
            engine = None
            if args.embedded or args.engine:
                engine = cleanup.enter_context(started_engine(args.engine, args.model, progress))
            # The default loop of Windows cannot watch a socket of our own.
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(conduct(args, engine, book, progress))
    except KeyboardInterrupt:
        if not book.run.records:
            raise
        progress.note("Stopped: what follows rests on the requests until then.")
    finally:
        progress.clear()
        book.close()
    return book.run


def refuse_contradictions(args: Namespace) -> None:
    """Refuse options that cannot be meant together.

    Raises:
        UsageError: names the options.
    """
    embedded = args.embedded or bool(args.engine)
    if args.url is not None and embedded:
        raise UsageError("Give either URL or --embedded, not both.")
    others = (args.url, args.save, args.log, args.request)
    if args.from_file is not None and (embedded or any(one is not None for one in others)):
        raise UsageError(
            "--from reads a saved run: it goes with neither URL, --embedded, --save, --log nor "
            "--request."
        )
    request_fields(args.request or "")
    if args.log is not None and not args.log.is_file():
        raise InputError(f"Cannot read {args.log}: there is no such file.")


def reread(args: Namespace) -> Run:
    """A saved run, with the workload, goals and clocks that this command line asks for."""
    run = read_run(args.from_file)
    return replace(
        run,
        workload=workload_of(args, run.workload),
        goals=goals_of(args, run.goals),
        ignore_timings=run.ignore_timings or args.ignore_timings,
    )


def workload_of(args: Namespace, otherwise: Workload) -> Workload:
    """The request shape of the flags, or the one that holds without them."""
    if args.prompt_tokens is None and args.output_tokens is None:
        return otherwise
    return replace(
        otherwise,
        prompt_tokens=args.prompt_tokens or otherwise.prompt_tokens,
        output_tokens=args.output_tokens or otherwise.output_tokens,
        origin="flag",
    )


def goals_of(args: Namespace, otherwise: Goals) -> Goals:
    """The goals of the flags, or those that hold without them."""
    return Goals(
        wait_s=args.wait_goal or otherwise.wait_s,
        stream_tps=args.stream_goal or otherwise.stream_tps,
    )


async def conduct(args: Namespace, engine: Engine | None, book: Book, progress: Progress) -> None:
    """Measure one endpoint into the book.

    Raises:
        EndpointError: nothing usable answers, or the first request was refused.
    """
    given: str | None = args.url if engine is None else engine.url
    fields = request_fields(args.request or "")
    reach = access_options(args) if engine is None else None
    url = await found_url(progress) if given is None else given
    progress.show(f"Asking {url} what it is ...", force=True)
    async with await Endpoint.open(
        url,
        model=None if engine is not None else args.model,
        api_key=api_key(args),
        reach=reach,
        runtime_id=args.runtime,
        limits=limits_of(args.timeout),
        load_wait_s=args.timeout,
        on_loading=lambda waited_s: progress.show(f"{url} is loading its model ({waited_s:.0f} s)"),
        extra=fields,
    ) as endpoint:
        if engine is None:
            book.open(endpoint.source("live"), endpoint.facts)
        else:
            book.open(source_of_engine(endpoint), facts_of_engine(engine, endpoint.facts))
        book.loading(endpoint.loading_s)
        watch = RunWatch(endpoint, engine)
        look_at_machine(args, endpoint, watch.pid, book, progress)
        book.round_trip(await endpoint.round_trip_s())
        watch.start()
        try:
            experiment = Experiment(
                endpoint=endpoint,
                watch=watch,
                book=book,
                progress=progress,
                budget_s=args.budget,
                company=wants_company(args, book.run),
                fields=bool(fields),
            )
            await experiment.run()
            if args.log is not None:
                learn_from_log(args.log, book)
        finally:
            watch.stop(book)
        book.complete()


def limits_of(timeout_s: float) -> Limits:
    """Limits of one request: nothing stays silent for longer than the user allows."""
    longest_gap_s = min(timeout_s, Limits().gap_s)
    return Limits(first_text_s=timeout_s, headers_s=timeout_s, gap_s=longest_gap_s)


async def found_url(progress: Progress) -> str:
    """The address of the runtime that runs on this machine; the first of several, saying so.

    Raises:
        EndpointError: none was found.
    """
    progress.show("Looking for a runtime on this machine ...", force=True)
    found = await find_local()
    if not found:
        raise EndpointError(
            "No runtime was found on the usual ports of this machine.",
            hint="Give its URL, or try: twospeed diagnose --embedded",
        )
    for other in found[1:]:
        progress.note(f"Also running: {other.runtime_id} at {other.url}")
    progress.note(f"Found {found[0].runtime_id} at {found[0].url}")
    return found[0].url


def wants_company(args: Namespace, run: Run) -> bool:
    """Whether to send requests beside each other: as asked, else only to a server on this machine.

    A runtime with one slot only makes them wait, which is told by its number of slots.
    """
    if args.together is not None:
        return bool(args.together)
    return run.source.local is True
