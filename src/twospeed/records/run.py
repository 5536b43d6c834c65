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
    conditions: Conditions = Conditions()
    unknown: tuple[Blind, ...] = ()
    ignore_timings: bool = False
    """True when the user asked to leave the server's own clocks unused."""
    complete: bool = True
    """False when the run was interrupted or its file is cut."""
