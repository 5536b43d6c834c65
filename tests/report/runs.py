"""Runs with known truth: records as a runtime with these two curves would give them."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from twospeed.records.request_record import (
    ClientTimes,
    RequestRecord,
    ServerTimes,
    TextArrival,
    TokenCounts,
)
from twospeed.records.run import Conditions, Goals, Run, RuntimeFacts, Source, Workload
from twospeed.runtimes.registry import settings_of

ROUND_TRIP_S = 0.002


@dataclass(frozen=True)
class Machine:
    """A runtime that obeys both curves exactly."""

    overhead_s: float = 0.01
    per_token_s: float = 0.001
    per_token2_s: float = 0.0
    decode_per_token_s: float = 0.01
    decode_per_depth_s: float = 0.0
    queue_s: float = 0.0
    reasoning_frac: float = 0.0
    reuses: bool = True
    delay_s: float = 0.0
    """Between server and client, on the way to the first token."""
    server_clock: float = 1.0
    """Factor by which the server misreports its own times."""

    def prefill_s(self, uncached: int, cached: int = 0) -> float:
        quadratic = self.per_token2_s * (uncached**2 + 2 * cached * uncached)
        return self.overhead_s + self.per_token_s * uncached + quadratic

    def token_s(self, depth: float) -> float:
        return self.decode_per_token_s + self.decode_per_depth_s * depth

    def record(self, number: int, prompt: int, output: int, repeats: int | None = None):
        cached = prompt - 1 if repeats and self.reuses else 0
        prefill_s = self.prefill_s(prompt - cached, cached)
        first_s = prefill_s + ROUND_TRIP_S + self.queue_s + self.delay_s
        stamps = [first_s]
        for step in range(1, output):
            stamps.append(stamps[-1] + self.token_s(prompt + step))
        thinking = int(output * self.reasoning_frac)
        arrivals = tuple(
            TextArrival(
                at_s=at_s,
                kind="reasoning" if index < thinking else "answer",
                chars=4,
                coalesced=False,
            )
            for index, at_s in enumerate(stamps)
        )
        return RequestRecord(
            number=number,
            step="reuse" if repeats else "curve",
            repeats=repeats,
            dialect="openai_chat",
            counts=TokenCounts(
                prompt_tokens=prompt, cached_prompt_tokens=cached, output_tokens=output
            ),
            client=ClientTimes(
                headers_s=ROUND_TRIP_S + self.queue_s,
                ttft_s=first_s,
                first_answer_s=stamps[thinking] if thinking < output else None,
                last_text_s=stamps[-1],
                finish_s=stamps[-1],
                end_s=stamps[-1],
            ),
            server=ServerTimes(
                told_by="timings",
                prefill_s=prefill_s * self.server_clock,
                prefill_tokens=prompt - cached,
                decode_s=(stamps[-1] - stamps[0]) * self.server_clock,
                decode_steps=output - 1,
            ),
            arrivals=arrivals,
            finish_reason="length",
        )

    def records(self):
        shapes = [(128, 64), (512, 64), (1024, 64), (2048, 64), (4096, 64)]
        curve = [self.record(n, *shape) for n, shape in enumerate(shapes, start=1)]
        return (*curve, self.record(6, 2048, 16, repeats=4))


def run_of(
    machine: Machine,
    /,
    *,
    prompt: int = 2000,
    output: int = 300,
    facts: RuntimeFacts | None = None,
    runtime: str = "llama-server",
    **changes,
) -> Run:
    plain = Run(
        source=Source(
            kind="live",
            where="http://127.0.0.1:8080",
            runtime=runtime,
            runtime_version="b11549",
            model="heron-8b-q4_k_m",
            local=True,
        ),
        workload=Workload(prompt_tokens=prompt, output_tokens=output),
        goals=Goals(),
        made_at="2026-11-30T12:00:00Z",
        twospeed_version="0.1.0",
        facts=facts or RuntimeFacts(quantization="Q8_0", n_ctx=8192),
        records=machine.records(),
        round_trip_s=ROUND_TRIP_S,
        conditions=Conditions(host_load=0.02, other_requests=0),
        settings=settings_of(runtime),
    )
    return replace(plain, **changes)


PREFILL_SLOW = Machine(per_token_s=0.0022, per_token2_s=2e-7, decode_per_token_s=0.0105)
DECODE_SLOW = Machine(per_token_s=0.0004, decode_per_token_s=0.12)
BOTH_SLOW = Machine(per_token_s=0.004, decode_per_token_s=0.1, decode_per_depth_s=5e-5)
HEALTHY = Machine(per_token_s=0.0003, decode_per_token_s=0.012, decode_per_depth_s=1e-6)


def blind_run() -> Run:
    """Only the whole time of each request is known."""
    records = tuple(RequestRecord(number=n, client=ClientTimes(end_s=9.0 + n)) for n in range(1, 4))
    run = run_of(HEALTHY, runtime=None)
    return replace(run, records=records, facts=RuntimeFacts(), round_trip_s=None)


def all_runs() -> dict[str, Run]:
    return {
        "prefill": run_of(PREFILL_SLOW),
        "decode": run_of(DECODE_SLOW),
        "both": run_of(BOTH_SLOW),
        "none": run_of(HEALTHY),
        "unknown": blind_run(),
        "untrusted": run_of(
            PREFILL_SLOW,
            conditions=Conditions(
                host_load=0.6,
                trusted=False,
                warnings=("other programs used 60 % of this machine's processors",),
            ),
        ),
    }


def without_arrivals(run: Run) -> Run:
    """As a log tells it: the server's clock only."""
    records = tuple(replace(record, arrivals=(), client=ClientTimes()) for record in run.records)
    return replace(run, records=records)


def without_cached_counts(run: Run) -> Run:
    """As a runtime that never tells how much of a prompt was reused."""
    records = tuple(
        replace(
            record,
            counts=replace(record.counts, cached_prompt_tokens=None),
            server=replace(record.server, prefill_tokens=None),
        )
        for record in run.records
    )
    return replace(run, records=records)


def without_phase(run: Run, phase: str) -> Run:
    """The same run with one phase told by nobody."""
    gone = (
        {"prefill_s": None, "prefill_tokens": None}
        if phase == "prefill"
        else {"decode_s": None, "decode_steps": None}
    )
    records = tuple(
        replace(record, arrivals=(), client=ClientTimes(), server=replace(record.server, **gone))
        for record in run.records
    )
    return replace(run, records=records)
