"""One experiment on one endpoint: the plan asks, the endpoint answers, the book keeps.

The plan knows statistics and no sockets, the endpoint knows sockets and no statistics.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from twospeed.cli.measuring.book import Book
from twospeed.cli.measuring.this_machine import RunWatch
from twospeed.cli.terminal.progress import Progress
from twospeed.findings.phase_times import mid_answer_depth
from twospeed.fits.follow_ups import CURVE_SHARE, FIELDS_CURVE_SHARE, FollowUps
from twospeed.fits.plan import OVERRUN, Plan
from twospeed.fits.rates import rates_of
from twospeed.records.errors import EndpointError
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.records.run import Blind, Run
from twospeed.sources.live.endpoint import Endpoint

TICK_S = 0.5

Measured = TypeVar("Measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What one experiment works with."""

    endpoint: Endpoint
    watch: RunWatch
    book: Book
    progress: Progress
    budget_s: float
    company: bool
    """Whether requests may be sent beside each other."""
    fields: bool
    """Whether the user adds fields to each request."""

    async def run(self) -> None:
        """Let the plan ask until it is settled or its share is spent, then the follow-ups.

        Raises:
            EndpointError: the very first request failed, or all but the warm-up, so that there is
                nothing to report.
        """
        plan = plan_for(self.book.run, self._curve_budget_s)
        self._announce(plan)
        book, started_s = self.book, time.monotonic()
        while (probe := plan.next_probe(book.run.records, self._since(started_s))) is not None:
            await self._measure(probe)
            if len(book.run.records) == 1:
                refuse_hopeless(book.run.records)
            if probe.step == "warmup" and await self._learned_facts():
                plan = plan_for(book.run, self._curve_budget_s)
        refuse_hopeless(book.run.records)
        left_out = list(plan.skipped)
        if plan.why_stopped in ("settled", "budget", "requests"):
            left_out += await self._follow_up(started_s)
        for blind in left_out:
            book.add(blind)

    async def _follow_up(self, started_s: float) -> list[Blind]:
        """Ask how prompts are reused and what company costs, as far as the budget goes."""
        run = self.book.run
        follow_ups = FollowUps(
            budget_s=self.budget_s,
            company=self.company,
            fields=self.fields,
            output_tokens=run.workload.output_tokens,
            round_trip_s=run.round_trip_s,
            ignore_timings=run.ignore_timings,
        )
        while probes := follow_ups.next_probes(self.book.run.records, self._since(started_s)):
            if len(probes) == 1:
                await self._measure(probes[0])
            else:
                await self._measure_together(probes)
        return follow_ups.skipped

    @property
    def _curve_budget_s(self) -> float:
        return (FIELDS_CURVE_SHARE if self.fields else CURVE_SHARE) * self.budget_s

    def _since(self, started_s: float) -> float:
        return time.monotonic() - started_s

    def _announce(self, plan: Plan) -> None:
        """Say what will be sent before anything is."""
        cost = plan.announce()
        self.progress.note(
            f"Sending at most {cost.requests} made-up prompts ({cost.tokens:,} tokens) in about "
            f"{self.budget_s:.0f} s, {OVERRUN * self.budget_s:.0f} at most."
        )
        if self.book.run.source.kind == "live":
            self.progress.note("They may push a conversation out of the server's prompt cache.")
            if self.company:
                self.progress.note("Up to four at once at the end; --no-together leaves that out.")

    async def _measure(self, probe: Probe) -> None:
        number = len(self.book.run.records) + 1
        what = f"{probe.step} ({probe.change.replace('_', ' ')})" if probe.change else probe.step
        label = f"[{number}] {what}: {probe.prompt_tokens:,} tokens in"
        self.book.add(await self._watched(self.endpoint.measure(probe, number), label))

    async def _measure_together(self, probes: Sequence[Probe]) -> None:
        number = len(self.book.run.records) + 1
        label = f"[{number}] {len(probes)} at once: {probes[0].prompt_tokens:,} tokens in each"
        sending = self.endpoint.measure_together(probes, number)
        for record in await self._watched(sending, label):
            self.book.add(record)

    async def _watched(self, sending: Coroutine[Any, Any, Measured], label: str) -> Measured:
        """Await what is sent, with a live line and glances at the machine meanwhile."""
        text = f"{label}{running_estimate(self.book.run)}"
        beside = [
            asyncio.create_task(self._tick(text, time.monotonic())),
            asyncio.create_task(self.watch.glances()),
        ]
        try:
            return await sending
        finally:
            for task in beside:
                task.cancel()
            self.watch.sample()

    async def _tick(self, text: str, started_s: float) -> None:
        """Keep the live line moving."""
        while True:
            self.progress.show(f"{text} · {time.monotonic() - started_s:.0f} s", force=True)
            await asyncio.sleep(TICK_S)

    async def _learned_facts(self) -> bool:
        """Ask again once the model is loaded: some runtimes only then know its size and context."""
        if self.book.run.source.kind == "engine":
            return False
        fresh = await self.endpoint.refresh_facts()
        if fresh == self.book.run.facts:
            return False
        self.book.add(fresh)
        return True


def plan_for(run: Run, budget_s: float) -> Plan:
    """The experiment for what is known of the endpoint."""
    return Plan(
        run.workload,
        run.goals,
        n_ctx=run.facts.n_ctx,
        budget_s=budget_s,
        round_trip_s=run.round_trip_s,
        ignore_timings=run.ignore_timings,
    )


def refuse_hopeless(records: Sequence[RequestRecord]) -> None:
    """End with the server's own words when the last request failed and none before was of use.

    Raises:
        EndpointError: nothing can be reported from these records.
    """
    error = records[-1].error if records else None
    if error is None or any(r.error is None and r.step != "warmup" for r in records):
        return
    raise EndpointError(error.message, http_status=error.http_status)


def running_estimate(run: Run) -> str:
    """What the curves say so far about the workload, for the live line."""
    rates = rates_of(run.records, round_trip_s=run.round_trip_s, ignore_timings=run.ignore_timings)
    parts = []
    if rates.prefill is not None:
        parts.append(f"wait ≈ {rates.prefill.seconds(run.workload.prompt_tokens).likely:.2f} s")
    if rates.decode is not None:
        decode_tps = rates.decode.tps(mid_answer_depth(run.workload))
        parts.append(f"stream ≈ {decode_tps.likely:.0f} tok/s")
    return "".join(f" · {part}" for part in parts)
