"""Runs that tell one story each, as logs, tables, sums and live experiments would tell it."""

from __future__ import annotations

from dataclasses import dataclass, field

from twospeed.fits.workload import typical_workload
from twospeed.records.request_record import (
    ClientTimes,
    DecodeWindow,
    RequestRecord,
    ServerSigns,
    ServerTimes,
    TextArrival,
    TokenCounts,
)
from twospeed.records.run import (
    BenchmarkPoint,
    Goals,
    GraphicsDevice,
    LoadSummary,
    MachineFacts,
    Run,
    RuntimeFacts,
    ServerProcess,
    Source,
    Workload,
)


@dataclass(frozen=True)
class Story:
    """A run and what may be said of it."""

    run: Run
    phases: tuple[str, ...]
    causes: tuple[str | None, ...]
    """The right first cause, and others that are fair; None for no finding at all."""
    forbidden: tuple[str, ...] = field(default=())


CACHE = tuple(
    f"prompt_cache.{kind}"
    for kind in ("prefix_changed", "evicted", "disabled", "cannot_rewind", "context_overflow")
)


def asked(
    number: int,
    reading: tuple[int | None, int | None, float | None],
    writing: tuple[int | None, float | None],
    *,
    load_s: float | None = None,
    queue_s: float | None = None,
    total_s: float | None = None,
    read: int | None = None,
    others: int | None = None,
    **signs,
) -> RequestRecord:
    """One request of a log.

    Args:
        number: its place.
        reading: prompt tokens, cached ones, seconds of prefill.
        writing: output tokens, seconds of decode.
        read: part of the prompt that was timed, where the cached part is not told.
    """
    prompt, cached, prefill_s = reading
    output, decode_s = writing
    if read is None and prompt is not None and cached is not None:
        read = prompt - cached
    return RequestRecord(
        number=number,
        counts=TokenCounts(prompt_tokens=prompt, cached_prompt_tokens=cached, output_tokens=output),
        server=ServerTimes(
            told_by="log",
            load_s=load_s,
            queue_s=queue_s,
            prefill_s=prefill_s,
            prefill_tokens=read,
            decode_s=decode_s,
            decode_steps=output if decode_s else None,
            total_s=total_s,
        ),
        signs=ServerSigns(**signs) if signs else None,
        other_requests=others,
    )


def log(*records: RequestRecord, runtime: str | None = "llama-server", **parts) -> Run:
    default = Workload(prompt_tokens=2000, output_tokens=300)
    return Run(
        source=Source(kind="log", where="server.log", runtime=runtime),
        workload=typical_workload(records, "log") or default,
        goals=Goals(),
        made_at="2026-11-30T12:00:00Z",
        twospeed_version="0.1.0",
        records=records,
        **parts,
    )


def row(phase: str, tps: float, depth: int = 0, sd: float | None = None, **settings):
    tokens = 512 if phase == "prefill" else 128
    name = f"{phase}{tokens}@{depth}"
    return BenchmarkPoint(
        phase=phase,
        tokens=tokens,
        depth_tokens=depth,
        tps=tps,
        sd=sd,
        settings={"model": "finch 7B", "test": name, **settings},
    )


def table(*rows: BenchmarkPoint, **parts) -> Run:
    return log(points=rows, **parts)


def streamed(number: int, stamps: list[float], connect_s: float | None = None) -> RequestRecord:
    """One request as a load generator saw it: no server's clock."""
    return RequestRecord(
        number=number,
        counts=TokenCounts(prompt_tokens=240, cached_prompt_tokens=0, output_tokens=len(stamps)),
        client=ClientTimes(
            connect_s=connect_s,
            ttft_s=stamps[0],
            ttft_is_upper_bound=True,
            last_text_s=stamps[-1],
            end_s=stamps[-1],
        ),
        arrivals=tuple(
            TextArrival(at_s=at, kind="answer", chars=1, coalesced=False, output_tokens=i)
            for i, at in enumerate(stamps, 1)
        ),
    )


def even(first_s: float = 0.12, gap_s: float = 0.012, texts: int = 60) -> list[float]:
    return [first_s + gap_s * i for i in range(texts)]


def bursts(size: int, pause_s: float, texts: int = 64) -> list[float]:
    return [0.12 + pause_s * (i // size) + 3e-5 * (i % size) for i in range(texts)]


def slowing(first_s: float, last_s: float, windows: int = 12, tokens: int = 6000):
    step = (last_s - first_s) / (windows - 1)
    return tuple(
        DecodeWindow(output_tokens=tokens * (i + 1) // windows, per_token_s=first_s + step * i)
        for i in range(windows)
    )


def card(**facts) -> MachineFacts:
    return MachineFacts(graphics=(GraphicsDevice(name="Wren 16", **facts),))


SLOW_ONE = ((1400, 0, 12.0), (260, 52.0))
"""Both phases miss their goals: 117 and 5 tokens per second."""
SUMS = {"completed": 150, "duration_s": 24.0, "mean_tpot_ms": 38.0}

STORIES: dict[str, Story] = {
    "healthy chat": Story(
        log(
            asked(1, (1300, 0, 0.36), (190, 1.8)),
            asked(2, (2500, 1490, 0.29), (240, 2.3)),
            asked(3, (3700, 2740, 0.28), (250, 2.4)),
        ),
        ("none",),
        (None,),
    ),
    "healthy one-off prompts": Story(
        log(asked(1, (700, 0, 0.2), (380, 3.6)), asked(2, (1150, 0, 0.3), (300, 2.9))),
        ("none",),
        (None,),
    ),
    "constant prefix": Story(
        log(
            asked(1, (14000, 0, 3.0), (150, 0.8)),
            asked(2, (14900, 2300, 2.7), (300, 1.6)),
            asked(3, (15900, 2300, 2.9), (250, 1.3)),
        ),
        ("prefill",),
        ("prompt_cache.prefix_changed",),
        ("prompt_cache.disabled",),
    ),
    "system text edited": Story(
        log(
            asked(1, (61000, 60500, 0.9), (180, 7.4), similarity_frac=0.99, held_tokens=60500),
            asked(2, (61300, 0, 118.0), (90, 3.7), similarity_frac=0.001, chosen_by="lru"),
        ),
        ("prefill",),
        ("prompt_cache.prefix_changed", "prompt_cache.evicted"),
        ("prompt.large",),
    ),
    "one request reused, the next not": Story(
        log(
            asked(1, (61000, 60500, 0.9), (180, 7.4)),
            asked(2, (61300, 0, 118.0), (90, 3.7), held_tokens=61180),
        ),
        ("prefill",),
        ("prompt_cache.prefix_changed",),
        ("prompt_cache.disabled",),
    ),
    "runtime cannot rewind": Story(
        log(
            asked(1, (13000, 0, 16.0), (110, 3.8)),
            asked(2, (13300, 0, 16.4), (200, 7.0), cannot_rewind=True),
        ),
        ("prefill",),
        ("prompt_cache.cannot_rewind",),
        ("prompt_cache.prefix_changed", "prompt_cache.disabled"),
    ),
    "match that is not used": Story(
        log(
            asked(1, (13000, 0, 13.0), (250, 8.4)),
            asked(
                2,
                (13600, 0, 13.6),
                (90, 3.0),
                matched_tokens=13200,
                held_tokens=13250,
                similarity_frac=0.97,
            ),
        ),
        ("prefill",),
        ("prompt_cache.cannot_rewind",),
    ),
    "evicted": Story(
        log(
            asked(1, (9000, 0, 5.0), (160, 3.5), slot=0),
            asked(2, (1500, 0, 0.8), (30, 0.6), slot=0),
            asked(3, (9300, 0, 5.1), (150, 3.3), slot=0),
        ),
        ("prefill",),
        ("prompt_cache.evicted",),
        ("prompt_cache.cannot_rewind",),
    ),
    "cache off": Story(
        log(
            asked(1, (340, 0, 9.9), (40, 5.2)),
            asked(2, (400, 0, 11.6), (50, 6.4), held_tokens=380, matched_tokens=0),
        ),
        ("prefill", "both"),
        ("prompt_cache.disabled",),
        ("prompt_cache.cannot_rewind",),
    ),
    "cache said to be off": Story(
        log(
            asked(1, (3400, 0, 9.9), (40, 1.2)),
            asked(2, (3500, 0, 10.2), (50, 1.4)),
            facts=RuntimeFacts(prefix_cache_enabled=False),
        ),
        ("prefill",),
        ("prompt_cache.disabled",),
    ),
    "one turn of two lost": Story(
        log(
            asked(1, (13000, 0, 14.5), (130, 5.4)),
            asked(2, (13190, None, 0.15), (150, 6.1), read=60),
            asked(3, (13390, 0, 15.0), (80, 3.4)),
        ),
        ("prefill",),
        ("prompt_cache.prefix_changed", "prompt_cache.evicted"),
    ),
    "prompts cut, times unknown": Story(
        log(
            *(
                asked(n, (None, None, None), (None, None), total_s=60.0 + n, context_cut=True)
                for n in range(1, 5)
            ),
            runtime="ollama",
            facts=RuntimeFacts(n_ctx=2048),
        ),
        ("unknown",),
        ("prompt_cache.context_overflow",),
        ("prompt_cache.prefix_changed", "prompt_cache.disabled"),
    ),
    "context full": Story(
        log(
            asked(1, (3980, 0, 25.0), (116, 8.0)),
            asked(2, (3900, 0, 24.4), (196, 13.0)),
            asked(3, (3950, 0, 24.7), (146, 10.0)),
            runtime="koboldcpp",
            facts=RuntimeFacts(n_ctx=4096),
        ),
        ("prefill",),
        ("prompt_cache.context_overflow",),
    ),
    "tiny steps": Story(
        log(asked(1, (2700, 0, 59.0), (130, 11.0), prefill_step_tokens=150)),
        ("prefill",),
        ("prefill.batch_too_small",),
        CACHE,
    ),
    "batch of 8": Story(
        log(
            asked(1, (1700, None, 90.0), (54, 6.8), read=1700),
            facts=RuntimeFacts(
                n_batch=8, layers_total=33, layers_offloaded=0, threads=8, threads_hw=16
            ),
        ),
        ("prefill", "both"),
        ("prefill.batch_too_small",),
        ("decode.below_limit",),
    ),
    "prefill low": Story(
        log(asked(1, (3300, 0, 17.0), (280, 12.0))), ("prefill",), ("prefill.compute_low",), CACHE
    ),
    "large prompt": Story(
        log(asked(1, (29000, 0, 55.0), (180, 4.5))),
        ("prefill",),
        ("prompt.large",),
        ("prefill.batch_too_small", "prompt_cache.disabled"),
    ),
    "attention on the processor": Story(
        log(
            asked(1, (2600, 0, 18.2), (440, 22.3), prefill_step_tokens=1024),
            facts=RuntimeFacts(
                layers_total=41,
                layers_offloaded=41,
                graph_splits=80,
                flash_attn=True,
                kv_type_k="q8_0",
                kv_type_v="q4_0",
            ),
        ),
        ("prefill", "both"),
        ("placement.cpu_fallback",),
        (*CACHE, "placement.partial_offload"),
    ),
    "no card found": Story(
        log(
            asked(1, (720, None, 20.6), (60, 8.5), read=720),
            facts=RuntimeFacts(
                gpu_found=False, layers_total=33, layers_offloaded=0, threads=8, threads_hw=16
            ),
        ),
        ("both", "prefill"),
        ("placement.cpu_fallback",),
        ("host.threads",),
    ),
    "partly on the card": Story(
        log(
            asked(1, (600, None, 2.1), (125, 23.0), read=600),
            facts=RuntimeFacts(layers_total=41, layers_offloaded=21, flash_attn=False),
        ),
        ("decode", "both"),
        ("placement.partial_offload",),
        ("decode.bandwidth_bound", "placement.cpu_fallback"),
    ),
    "partly on the card, times unknown": Story(
        log(
            asked(1, (None, None, None), (None, None), total_s=54.0),
            facts=RuntimeFacts(layers_total=81, layers_offloaded=50),
            runtime="ollama",
        ),
        ("unknown",),
        ("placement.partial_offload",),
    ),
    "context off the card": Story(
        log(
            asked(1, (12000, None, 91.0), (370, 61.0), read=12000),
            facts=RuntimeFacts(
                layers_total=33, layers_offloaded=33, kv_cache_on_cpu=True, flash_attn=True
            ),
        ),
        ("both",),
        ("placement.kv_cache_off_gpu",),
        ("placement.partial_offload",),
    ),
    "graphics memory full": Story(
        log(
            asked(1, (3900, None, 37.0), (100, 27.0), read=3900),
            machine=card(
                memory_total_bytes=16 * 10**9,
                memory_used_bytes=15_700_000_000,
                shared_memory_used_bytes=5 * 10**9,
            ),
        ),
        ("both",),
        ("placement.memory_spill",),
        ("placement.cpu_fallback",),
    ),
    "weights fetched again": Story(
        log(
            asked(1, *SLOW_ONE),
            facts=RuntimeFacts(size_bytes=5 * 10**9, layers_total=33, layers_offloaded=0),
            machine=MachineFacts(
                server=ServerProcess(major_faults=90_000, resident_bytes=2 * 10**9)
            ),
        ),
        ("both",),
        ("placement.memory_spill",),
    ),
    "pages read in": Story(
        log(
            asked(1, (14, None, 98.0), (36, 18.0), read=14),
            asked(2, (14, None, 1.4), (50, 9.2), read=14),
        ),
        ("prefill",),
        ("placement.memory_spill",),
        ("prompt.large", "prefill.batch_too_small", *CACHE),
    ),
    "two cards slower than one": Story(
        log(
            asked(1, (12, None, 0.2), (41, 0.69), read=12),
            asked(2, (12, None, 0.17), (49, 1.08), read=12),
            asked(3, (12, None, 0.17), (39, 1.77), read=12),
            facts=RuntimeFacts(devices=2),
        ),
        ("decode",),
        ("placement.multi_device", "decode.below_limit"),
        ("placement.partial_offload", *CACHE),
    ),
    "one version slower": Story(
        log(
            asked(1, (1900, None, 3.5), (256, 10.5), read=1900),
            asked(2, (1900, None, 3.5), (256, 5.5), read=1900),
        ),
        ("decode",),
        ("decode.below_limit",),
        ("prompt.large", *CACHE),
    ),
    "one program reads slower": Story(
        log(
            asked(1, (1640, None, 144.0), (83, 21.0), read=1250),
            asked(2, (None, None, 10.8), (136, 42.0), read=1250),
        ),
        ("prefill",),
        ("prefill.compute_low", "placement.memory_spill"),
        ("decode.below_limit", *CACHE),
    ),
    "answer slows down": Story(
        log(asked(1, (670, 0, 0.26), (6000, 66.0), decode_windows=slowing(0.006, 0.016))),
        ("decode",),
        ("decode.depth",),
        CACHE,
    ),
    "long answer": Story(
        log(asked(1, (960, 0, 0.47), (5600, 89.0), decode_windows=slowing(0.0155, 0.0163))),
        ("decode",),
        ("decode.output_long",),
        ("decode.below_limit",),
    ),
    "deep without flash attention": Story(
        log(
            asked(1, (32000, None, 103.0), (860, 86.0), read=32000),
            facts=RuntimeFacts(layers_total=33, layers_offloaded=33, flash_attn=False),
        ),
        ("both",),
        ("decode.depth",),
        ("placement.partial_offload",),
    ),
    "drafts rejected": Story(
        log(asked(1, (370, 0, 0.24), (690, 23.0), drafted_tokens=2400, accepted_tokens=90)),
        ("decode",),
        ("decode.draft_rejected",),
    ),
    "drafts accepted": Story(
        log(asked(1, (370, 0, 0.24), (690, 13.0), drafted_tokens=700, accepted_tokens=500)),
        ("none",),
        (None,),
    ),
    "sampling": Story(
        log(asked(1, (430, 0, 0.13), (400, 3.5), sampling_s=7.0)),
        ("decode",),
        ("decode.sampling",),
        ("decode.below_limit",),
    ),
    "another prompt meanwhile": Story(
        log(
            asked(1, (13800, 13300, 0.5), (270, 22.5), others=1, disturbed_s=12.5),
            asked(2, (9900, 0, 12.5), (230, 11.2), others=1),
        ),
        ("decode", "both", "prefill"),
        ("server.shared_batch",),
        ("decode.bandwidth_bound", *CACHE),
    ),
    "four at once": Story(
        log(
            asked(1, (1780, 0, 2.4), (10, 0.73), others=0),
            *(asked(n, (1780, 0, 5.5 + n / 10), (10, 22.0 + n), others=3) for n in range(2, 6)),
        ),
        ("decode", "both"),
        ("server.shared_batch",),
        ("decode.bandwidth_bound", *CACHE),
    ),
    "reloads": Story(
        log(
            *(
                asked(n, (2000 + 40 * n, None, 1.0), (130, 1.9), load_s=8.0 + n / 10)
                for n in range(1, 5)
            ),
            runtime="ollama",
        ),
        ("load",),
        ("model.load",),
    ),
    "queue told": Story(
        log(
            asked(1, (800, None, 0.48), (230, 5.2)),
            asked(2, (540, None, 0.32), (100, 2.3), queue_s=5.5),
            asked(3, (340, None, 0.2), (130, 2.9), queue_s=9.0),
            runtime="ollama",
        ),
        ("queue",),
        ("server.queue",),
        ("model.load",),
    ),
    "whole times only": Story(
        log(*(asked(n, (None, None, None), (None, None), total_s=9.0 * n) for n in range(1, 5))),
        ("unknown",),
        (None,),
    ),
    "one token of each": Story(
        log(asked(1, (5800, 5799, 0.019), (1, None))),
        ("none", "unknown"),
        ("measurement.artifact",),
        ("prefill.compute_low", "prefill.batch_too_small", *CACHE),
    ),
    "one step that was not timed": Story(
        log(asked(1, (None, None, 0.018), (2, None), read=1, total_s=0.05)),
        ("none", "unknown"),
        ("measurement.artifact",),
        ("prefill.compute_low", "decode.below_limit"),
    ),
    "threads beyond the processors": Story(
        log(
            asked(1, (165, None, 14.9), (100, 73.0), read=165),
            facts=RuntimeFacts(threads=32, threads_hw=8),
        ),
        ("both", "decode"),
        ("host.threads",),
        ("placement.memory_spill",),
    ),
    "card too hot": Story(
        log(
            asked(1, (1280, None, 1.8), (248, 11.5), read=1280),
            machine=card(throttled_by=("SW Thermal Slowdown",)),
        ),
        ("both",),
        ("host.throttled",),
    ),
    "line of waiting requests": Story(
        log(summary=LoadSummary(running_max=16, waiting_max=120, generation_tps_max=1300.0)),
        ("queue",),
        ("server.queue",),
    ),
    "pushed out": Story(
        log(
            summary=LoadSummary(
                running_max=24, waiting_max=5, preemptions=1, kv_cache_usage_max_pct=99.7
            )
        ),
        ("decode",),
        ("server.shared_batch",),
    ),
    "all sent at once": Story(
        log(
            summary=LoadSummary(
                median_ttft_ms=13900.0, mean_ttft_ms=13700.0, p99_ttft_ms=27000.0, **SUMS
            )
        ),
        ("queue",),
        ("server.queue",),
        ("prefill.compute_low",),
    ),
    "ramp of waits": Story(
        log(
            summary=LoadSummary(
                mean_ttft_ms=4100.0, median_ttft_ms=3900.0, p99_ttft_ms=8200.0, mean_itl_ms=17.0
            )
        ),
        ("queue",),
        ("server.queue",),
    ),
    "healthy load": Story(
        log(summary=LoadSummary(completed=40, median_ttft_ms=350.0, mean_itl_ms=12.5)),
        ("none",),
        (None,),
    ),
    "steps without a graph": Story(
        log(
            summary=LoadSummary(running_max=44, queue_max=0, generation_tps_max=1400.0),
            facts=RuntimeFacts(cuda_graph=False),
        ),
        ("decode",),
        ("decode.below_limit",),
    ),
    "held back": Story(
        log(*(streamed(n, bursts(16, 0.19)) for n in range(1, 6)), runtime=None),
        ("network",),
        ("network.buffered_stream",),
        ("decode.below_limit",),
    ),
    "far away": Story(
        log(*(streamed(n, even(0.38), connect_s=0.24) for n in range(1, 6)), runtime=None),
        ("network",),
        ("network.latency",),
        ("prefill.compute_low",),
    ),
    "streamed evenly": Story(
        log(*(streamed(n, even(), connect_s=0.001) for n in range(1, 6)), runtime=None),
        ("none",),
        (None,),
    ),
    "healthy table": Story(
        table(row("prefill", 4400.0, sd=14.0), row("decode", 104.0, sd=0.2)), ("none",), (None,)
    ),
    "deep table": Story(
        table(
            *(
                row(phase, tps, depth)
                for depth, prefill, decode in ((0, 2400, 79), (4096, 2100, 58), (32768, 1080, 20))
                for phase, tps in (("prefill", float(prefill)), ("decode", float(decode)))
            )
        ),
        ("decode", "both"),
        ("decode.depth",),
    ),
    "a layer fewer": Story(
        table(
            row("prefill", 1500.0, layers_offloaded=32),
            row("decode", 52.0, layers_offloaded=32),
            row("prefill", 4200.0, layers_offloaded=33),
            row("decode", 99.0, layers_offloaded=33),
        ),
        ("both",),
        ("placement.partial_offload",),
        ("host.throttled",),
    ),
    "threads in a table": Story(
        table(
            *(
                row(phase, tps, threads=threads, backend="cpu")
                for threads, prefill, decode in ((4, 26.0, 7.4), (8, 52.0, 10.3), (24, 42.0, 5.6))
                for phase, tps in (("prefill", prefill), ("decode", decode))
            ),
            facts=RuntimeFacts(backend="cpu"),
        ),
        ("both",),
        ("host.threads",),
        ("placement.partial_offload",),
    ),
    "batches in a table": Story(
        table(
            *(
                row(phase, tps, n_batch=size, n_ubatch=size)
                for size, prefill in ((16, 98.0), (128, 610.0), (512, 1500.0))
                for phase, tps in (("prefill", prefill), ("decode", 61.0))
            )
        ),
        ("prefill",),
        ("prefill.batch_too_small",),
        ("decode.below_limit",),
    ),
    "context off the card in a table": Story(
        table(
            *(
                row(phase, tps, no_kv_offload=off)
                for off, prefill, decode in ((True, 300.0, 31.0), (False, 4100.0, 70.0))
                for phase, tps in (("prefill", prefill), ("decode", decode))
            )
        ),
        ("both", "prefill"),
        ("placement.kv_cache_off_gpu",),
    ),
    "cards in a table": Story(
        table(
            *(
                row(phase, tps, devices=count)
                for count, prefill, decode in ((2, 4000.0, 30.0), (1, 4100.0, 70.0))
                for phase, tps in (("prefill", prefill), ("decode", decode))
            )
        ),
        ("decode",),
        ("placement.multi_device",),
    ),
    "noisy table": Story(
        table(row("prefill", 2600.0, sd=1190.0), row("decode", 68.0, sd=33.0)),
        ("unknown",),
        ("host.contention",),
    ),
}
