"""Healthy machines, of which nothing bad may be said, and records too thin to call them healthy."""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec.structs import replace
from saved_runs import Made, card
from scenario import Scenario, simulator
from trials import Seen, diagnosed, read_here

from twospeed.records.request_record import ClientTimes, RequestRecord, TokenCounts
from twospeed.records.run import (
    Conditions,
    MachineFacts,
    MachineProbe,
    ModelHeader,
    Run,
    RuntimeFacts,
    ServerProcess,
)

BLIND = "blind: "
"""Begins the name of a row whose evidence is too thin for a healthy verdict."""

NVIDIA = ((2403, 73), (3729, 110), (4030, 115), (7139, 131), (2413, 57), (583, 31), (8125, 146))
AMD = ((4472, 115), (913, 36), (2336, 66))
APPLE = ((994, 79), (693, 49), (537, 40), (1169, 37), (719, 44))
PROCESSOR = ((511, 70), (421, 78), (872, 69))
"""Prefill and decode speed, tokens per second, of 7B to 30B models on real machines.

Source: XiongjieDai/GPU-Benchmarks-on-LLM-Inference; ggml-org/llama.cpp issues 4167 and 4766;
kyuz0/amd-strix-halo-toolboxes; maeddesg/vulkanforge; intel/ipex-llm 12991; ikawrakow/ik_llama.cpp
437 and 357; the second one on a processor is this repository's own engine (docs/physics.md).
"""
RUNTIMES = ("llama-server", "ollama", "lmstudio", "vllm", "koboldcpp", "openai")


def healthy(
    draw: random.Random, speeds: tuple[tuple[int, int], ...], backend: str, machine: MachineFacts
) -> Run:
    """A machine at the speed of one that someone measured."""
    prefill, decode = draw.choice(speeds)
    runtime = "llama-server" if backend == "cpu" else draw.choice(RUNTIMES)
    layers = draw.choice((29, 33, 49))
    size = draw.randint(3, 9) * 2**30
    plain = RuntimeFacts(
        backend=backend,
        layers_total=layers,
        layers_offloaded=0 if backend == "cpu" else layers,
        n_batch=2048,
        n_ubatch=512,
        n_ctx=draw.choice((4096, 8192, 32_768)),
        threads=8,
        size_bytes=size,
    )
    facts = replace(plain, size_vram_bytes=size) if runtime == "ollama" else plain
    made = Made(
        prefill * draw.uniform(0.9, 1.1),
        decode * draw.uniform(0.9, 1.1),
        draw,
        prefill_half_depth=draw.uniform(8000, 50_000),
        decode_half_depth=draw.uniform(12_000, 60_000),
        jitter_frac=draw.uniform(0.03, 0.05),
        runtime=runtime,
        facts=facts,
        machine=machine,
        conditions=Conditions(host_load=draw.uniform(0.0, 0.06), other_requests=0),
    )
    return made.run(draw.randint(200, 2400), draw.randint(40, 400))


def on_nvidia(draw: random.Random) -> Run:
    # A power cap at full load is usual and is no fault.
    reasons = ("SW Power Cap",) if draw.random() < 0.5 else ()
    return healthy(draw, NVIDIA, "cuda", card(draw, throttled_by=reasons, temperature_c=71.0))


def on_amd(draw: random.Random) -> Run:
    backend = draw.choice(("vulkan", "rocm"))
    shared = draw.randint(1, 4) * 10**8
    return healthy(draw, AMD, backend, card(draw, shared_memory_used_bytes=shared))


def on_apple(draw: random.Random) -> Run:
    machine = MachineFacts(logical_cores=12, physical_cores=12, performance_cores=8)
    return healthy(draw, APPLE, "metal", machine)


def on_a_processor(draw: random.Random) -> Run:
    """A small model on a processor, with the file's header and a probe of the machine."""
    size = draw.randint(80, 130) * 10**6
    machine = MachineFacts(
        logical_cores=8,
        physical_cores=8,
        server=ServerProcess(
            threads=14, allowed_cores=8, resident_bytes=int(size * 1.4), major_faults=40
        ),
    )
    run = healthy(draw, PROCESSOR, "cpu", machine)
    return replace(
        run,
        facts=replace(run.facts, size_bytes=size),
        header=ModelHeader(
            file_bytes=size,
            parameters=135_000_000,
            active_parameters=106_000_000,
            layers=30,
            read_bytes_per_token=size,
            kv_bytes_per_token_f16=23_040,
            attention_width=576,
        ),
        probe=MachineProbe(
            memory_bandwidth_bytes_per_s=3.6e10, matmul_flops_per_s=2.4e11, graphics_devices=0
        ),
    )


def simulated(
    *words: str, prefill: tuple[int, int] = (1500, 6000), flags: tuple[str, ...] = ()
) -> Callable[[int], Seen]:
    """Diagnose a simulated healthy machine whose speeds are drawn for each seed."""

    def run(seed: int) -> Seen:
        draw = random.Random(f"{seed} {words}")
        speeds = (
            "--prefill-tps", f"{draw.uniform(*prefill):.0f}",
            "--decode-tps", f"{draw.uniform(35, 110):.0f}",
            "--attention-half-depth", f"{draw.uniform(8000, 40_000):.0f}",
            "--decode-half-depth", f"{draw.uniform(12_000, 60_000):.0f}",
            "--jitter", f"{draw.uniform(0.03, 0.05):.3f}",
        )  # fmt: skip
        with simulator("--seed", str(seed), *speeds, *words) as url:
            return diagnosed(
                url, "--no-probe", "--prompt-tokens", f"{draw.randint(500, 2000)}", *flags,
                seed=seed,
            )  # fmt: skip

    return run


def each(run: Run, change: Callable[[RequestRecord], RequestRecord]) -> Run:
    """The run with every record changed."""
    return replace(run, records=tuple(change(record) for record in run.records))


def whole_times_only(run: Run) -> Run:
    return each(
        run,
        lambda r: replace(
            r, server=None, arrivals=(), client=ClientTimes(end_s=r.client.end_s), counts=r.counts
        ),
    )


def without_usage(run: Run) -> Run:
    """Nobody counts tokens, and a piece of text is no token."""
    bare = each(run, lambda r: replace(r, server=None, counts=TokenCounts()))
    return each(bare, lambda r: replace(r, arrivals=r.arrivals[::7]))


def without_decode(run: Run) -> Run:
    gone = {"decode_s": None, "decode_steps": None}
    return each(
        run,
        lambda r: replace(
            r, arrivals=(), client=ClientTimes(), server=r.server and replace(r.server, **gone)
        ),
    )


def without_prefill(run: Run) -> Run:
    gone = {"prefill_s": None, "prefill_tokens": None}
    return each(
        run,
        lambda r: replace(
            r, arrivals=(), client=ClientTimes(), server=r.server and replace(r.server, **gone)
        ),
    )


def one_short_request(run: Run) -> Run:
    """One prompt of 128 tokens says nothing of the wait for one of thousands."""
    work = replace(run.workload, prompt_tokens=6000)
    return replace(run, records=run.records[:1], workload=work)


def nothing(run: Run) -> Run:
    return replace(run, records=())


THINNER = (
    ("whole times only", whole_times_only),
    ("no token counts", without_usage),
    ("decode told by nobody", without_decode),
    ("prefill told by nobody", without_prefill),
    ("one short request for a long one", one_short_request),
    ("facts alone", nothing),
)


def controls() -> tuple[Scenario, ...]:
    """The rows without a fault: saved files of made-up machines, then simulated ones."""
    saved = (("NVIDIA", on_nvidia), ("AMD", on_amd), ("Apple", on_apple),
             ("processor", on_a_processor))  # fmt: skip
    paced = (
        ("llama-server", simulated("--speak", "llama-server")),
        ("Ollama", simulated("--speak", "ollama")),
        ("vLLM", simulated("--speak", "vllm", "--report-cached", "--slots", "4")),
        ("LM Studio", simulated("--speak", "lmstudio")),
        ("mlx", simulated("--speak", "mlx")),
        ("transformers", simulated("--speak", "transformers", prefill=(4000, 9000))),
        (
            "short reasoning",
            simulated("--speak", "llama-server", "--reasoning-tokens", "8"),
        ),
        (
            "drafts and three tokens an event",
            simulated("--speak", "llama-server", "--draft-tokens", "2", "--tokens-per-chunk", "3"),
        ),
    )
    return (
        *(Scenario(f"healthy: saved, {name}", (), _read(make), seeds=12) for name, make in saved),
        *(Scenario(f"healthy: simulated {name}", (), run, seeds=2) for name, run in paced),
        *(Scenario(f"{BLIND}{name}", (), _read(_thinned(less)), seeds=5) for name, less in THINNER),
    )


def _read(make: Callable[[random.Random], Run]) -> Callable[[int], Seen]:
    return lambda seed: read_here(make(random.Random(seed)))


def _thinned(less: Callable[[Run], Run]) -> Callable[[random.Random], Run]:
    makers = (on_nvidia, on_amd, on_apple, on_a_processor)
    return lambda draw: less(draw.choice(makers)(draw))
