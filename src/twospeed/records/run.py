"""Everything that one measurement yields: what the report is made from, live or from a file."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from twospeed.records.request_record import Origin, RequestRecord, Seconds, Tokens

Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
SourceKind = Literal["live", "log", "recording", "engine", "simulated"]
WorkloadFrom = Literal["flag", "default", "recording", "log"]


class Quantity(Struct, frozen=True, kw_only=True):
    """A number with its origin."""

    value: float
    origin: Origin


class Source(Struct, frozen=True, kw_only=True):
    """Where the records come from."""

    kind: SourceKind
    where: str
    runtime: str | None = None
    """Identifier of the runtime module, for example "llama-server"."""
    runtime_version: str | None = None
    model: str | None = None
    local: bool | None = None
    """True when the server runs on this machine, so that local probes describe it."""


class Workload(Struct, frozen=True, kw_only=True):
    """The request shape whose seconds are reported."""

    prompt_tokens: Tokens
    output_tokens: Tokens
    cached_prompt_tokens: Tokens = 0
    origin: WorkloadFrom = "default"


CHAT_TURN = Workload(prompt_tokens=2000, output_tokens=300)
"""A usual turn: what is reported of where nobody says otherwise."""


class Goals(Struct, frozen=True, kw_only=True):
    """From where on a number counts as slow."""

    wait_s: Positive = 2.0
    stream_tps: Positive = 20.0


class RuntimeFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the runtime says about itself; None where it does not show it."""

    n_ctx: Tokens | None = None
    """Context of one slot in tokens."""
    n_ctx_train: Tokens | None = None
    slots: Count | None = None
    layers_total: Count | None = None
    layers_offloaded: Count | None = None
    flash_attn: bool | None = None
    kv_type_k: str | None = None
    kv_type_v: str | None = None
    n_batch: Count | None = None
    n_ubatch: Count | None = None
    threads: Count | None = None
    size_bytes: Count | None = None
    """Model in memory, or its file size where only that is told."""
    size_vram_bytes: Count | None = None
    parameters: Count | None = None
    quantization: str | None = None
    model_path: str | None = None
    prefix_cache_enabled: bool | None = None
    kv_block_tokens: Tokens | None = None
    """Granularity of prefix reuse in tokens."""
    reports_cached_tokens: bool | None = None
    """False when the runtime never tells cached tokens (or tells a constant 0)."""
    backend: str | None = None
    """What computes, in lower case: "cpu", "cuda", "metal", "vulkan", "rocm", "sycl"."""
    gpu_found: bool | None = None
    """False where the runtime said that it found no usable graphics device."""
    devices: Count | None = None
    """Graphics devices that hold a part of the model."""
    kv_cache_on_cpu: bool | None = None
    """True where (part of) the KV cache lies in system memory."""
    graph_splits: Count | None = None
    threads_hw: Count | None = None
    """Processors of the machine, as the runtime counts them."""
    draft_model: bool | None = None
    cuda_graph: bool | None = None


class Setting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one setting is spelled for a runtime; None where it has no such spelling.

    `{value}` stands for the value (replace it as text: requests hold other braces). A spelling
    without it is a switch, written in the direction that speeds things up: prompt cache on, model
    kept loaded, reasoning off, the whole model on the graphics card.

    The names are shared by all runtimes: n_ctx, n_batch, n_ubatch, threads, gpu_layers,
    kv_offload, flash_attn, kv_type_k, kv_type_v, cache_prompt, prefix_cache, parallel_slots,
    cache_ram_mib, swa_full, keep_loaded, max_output_tokens, reasoning.
    """

    flag: str | None = None
    """On the command line that starts the runtime, or a whole command where one is needed."""
    also: tuple[str, ...] = ()
    """Other names of the flag, by which a command line may hold it."""
    env: str | None = None
    """`NAME=value` in the environment of the runtime."""
    request: str | None = None
    """Member of the JSON body of a request."""


class LoadSummary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a load generator, or a runtime over windows of time, says about many requests at once.

    Names and units are those of the tools, for these numbers cannot be told apart by request.
    """

    completed: Count | None = None
    failed: Count | None = None
    duration_s: Seconds | None = None
    total_input_tokens: Count | None = None
    total_output_tokens: Count | None = None
    concurrency_max: Count | None = None
    mean_ttft_ms: float | None = None
    median_ttft_ms: float | None = None
    p99_ttft_ms: float | None = None
    mean_tpot_ms: float | None = None
    mean_itl_ms: float | None = None
    median_itl_ms: float | None = None
    running_max: Count | None = None
    waiting_max: Count | None = None
    queue_max: Count | None = None
    kv_cache_usage_max_pct: float | None = None
    generation_tps_max: float | None = None
    """Of all requests together."""
    preemptions: Count | None = None


class BenchmarkPoint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of a benchmark table."""

    phase: Literal["prefill", "decode", "mixed"]
    tokens: Tokens | None
    depth_tokens: Tokens | None = None
    tps: Positive
    sd: float | None = None
    settings: dict[str, str | int | float | bool | None] = {}
    """What the row says about its set-up, by the names of RuntimeFacts (and "model", "test")."""
    line: int | None = None


class GraphicsDevice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A graphics device at work; None where it does not tell."""

    name: str
    memory_total_bytes: Count | None = None
    memory_used_bytes: Count | None = None
    memory_used_by_others_bytes: Count | None = None
    shared_memory_used_bytes: Count | None = None
    """System memory in use as graphics memory."""
    utilisation_frac: float | None = None
    clock_hz: Positive | None = None
    clock_max_hz: Positive | None = None
    throttled_by: tuple[str, ...] = ()
    """Reasons that it gives for running below its clocks, idling left out."""
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    pcie_generation: Count | None = None
    pcie_lanes: Count | None = None
    bandwidth_bytes_per_s: Positive | None = None


class ServerProcess(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The process that serves, as this machine sees it over the run."""

    command: tuple[str, ...] = ()
    """Its command line, keys and tokens left out."""
    threads: Count | None = None
    """Threads that it has."""
    working_threads: Count | None = None
    """Threads that shared its work: each took a good part of what the busiest one took."""
    busy_threads: float | None = None
    """Processors that it kept busy while it worked."""
    allowed_cores: Count | None = None
    """Processors that it may use."""
    resident_bytes: Count | None = None
    swapped_bytes: Count | None = None
    major_faults: Count | None = None
    """Pages that it had to fetch from storage during the run."""
    read_bytes: Count | None = None
    """Read from storage during the run."""


class MachineFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machine under the server over the run; None where it does not tell."""

    logical_cores: Count | None = None
    physical_cores: Count | None = None
    performance_cores: Count | None = None
    """None where all cores are alike."""
    numa_nodes: Count | None = None
    governor: str | None = None
    clock_hz: Positive | None = None
    clock_max_hz: Positive | None = None
    throttle_events: Count | None = None
    """Thermal or power throttling of the processor during the run."""
    throttled_by: tuple[str, ...] = ()
    cgroup_throttled_s: Seconds | None = None
    """Time in which the processor quota stopped the server."""
    memory_available_bytes: Count | None = None
    swap_read_bytes: Count | None = None
    """Read back from swap by the whole machine during the run."""
    memory_pressure: float | None = None
    """Share of the time in which some process waited for memory (Linux PSI, 0 … 1)."""
    busiest: tuple[str, ...] = ()
    """Names of the other programs that used most processor time."""
    graphics: tuple[GraphicsDevice, ...] = ()
    server: ServerProcess | None = None


class MachineProbe(Struct, frozen=True, kw_only=True):
    """What short local measurements found; None where one was not possible."""

    memory_bandwidth_bytes_per_s: Positive | None = None
    matmul_flops_per_s: Positive | None = None
    threads: Count | None = None
    """Thread count at which the bandwidth was best."""
    cpu_s: Seconds | None = None
    """Processor time of the probe process."""
    graphics_devices: Count | None = None
    """Devices of this machine that could compute; None where that cannot be told."""


class ModelHeader(Struct, frozen=True, kw_only=True):
    """What the model file says; the basis of bytes and operations per token."""

    file_bytes: Count
    architecture: str | None = None
    parameters: Count | None = None
    layers: Count | None = None
    read_bytes_per_token: Count | None = None
    """Tensor bytes that a decode step reads: active experts, an embedding table only when tied."""
    active_parameters: Count | None = None
    """Matrix weights that a prompt token passes through; output matrix and embedding left out."""
    kv_bytes_per_token_f16: Count | None = None
    attention_width: Count | None = None
    """Query heads times head size."""
    sliding_window: Count | None = None
    quantization: str | None = None


class Conditions(Struct, frozen=True, kw_only=True):
    """Whether the numbers can be trusted."""

    host_load: float | None = None
    """Share of this machine's processors used by other programs during the run (0 … 1)."""
    steal: float | None = None
    """Share of processor time taken by the hypervisor (0 … 1)."""
    cpu_pressure: float | None = None
    """Share of the time in which some process waited for a processor (Linux PSI, 0 … 1)."""
    other_requests: Count | None = None
    own_cpu_s: Seconds | None = None
    trusted: bool = True
    warnings: tuple[str, ...] = ()


class Blind(Struct, frozen=True, kw_only=True):
    """Something that could not be seen, and what would show it."""

    what: str
    needs: str


class Run(Struct, frozen=True, kw_only=True):
    """One measurement, complete enough to report without measuring again."""

    source: Source
    workload: Workload
    goals: Goals
    made_at: str
    twospeed_version: str
    facts: RuntimeFacts = RuntimeFacts()
    records: tuple[RequestRecord, ...] = ()
    round_trip_s: Seconds | None = None
    """Fastest round trip of a trivial request."""
    loading_s: Seconds | None = None
    """Seconds that the server spent loading its model while we waited; None when it was ready."""
    probe: MachineProbe | None = None
    header: ModelHeader | None = None
    machine: MachineFacts | None = None
    points: tuple[BenchmarkPoint, ...] = ()
    summary: LoadSummary | None = None
    conditions: Conditions = Conditions()
    unknown: tuple[Blind, ...] = ()
    settings: dict[str, Setting] = {}
    """How the runtime spells what can be changed, by shared name (see Setting)."""
    ignore_timings: bool = False
    """True when the user asked to leave the server's own clocks unused."""
    complete: bool = True
    """False when the run was interrupted or its file is cut."""
