"""Conducts one timing: an endpoint is opened, the load is sent, each record is told at once."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Iterable
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path

from msgspec.structs import replace

from twospeed import __version__
from twospeed.cli.diagnose import api_key
from twospeed.cli.measuring.conduct import limits_of
from twospeed.cli.measuring.connection_options import access_options
from twospeed.cli.measuring.this_machine import host_watch
from twospeed.cli.terminal.output import check_writable
from twospeed.cli.terminal.progress import Progress
from twospeed.cli.timing.printing import Printing
from twospeed.cli.timing.saving import Saving
from twospeed.records.errors import EndpointError, InputError, UsageError
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.records.run import Conditions, RuntimeFacts, Source
from twospeed.report.timing import OwnPart, Timing, TimingSheet, timing_of
from twospeed.sources.live.endpoint import Endpoint
from twospeed.sources.live.load import Load, ready_load
from twospeed.sources.live.receiver import StampedBy
from twospeed.sources.live.self_check import OwnUse, SelfCheck
from twospeed.sources.live.stream_loop import stream_loop

PROMPT_TOKENS = 2000
OUTPUT_TOKENS = 300
TEMPLATE_ROOM_TOKENS = 64
LONGEST_PROMPT_BYTES = 64 * 2**20

SAME_PROMPT = (
    "The same prompt was sent {n} times: from the second on it may come from the prompt cache."
)


def timed(args: Namespace) -> int:
    """Time what the options ask for, print it, and return the exit status.

    Raises:
        TwospeedError: nothing could be timed.
    """
    check_writable(args.out)
    refuse_impossible_clock(args.clock)
    prompt = None if args.prompt is None else read_prompt(args.prompt)
    progress = Progress(quiet=args.json)
    printing = Printing(args)
    with Saving(args.save) as saving:
        stopwatch = Stopwatch(args, prompt, progress, printing, saving)
        try:
            with asyncio.Runner(loop_factory=stream_loop) as runner:
                runner.run(stopwatch.run())
        except KeyboardInterrupt:
            if stopwatch.sheet is None or not stopwatch.sheet.rows:
                raise
            progress.note("Stopped: what follows rests on the requests until then.")
        finally:
            progress.clear()
        timing = stopwatch.document()
    printing.finish(timing)
    refuse_hopeless(timing)
    return 0 if timing.conditions.trusted else 4


def refuse_impossible_clock(clock: StampedBy | None) -> None:
    """Refuse the kernel's stamps where there are none.

    Raises:
        UsageError: this is not Linux.
    """
    if clock == "kernel" and sys.platform != "linux":
        raise UsageError("--clock kernel needs Linux.", hint="Leave the option out.")


def refuse_hopeless(timing: Timing) -> None:
    """End with the server's own words when every request failed.

    Raises:
        EndpointError: the first request's.
    """
    errors = [row.error for row in timing.requests]
    first = errors[0] if errors else None
    if first is not None and None not in errors:
        raise EndpointError(first.message, http_status=first.http_status)


def read_prompt(name: str) -> str:
    """The user's own text, from a file or from stdin (`-`).

    Raises:
        InputError: it cannot be read, is no text, empty, or far longer than any context.
    """
    try:
        if name == "-":
            stdin = sys.stdin
            raw = (stdin.buffer if isinstance(stdin, TextIOWrapper) else stdin).read(
                LONGEST_PROMPT_BYTES + 1
            )
        else:
            with Path(name).open("rb") as file:
                raw = file.read(LONGEST_PROMPT_BYTES + 1)
    except OSError as error:
        raise InputError(f"Cannot read {name}: {error.strerror}.") from error
    if len(raw) > LONGEST_PROMPT_BYTES:
        raise InputError(f"{name} is longer than {LONGEST_PROMPT_BYTES // 2**20} MiB.")
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text.") from error
    if not text.strip():
        raise InputError(f"{name} is empty.", hint="A prompt needs at least one word.")
    return text


class Stopwatch:
    """One timing under way, complete enough to be told at any moment."""

    def __init__(
        self,
        args: Namespace,
        prompt: str | None,
        progress: Progress,
        printing: Printing,
        saving: Saving,
    ) -> None:
        self.sheet: TimingSheet | None = None
        self._args = args
        self._prompt = prompt
        self._progress = progress
        self._printing = printing
        self._saving = saving
        self._made_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._requests: int = args.requests or args.concurrency
        self._lanes: int = min(args.concurrency, self._requests)
        self._source = Source(kind="live", where=args.url)
        self._conditions = Conditions()
        self._own: OwnUse | None = None
        self._others: list[int] = []
        self._gave_up = False

    async def run(self) -> None:
        """Open the endpoint and send the load.

        Raises:
            EndpointError: nothing usable answers.
        """
        args, progress = self._args, self._progress
        progress.show(f"Asking {args.url} what it is ...", force=True)
        async with await Endpoint.open(
            args.url,
            model=args.model,
            api_key=api_key(args),
            runtime_id=args.runtime,
            limits=limits_of(args.timeout),
            load_wait_s=args.timeout,
            on_loading=lambda waited_s: progress.show(f"loading its model ({waited_s:.0f} s)"),
            stamped_by=args.clock,
            reach=access_options(args),
        ) as endpoint:
            self._source = endpoint.source()
            self._saving.open(self._source, endpoint.facts, self._made_at)
            self.sheet = TimingSheet(
                round_trip_s=await endpoint.round_trip_s(), alone=self._lanes == 1
            )
            await self._send(endpoint, self._load(endpoint.facts), self.sheet)

    async def _send(self, endpoint: Endpoint, load: Load, sheet: TimingSheet) -> None:
        ready = await ready_load(
            endpoint,
            load,
            lambda n: self._progress.show(f"{n} of {self._requests} prompts"),
        )
        watch, check = host_watch(endpoint), SelfCheck()
        await self._look_at_others(endpoint)
        self._progress.clear()
        self._printing.begin()
        watch.start()
        check.start()
        try:
            self._gave_up = not await ready.run(lambda record: self._take(sheet, record))
        finally:
            self._own = check.stop()
            self._conditions = watch.stop()
        await self._look_at_others(endpoint)
        if not self._gave_up:
            self._saving.complete()

    def _load(self, facts: RuntimeFacts) -> Load:
        args = self._args
        output = args.output_tokens or OUTPUT_TOKENS
        if self._prompt is not None:
            words = len(self._prompt.split())
            probe = Probe(step="user", prompt_tokens=words, output_tokens=output)
        else:
            tokens = args.prompt_tokens or fitting_prompt_tokens(facts.n_ctx, output)
            probe = Probe(step="curve", prompt_tokens=tokens, output_tokens=output)
        return Load(
            probe=probe,
            requests=self._requests,
            concurrency=self._lanes,
            start=args.start,
            prompt=self._prompt,
            stream=not args.no_stream,
        )

    def _take(self, sheet: TimingSheet, record: RequestRecord) -> None:
        """Tell one record as it is complete."""
        row = sheet.add(record)
        if record.other_requests is not None:
            self._others.append(record.other_requests)
        self._saving.add(record)
        self._printing.row(row)
        self._progress.show(f"{len(sheet.rows)} of {self._requests} requests")

    async def _look_at_others(self, endpoint: Endpoint) -> None:
        """Ask before and after what else the server does; one request alone asks by itself."""
        if self._lanes == 1:
            return
        channel = endpoint.take_channel()
        try:
            seen = await endpoint.sender.other_requests(channel)
        finally:
            endpoint.give_back(channel)
        if seen is not None:
            self._others.append(seen)

    def document(self) -> Timing:
        """What is known so far.

        Raises:
            EndpointError: nothing was sent.
        """
        if self.sheet is None or self._own is None:
            raise EndpointError(f"Nothing was sent to {self._source.where}.")
        return timing_of(
            self.sheet,
            source=self._source,
            made_at=self._made_at,
            twospeed_version=__version__,
            conditions=self._judged(self.sheet, self._own),
            own=own_part(self._own, self.sheet.output_tokens),
            complete=len(self.sheet.rows) == self._requests,
            gave_up=self._gave_up,
        )

    def _judged(self, sheet: TimingSheet, own: OwnUse) -> Conditions:
        """The conditions of the host, with what we saw of ourselves and of the server."""
        clocks: set[StampedBy] = {row.clock for row in sheet.rows}
        ours = own.warnings("user" if "user" in clocks else "kernel")
        notes: Iterable[str] = ()
        if self._prompt is not None and len(sheet.rows) > 1:
            notes = (SAME_PROMPT.format(n=len(sheet.rows)),)
        return replace(
            self._conditions,
            other_requests=max(self._others, default=None),
            own_cpu_s=own.cpu_s,
            trusted=self._conditions.trusted and not ours,
            warnings=(*self._conditions.warnings, *ours, *notes),
        )


def fitting_prompt_tokens(n_ctx: int | None, output_tokens: int) -> int:
    """The usual prompt length, or what the context leaves for it."""
    if n_ctx is None:
        return PROMPT_TOKENS
    return max(1, min(PROMPT_TOKENS, n_ctx - output_tokens - TEMPLATE_ROOM_TOKENS))


def own_part(own: OwnUse, output_tokens: int) -> OwnPart:
    """Our own cost as the document tells it."""
    return OwnPart(
        cpu_s=own.cpu_s,
        cpu_s_per_token=own.cpu_s / output_tokens if output_tokens else None,
        loop_lag_s=own.loop_lag_s,
        peak_bytes=own.peak_bytes,
    )
