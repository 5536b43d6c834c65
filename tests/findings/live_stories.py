"""What twospeed's own experiments show: live runs with one fault each, and healthy ones."""

from __future__ import annotations

import dataclasses

from msgspec.structs import replace
from runs import HEALTHY, PREFILL_SLOW, ROUND_TRIP_S, Machine, run_of
from stories import CACHE, Story, card

from twospeed.records.request_record import Change, RequestRecord, ServerSigns
from twospeed.records.run import (
    Conditions,
    GraphicsDevice,
    MachineFacts,
    MachineProbe,
    ModelHeader,
    Run,
    RuntimeFacts,
    ServerProcess,
)

SLOW_BOTH = Machine(per_token_s=0.008, decode_per_token_s=0.15)
"""A small model on a processor that should do better: 125 and 7 tokens per second."""
LONG = Machine(per_token_s=0.003)
"""A wait of 6 s for the default prompt, the stream is fine."""
ON_PROCESSOR = RuntimeFacts(layers_offloaded=0, layers_total=30, size_bytes=10**8)
TINY = ModelHeader(
    file_bytes=100_000_000,
    parameters=135_000_000,
    active_parameters=135_000_000,
    layers=30,
    read_bytes_per_token=100_000_000,
    kv_bytes_per_token_f16=23_040,
    attention_width=576,
)
PROBE = MachineProbe(
    memory_bandwidth_bytes_per_s=4e10, matmul_flops_per_s=2.4e11, graphics_devices=0
)


def live(made: Machine, *, machine: MachineFacts | None = None, **changes) -> Run:
    """A run of a made-up runtime on a machine that shows these facts."""
    return replace(run_of(made, **changes), machine=machine)


WORKS: dict[Change, float] = {
    "same": 1.0,
    "appended": 1.0,
    "end_edited": 0.95,
    "middle_edited": 0.5,
    "start_edited": 0.01,
    "other": 0.01,
    "returned": 1.0,
}


def started(*words: str) -> MachineFacts:
    """A machine that shows how its server was started."""
    return MachineFacts(server=ServerProcess(command=("llama-server", *words)))


def again(
    machine: Machine, number: int, change: Change, share: float, prompt: int = 2048
) -> RequestRecord:
    """The fourth prompt once more, changed, of which this share is taken from the cache."""
    cached = min(int(share * prompt), prompt - 1)
    grown = prompt + (64 if change in ("appended", "returned") else 0)
    record = dataclasses.replace(machine, reuses=False).record(number, grown, 16, repeats=4)
    prefill_s = machine.prefill_s(grown - cached, cached)
    shift_s = record.server.prefill_s - prefill_s
    return replace(
        record,
        change=change,
        counts=replace(record.counts, cached_prompt_tokens=cached),
        server=replace(record.server, prefill_s=prefill_s, prefill_tokens=grown - cached),
        arrivals=tuple(replace(a, at_s=a.at_s - shift_s) for a in record.arrivals),
        client=replace(record.client, ttft_s=prefill_s + ROUND_TRIP_S),
    )


def reused(machine: Machine, shares: dict[Change, float], **changes) -> Run:
    """A run whose cache keeps these shares of a changed prompt."""
    kept = WORKS | shares
    cases = [again(machine, n, change, share) for n, (change, share) in enumerate(kept.items(), 6)]
    run = live(machine, **changes)
    return replace(run, records=(*run.records[:5], *cases))


def untold(run: Run) -> Run:
    """The same where the runtime hides cached tokens and its own clock."""
    records = tuple(
        replace(r, server=None, counts=replace(r.counts, cached_prompt_tokens=None))
        for r in run.records
    )
    return replace(run, records=records)


def beside(run: Run, others: int, numbers: tuple[int, ...], slower: float = 1.0) -> Run:
    """Some requests had company, and wrote so many times slower."""

    def accompanied(record: RequestRecord) -> RequestRecord:
        server = replace(record.server, decode_s=record.server.decode_s * slower)
        return replace(record, server=server, other_requests=others, arrivals=())

    records = tuple(accompanied(r) if r.number in numbers else r for r in run.records)
    return replace(run, records=records)


def kept_to_the_end(run: Run) -> Run:
    """All text of an answer arrives when the last token was written."""
    records = []
    for record in run.records:
        last_s = record.arrivals[-1].at_s
        arrivals = tuple(replace(a, at_s=last_s + i * 1e-5) for i, a in enumerate(record.arrivals))
        client = replace(
            record.client,
            headers_s=last_s,
            ttft_s=last_s,
            first_answer_s=last_s,
            end_s=last_s + 0.01,
        )
        records.append(replace(record, arrivals=arrivals, client=client))
    return replace(run, records=tuple(records))


NOTHING = dict.fromkeys(WORKS, 0.0)
EDITS_LOST = {"end_edited": 0.0, "middle_edited": 0.0}

LIVE: dict[str, Story] = {
    "live: nothing is reused": Story(
        reused(LONG, NOTHING), ("prefill",), ("prompt_cache.disabled",)
    ),
    "live: nothing is reused, told": Story(
        reused(LONG, NOTHING, facts=RuntimeFacts(prefix_cache_enabled=False)),
        ("prefill",),
        ("prompt_cache.disabled",),
    ),
    "live: nothing is reused, by time": Story(
        untold(reused(LONG, NOTHING)), ("prefill",), ("prompt_cache.disabled",)
    ),
    "live: edits lose everything": Story(
        reused(LONG, EDITS_LOST), ("prefill",), ("prompt_cache.cannot_rewind",)
    ),
    "live: edits lose everything, by time": Story(
        untold(reused(LONG, EDITS_LOST)), ("prefill",), ("prompt_cache.cannot_rewind",)
    ),
    "live: an edit in the middle with a sliding window": Story(
        reused(LONG, {"middle_edited": 0.0}, header=replace(TINY, sliding_window=512)),
        ("prefill",),
        ("prompt_cache.cannot_rewind",),
    ),
    "live: another conversation evicts": Story(
        reused(LONG, {"returned": 0.0}), ("prefill",), ("prompt_cache.evicted",)
    ),
    "live: a turn appended is not reused": Story(
        reused(LONG, {"appended": 0.0, "returned": 0.0}),
        ("prefill",),
        ("prompt_cache.prefix_changed",),
    ),
    "live: a large prompt, all reused": Story(
        reused(LONG, {}), ("prefill",), ("prompt.large",), CACHE
    ),
    "live: a healthy machine with every case": Story(reused(HEALTHY, {}), ("none",), (None,)),
    "live: bandwidth is the cost": Story(
        live(
            Machine(per_token_s=1e-4, decode_per_token_s=0.1),
            facts=ON_PROCESSOR,
            header=TINY,
            probe=replace(PROBE, memory_bandwidth_bytes_per_s=3e9),
        ),
        ("decode",),
        ("decode.bandwidth_bound",),
    ),
    "live: other programs": Story(
        live(
            SLOW_BOTH,
            facts=ON_PROCESSOR,
            header=TINY,
            probe=PROBE,
            conditions=Conditions(host_load=0.6, trusted=False),
            machine=MachineFacts(busiest=("compiler",)),
        ),
        ("both",),
        ("host.contention",),
    ),
    "live: a quota": Story(
        live(
            SLOW_BOTH,
            facts=ON_PROCESSOR,
            probe=PROBE,
            machine=MachineFacts(cgroup_throttled_s=40.0),
        ),
        ("both",),
        ("host.contention",),
    ),
    "live: threads by the command line": Story(
        live(
            SLOW_BOTH,
            facts=ON_PROCESSOR,
            header=TINY,
            probe=PROBE,
            machine=MachineFacts(
                logical_cores=2,
                server=ServerProcess(command=("llama-server", "-t", "8"), allowed_cores=2),
            ),
        ),
        ("both",),
        ("host.threads",),
    ),
    "live: batch by the command line": Story(
        live(
            LONG,
            machine=MachineFacts(
                server=ServerProcess(command=("llama-server", "-b=512", "-ub", "16"))
            ),
        ),
        ("prefill",),
        ("prefill.batch_too_small",),
    ),
    "live: reuse off by the command line": Story(
        replace(
            reused(LONG, NOTHING),
            machine=MachineFacts(
                server=ServerProcess(command=("llama-server", "--no-cache-prompt"))
            ),
        ),
        ("prefill",),
        ("prompt_cache.disabled",),
    ),
    "live: the processor is too hot": Story(
        live(
            SLOW_BOTH,
            facts=ON_PROCESSOR,
            header=TINY,
            probe=PROBE,
            machine=MachineFacts(throttled_by=("thermal",), clock_hz=1.2e9, clock_max_hz=4e9),
        ),
        ("both",),
        ("host.throttled",),
    ),
    "live: weights are fetched again": Story(
        live(
            SLOW_BOTH,
            facts=ON_PROCESSOR,
            header=TINY,
            probe=PROBE,
            machine=MachineFacts(
                server=ServerProcess(major_faults=60_000, resident_bytes=3 * 10**7)
            ),
        ),
        ("both",),
        ("placement.memory_spill",),
    ),
    "live: the card is idle": Story(
        live(
            SLOW_BOTH,
            facts=replace(ON_PROCESSOR, size_bytes=4 * 10**9),
            machine=card(memory_total_bytes=16 * 10**9),
        ),
        ("both",),
        ("placement.cpu_fallback",),
    ),
    "live: never alone": Story(
        beside(live(SLOW_BOTH), 2, (1, 2, 3, 4, 5, 6)), ("both",), ("server.shared_batch",)
    ),
    "live: held back to the end": Story(
        kept_to_the_end(live(Machine(per_token_s=1e-4, decode_per_token_s=0.02))),
        ("network",),
        ("network.buffered_stream",),
        ("measurement.artifact",),
    ),
    "live: drafts rejected": Story(
        replace(
            live(Machine(per_token_s=1e-4, decode_per_token_s=0.08)),
            records=tuple(
                replace(r, signs=ServerSigns(drafted_tokens=90, accepted_tokens=6))
                for r in Machine(per_token_s=1e-4, decode_per_token_s=0.08).records()
            ),
        ),
        ("decode",),
        ("decode.draft_rejected",),
    ),
}

QUIET: dict[str, Run] = {
    "split, and fast all the same": live(
        HEALTHY, facts=RuntimeFacts(size_bytes=10**10, size_vram_bytes=8 * 10**9)
    ),
    "power cap at full load": live(HEALTHY, machine=card(throttled_by=("power_cap",))),
    "busy beside a card": live(HEALTHY, conditions=Conditions(host_load=0.6)),
    "cold pages at the start": live(
        HEALTHY,
        facts=ON_PROCESSOR,
        machine=MachineFacts(
            server=ServerProcess(major_faults=4000, resident_bytes=10**8, read_bytes=10**8)
        ),
    ),
    "a full card": live(
        HEALTHY, machine=card(memory_total_bytes=10**10, memory_used_bytes=99 * 10**8)
    ),
    "all threads": live(
        HEALTHY, facts=RuntimeFacts(threads=8), machine=MachineFacts(logical_cores=8)
    ),
    "drafts that pay": replace(
        live(HEALTHY),
        records=tuple(
            replace(r, signs=ServerSigns(drafted_tokens=90, accepted_tokens=70))
            for r in HEALTHY.records()
        ),
    ),
    "no card at all": live(HEALTHY, facts=ON_PROCESSOR, probe=PROBE),
    "others now and then": beside(live(HEALTHY), 1, (2,), slower=3.0),
    "nothing reused, and no wait": live(dataclasses.replace(HEALTHY, reuses=False)),
    "a window and no wait": live(
        dataclasses.replace(HEALTHY, reuses=False), header=replace(TINY, sliding_window=512)
    ),
    "shared memory of a driver": live(
        HEALTHY,
        machine=MachineFacts(
            graphics=(GraphicsDevice(name="Wren 16", shared_memory_used_bytes=2 * 10**8),)
        ),
    ),
}

LARGE: dict[str, Run] = {
    "cold pages at the start": live(
        PREFILL_SLOW,
        facts=ON_PROCESSOR,
        machine=MachineFacts(
            server=ServerProcess(major_faults=4000, resident_bytes=10**8, read_bytes=10**8)
        ),
    ),
    "power cap at full load": live(PREFILL_SLOW, machine=card(throttled_by=("power_cap",))),
    "all threads": live(
        PREFILL_SLOW, facts=RuntimeFacts(threads=8), machine=MachineFacts(logical_cores=8)
    ),
    "no card at all": live(PREFILL_SLOW, facts=ON_PROCESSOR, probe=PROBE),
}
"""Nothing but a large prompt."""
