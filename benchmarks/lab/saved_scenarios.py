"""Faults of graphics cards and of busy servers, as saved record files of made-up machines."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from msgspec.structs import replace
from saved_runs import Made, card
from scenario import Scenario
from trials import Seen, read_saved

from twospeed.findings.finding import Cause
from twospeed.records.request_record import RequestRecord, ServerSigns
from twospeed.records.run import (
    BenchmarkPoint,
    MachineFacts,
    Run,
    RuntimeFacts,
    ServerProcess,
)

GIB = 2**30


def drawn(make: Callable[[random.Random], Run]) -> Callable[[int], Seen]:
    """A saved file, drawn anew for each seed."""
    return lambda seed: read_saved(make(random.Random(seed)))


def slowed(draw: random.Random, *, prefill: float, decode: float, **more: object) -> Made:
    """A card of usual speed whose phases are so many times slower."""
    usual = draw.uniform(1500, 5000), draw.uniform(40, 120)
    return Made(usual[0] / prefill, usual[1] / decode, draw, **more)  # type: ignore[arg-type]


def partial_offload(draw: random.Random) -> Run:
    size = draw.randint(5, 30) * GIB
    share = draw.uniform(0.3, 0.85)
    speed = 1 / (share + (1 - share) * 11)
    facts = RuntimeFacts(size_bytes=size, size_vram_bytes=int(size * share))
    made = Made(
        draw.uniform(400, 900), min(60 * speed, 18), draw, runtime="ollama", facts=facts,
        machine=card(draw),
    )  # fmt: skip
    return made.run()


def layers_left_out(draw: random.Random) -> Run:
    total = draw.choice((29, 33, 41, 61))
    facts = RuntimeFacts(layers_total=total, layers_offloaded=int(total * draw.uniform(0.3, 0.8)))
    return Made(
        draw.uniform(300, 700), draw.uniform(4, 14), draw, facts=facts, machine=card(draw)
    ).run()


def graphics_memory_full(draw: random.Random) -> Run:
    total = draw.choice((8, 12, 16)) * GIB
    machine = card(
        draw,
        memory_total_bytes=total,
        memory_used_bytes=int(total * draw.uniform(0.95, 0.995)),
        shared_memory_used_bytes=draw.randint(1, 6) * GIB,
    )
    facts = RuntimeFacts(layers_total=33, layers_offloaded=33)
    return slowed(
        draw, prefill=draw.uniform(5, 15), decode=draw.uniform(8, 20), machine=machine, facts=facts
    ).run()


def weights_paged_in(draw: random.Random) -> Run:
    size = draw.randint(8, 40) * GIB
    server = ServerProcess(
        resident_bytes=int(size * draw.uniform(0.3, 0.7)),
        major_faults=draw.randint(20_000, 400_000),
        read_bytes=int(size * draw.uniform(2, 9)),
    )
    made = Made(
        draw.uniform(5, 30), draw.uniform(0.3, 2), draw, machine=MachineFacts(server=server),
        facts=RuntimeFacts(size_bytes=size, layers_offloaded=0, layers_total=33, backend="cpu"),
    )  # fmt: skip
    return made.run()


def no_card_found(draw: random.Random) -> Run:
    facts = RuntimeFacts(backend="cpu", gpu_found=False, layers_total=33, layers_offloaded=0)
    return Made(
        draw.uniform(20, 60), draw.uniform(4, 10), draw, facts=facts, machine=card(draw)
    ).run()


def card_idle(draw: random.Random) -> Run:
    facts = RuntimeFacts(layers_total=33, layers_offloaded=0, size_bytes=draw.randint(3, 6) * GIB)
    machine = card(draw, memory_total_bytes=16 * GIB)
    return Made(draw.uniform(20, 60), draw.uniform(4, 10), draw, facts=facts, machine=machine).run()


def context_off_the_card(draw: random.Random) -> Run:
    facts = RuntimeFacts(layers_total=33, layers_offloaded=33, kv_cache_on_cpu=True)
    return Made(
        draw.uniform(100, 260), draw.uniform(12, 30), draw, facts=facts, machine=card(draw),
        decode_half_depth=6000,
    ).run()  # fmt: skip


def devices_in_a_table(draw: random.Random) -> Run:
    """Rows of one table: the same model on one card and on several."""
    count = draw.choice((2, 3, 4))
    prefill, decode = draw.uniform(2500, 5000), draw.uniform(30, 90)
    slower = draw.uniform(1.6, 3.5)
    points = tuple(
        BenchmarkPoint(phase=phase, tokens=tokens, tps=tps, settings={"devices": devices})
        for devices, factor in ((count, slower), (1, 1.0))
        for phase, tokens, tps in (("prefill", 512, prefill), ("decode", 128, decode / factor))
    )
    plain = Made(prefill, decode, draw).run()
    return replace(plain, records=(), points=points, source=replace(plain.source, kind="log"))


def card_too_hot(draw: random.Random) -> Run:
    share = draw.uniform(0.2, 0.45)
    machine = card(
        draw,
        throttled_by=(draw.choice(("SW Thermal Slowdown", "HW Slowdown", "thermal")),),
        clock_hz=2.6e9 * share,
        temperature_c=draw.uniform(88, 96),
    )
    facts = RuntimeFacts(layers_total=33, layers_offloaded=33)
    return Made(
        draw.uniform(150, 400), draw.uniform(6, 15), draw, machine=machine, facts=facts
    ).run()


def processor_too_hot(draw: random.Random) -> Run:
    machine = MachineFacts(
        logical_cores=8,
        throttled_by=("thermal",),
        throttle_events=draw.randint(20, 900),
        clock_hz=draw.uniform(0.8e9, 1.5e9),
        clock_max_hz=4.4e9,
    )
    facts = RuntimeFacts(backend="cpu", layers_total=33, layers_offloaded=0)
    made = Made(draw.uniform(10, 40), draw.uniform(1.5, 5), draw, machine=machine, facts=facts)
    return made.run()


def drafts_rejected(draw: random.Random) -> Run:
    drafted = draw.randint(80, 300)
    signs = ServerSigns(
        drafted_tokens=drafted, accepted_tokens=int(drafted * draw.uniform(0.02, 0.25))
    )
    facts = RuntimeFacts(draft_model=True, layers_total=33, layers_offloaded=33)
    return slowed(draw, prefill=1, decode=draw.uniform(5, 8), signs=signs, facts=facts).run()


def slots_taken(draw: random.Random) -> Run:
    made = slowed(draw, prefill=1, decode=1, queue_s=draw.uniform(3, 20), others=2)
    return made.run()


def never_alone(draw: random.Random) -> Run:
    return slowed(
        draw, prefill=draw.uniform(8, 14), decode=draw.uniform(6, 9), others=draw.randint(2, 6),
        runtime="vllm",
    ).run()  # fmt: skip


def context_cut(draw: random.Random) -> Run:
    """A conversation at the end of its context: what was processed is thrown away each turn."""
    context = draw.choice((8192, 16_384, 32_768))
    made = Made(draw.uniform(400, 900), draw.uniform(25, 60), draw)

    def turns() -> Iterator[RequestRecord]:
        for number in range(1, 6):
            prompt = context - draw.randint(300, 900)
            kept = draw.randint(0, 60)
            record = made.record(number, prompt, 120, cached=kept)
            signs = ServerSigns(
                slot=0, context_cut=True, held_tokens=context - 100, matched_tokens=kept
            )
            yield replace(record, step="user", signs=signs)

    plain = made.run(prompt=context - 500, output=120)
    return replace(
        plain,
        records=tuple(turns()),
        facts=RuntimeFacts(n_ctx=context),
        source=replace(plain.source, kind="recording"),
        workload=replace(plain.workload, origin="recording"),
    )


ROWS: tuple[tuple[str, Cause, Callable[[random.Random], Run]], ...] = (
    ("a part of the model on the card", "placement.partial_offload", partial_offload),
    ("layers left out", "placement.partial_offload", layers_left_out),
    ("graphics memory overflows", "placement.memory_spill", graphics_memory_full),
    ("weights paged in again", "placement.memory_spill", weights_paged_in),
    ("no card found", "placement.cpu_fallback", no_card_found),
    ("the card idle", "placement.cpu_fallback", card_idle),
    ("context off the card", "placement.kv_cache_off_gpu", context_off_the_card),
    ("several cards, a table", "placement.multi_device", devices_in_a_table),
    ("card too hot", "host.throttled", card_too_hot),
    ("processor too hot", "host.throttled", processor_too_hot),
    ("drafts rejected", "decode.draft_rejected", drafts_rejected),
    ("slots taken", "server.queue", slots_taken),
    ("never alone", "server.shared_batch", never_alone),
    ("context cut each turn", "prompt_cache.context_overflow", context_cut),
)
"""Each fault: its name, the cause that must be named first, and how its run is made."""


def saved_scenarios() -> tuple[Scenario, ...]:
    """The rows that no machine here can show: made-up facts in saved record files."""
    return tuple(Scenario(f"saved: {name}", (cause,), drawn(make)) for name, cause, make in ROWS)
