"""Part of the earlier prompts, sent again to the server as it is now."""

from __future__ import annotations

import asyncio
import random
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence

from twospeed.cli.measuring.book import Book
from twospeed.cli.terminal.progress import Progress
from twospeed.cli.verifying.sending import Sending
from twospeed.cli.verifying.stage import Stage
from twospeed.records.errors import EndpointError
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.records.run import Conditions, Run, Workload
from twospeed.report.verdict_words import BUSY

ROUNDS = 3
OUTPUT_TOKENS = 64
NEW_SHARE = 3
"""So many requests of the changed shape for each one of an earlier length."""
WARMUP_PROMPT_TOKENS = 64
WARMUP_OUTPUT_TOKENS = 16


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
