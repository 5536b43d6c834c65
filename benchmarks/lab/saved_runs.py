"""Saved record files of made-up machines: facts and speeds that no machine here can show.

Every number is made up, though not at random: speeds are those of public measurements of real
machines (docs/physics.md), each drawn again with some noise. What is tested is that the findings
take records and facts from any source.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from msgspec.structs import replace

from twospeed.records.request_record import (
    Change,
    ClientTimes,
    RequestRecord,
    ServerSigns,
    ServerTimes,
    TextArrival,
    TokenCounts,
)
from twospeed.records.run import (
    Conditions,
    Goals,
    GraphicsDevice,
    MachineFacts,
    Run,
    RuntimeFacts,
    Source,
    Workload,
)
from twospeed.runtimes.registry import settings_of

ROUND_TRIP_S = 0.001
LENGTHS = (128, 512, 1024, 2048, 4096)
KEPT: dict[Change, float] = {
    "same": 1.0,
    "appended": 1.0,
    "end_edited": 0.95,
    "middle_edited": 0.5,
    "other": 0.0,
    "returned": 1.0,
}
"""Part of a changed prompt that a working cache still holds."""
TELL_CACHED = ("llama-server", "vllm", "koboldcpp")
SILENT = ("openai", "mlx_lm")
"""Runtimes without clocks of their own."""


@dataclass(slots=True)
class Made:
    """A made-up machine with a model on it.

    Attributes:
        prefill_tps: prompt tokens per second of a short prompt.
        decode_tps: tokens per second at depth 0.
        draw: its noise.
        prefill_half_depth: tokens of depth at which prefill is half as fast.
        decode_half_depth: tokens of depth at which decode is half as fast.
        jitter_frac: largest part by which one time is off.
        runtime: who serves.
        cached: whether an earlier prompt is reused.
        queue_s: a wait for a slot before each request.
        signs: of each request.
        others: requests beside each.
        facts: what the runtime says of itself.
        machine: what the machine says of itself.
        conditions: of the measurement.
    """

    prefill_tps: float
    decode_tps: float
    draw: random.Random
    prefill_half_depth: float = 20_000.0
    decode_half_depth: float = 30_000.0
    jitter_frac: float = 0.04
    runtime: str = "llama-server"
    cached: bool = True
    queue_s: float = 0.0
    signs: ServerSigns | None = None
    others: int | None = None
    facts: RuntimeFacts = field(default_factory=RuntimeFacts)
    machine: MachineFacts | None = None
    conditions: Conditions = field(default_factory=lambda: Conditions(host_load=0.02))

    def off(self) -> float:
        """The factor by which one time is off."""
        return 1.0 + self.draw.uniform(-self.jitter_frac, self.jitter_frac)

    def record(
        self,
        number: int,
        prompt: int,
        output: int,
        *,
        cached: int = 0,
        repeats: int | None = None,
        change: Change | None = None,
    ) -> RequestRecord:
        """One request, as both clocks would tell it."""
        new = prompt - cached
        deeper = (new * new / 2 + cached * new) / self.prefill_half_depth
        prefill_s = (0.01 + (new + deeper) / self.prefill_tps) * self.off()
        first_s = ROUND_TRIP_S + self.queue_s + prefill_s
        stamps = [first_s]
        for step in range(1, output):
            depth = prompt + step
            token_s = (1 + depth / self.decode_half_depth) / self.decode_tps
            stamps.append(stamps[-1] + token_s * self.off())
        tells = self.runtime in TELL_CACHED
        return RequestRecord(
            number=number,
            step="curve" if repeats is None else "reuse",
            repeats=repeats,
            change=change,
            dialect="openai_chat",
            counts=TokenCounts(
                prompt_tokens=prompt,
                cached_prompt_tokens=cached if tells else None,
                output_tokens=output,
            ),
            client=ClientTimes(
                headers_s=ROUND_TRIP_S + self.queue_s,
                ttft_s=first_s,
                first_answer_s=first_s,
                last_text_s=stamps[-1],
                finish_s=stamps[-1],
                end_s=stamps[-1] + ROUND_TRIP_S,
            ),
            server=None
            if self.runtime in SILENT
            else ServerTimes(
                told_by="timings",
                prefill_s=prefill_s,
                prefill_tokens=new if tells else None,
                decode_s=stamps[-1] - stamps[0],
                decode_steps=output - 1,
            ),
            signs=self.signs,
            other_requests=self.others,
            arrivals=tuple(
                TextArrival(at_s=at_s, kind="answer", chars=4, coalesced=False) for at_s in stamps
            ),
            finish_reason="length",
        )

    def run(self, prompt: int = 1000, output: int = 200) -> Run:
        """The run that a diagnosis of this machine would have saved."""
        records = [self.record(n, length, 64) for n, length in enumerate(LENGTHS, 1)]
        base, asked = records[3], LENGTHS[3]
        for number, (change, share) in enumerate(KEPT.items(), len(records) + 1):
            length = asked + (64 if change in ("appended", "returned") else 0)
            held = min(int(share * asked), length - 1) if self.cached else 0
            records.append(
                self.record(number, length, 16, cached=held, repeats=base.number, change=change)
            )
        return Run(
            source=Source(
                kind="live",
                where="http://127.0.0.1:8080",
                runtime=self.runtime,
                model="heron-8b-q4_k_m",
                local=True,
            ),
            workload=Workload(prompt_tokens=prompt, output_tokens=output, origin="flag"),
            goals=Goals(),
            made_at="2026-01-01T00:00:00Z",
            twospeed_version="0",
            facts=self.facts,
            records=tuple(records),
            round_trip_s=ROUND_TRIP_S,
            machine=self.machine,
            conditions=self.conditions,
            settings=settings_of(self.runtime),
        )


def card(draw: random.Random, **told: object) -> MachineFacts:
    """A machine with one graphics card."""
    total = draw.choice((8, 12, 16, 24)) * 2**30
    plain = GraphicsDevice(
        name=draw.choice(("Wren 16", "Heron X", "Finch 4000")),
        memory_total_bytes=total,
        memory_used_bytes=int(total * draw.uniform(0.5, 0.85)),
        clock_hz=2.4e9,
        clock_max_hz=2.6e9,
    )
    return MachineFacts(logical_cores=16, physical_cores=8, graphics=(replace(plain, **told),))
