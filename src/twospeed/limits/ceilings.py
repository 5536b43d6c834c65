"""How fast this machine could run this model, and how much of that it reaches.

decode:  tokens/s <= bandwidth / (bytes read per token + cache bytes at that depth)
prefill: tokens/s <= matrix speed / (2 · weights + 4 · layers · width · depth), mean depth n / 2

The local probe measures the processor. On a GPU, on another machine, or where it is unknown which
of them computes, it says nothing about the model and every ceiling is None.
Source: docs/physics.md; both are the terms of its models without overhead and at full efficiency.
"""

from __future__ import annotations

from msgspec import Struct

from twospeed.limits.ggml_types import bytes_per_weight
from twospeed.limits.normal import NormalRange, at_depth, normal_decode, normal_prefill
from twospeed.records.run import MachineProbe, ModelHeader, Quantity, Run, RuntimeFacts

F16_BYTES = 2.0
PROBED_SOURCES = ("live", "engine")


class Limits(Struct, frozen=True, kw_only=True):
    """What machine and model allow; None where it is unknown."""

    memory_bandwidth_bytes_per_s: Quantity | None = None
    decode_ceiling_tps: Quantity | None = None
    decode_of_limit_frac: Quantity | None = None
    prefill_ceiling_tps: Quantity | None = None
    prefill_of_limit_frac: Quantity | None = None
    decode_normal: NormalRange | None = None
    """What decode_of_limit_frac normally is for this size and backend."""
    prefill_normal: NormalRange | None = None


def limits_of(
    run: Run,
    *,
    prefill_tps: float | None,
    decode_tps: float | None,
    depth_tokens: float,
    prompt_tokens: int,
) -> Limits:
    """The ceilings of both phases and the share of each that was reached.

    Ceilings rest on the probe ("client"), bytes and operations on the model header.

    Args:
        run: its probe, header, facts and source.
        prefill_tps: measured prefill speed at `prompt_tokens`, or None.
        decode_tps: measured decode speed at `depth_tokens`, or None.
        depth_tokens: tokens in the KV cache at which decode is judged.
        prompt_tokens: uncached prompt length at which prefill is judged.
    """
    if run.probe is None or not _probe_describes_server_host(run):
        return Limits()
    bandwidth = run.probe.memory_bandwidth_bytes_per_s
    told = _client(bandwidth)
    if run.header is None or not runs_on_processor(run.facts, run.probe):
        return Limits(memory_bandwidth_bytes_per_s=told)
    header = run.header
    decode = decode_ceiling_tps(header, run.facts, bandwidth, depth_tokens)
    prefill = prefill_ceiling_tps(header, run.probe.matmul_flops_per_s, prompt_tokens)
    size = header.active_parameters
    return Limits(
        memory_bandwidth_bytes_per_s=told,
        decode_ceiling_tps=_client(decode),
        decode_of_limit_frac=_share(decode_tps, decode),
        prefill_ceiling_tps=_client(prefill),
        prefill_of_limit_frac=_share(prefill_tps, prefill),
        decode_normal=_decode_normal(header, run.facts, depth_tokens) if decode else None,
        prefill_normal=normal_prefill("cpu", size) if prefill else None,
    )


def runs_on_processor(facts: RuntimeFacts, probe: MachineProbe | None = None) -> bool:
    """Whether the whole model is known to run on the processor.

    Either the runtime says that nothing is offloaded, or its machine has nothing to offload to.
    """
    if facts.layers_offloaded == 0 or facts.size_vram_bytes == 0:
        return True
    return probe is not None and probe.graphics_devices == 0


def decode_ceiling_tps(
    header: ModelHeader,
    facts: RuntimeFacts,
    bandwidth_bytes_per_s: float | None,
    depth_tokens: float,
) -> float | None:
    """Tokens per second if decode did nothing but read its bytes; None when a term is unknown.

    A sliding window caps the depth for all layers, also where only some layers have one: the
    ceiling then errs upwards.
    """
    cache = cache_bytes(header, facts, depth_tokens)
    if not bandwidth_bytes_per_s or header.read_bytes_per_token is None or cache is None:
        return None
    total = header.read_bytes_per_token + cache
    return bandwidth_bytes_per_s / total if total > 0 else None


def _decode_normal(
    header: ModelHeader, facts: RuntimeFacts, depth_tokens: float
) -> NormalRange | None:
    """What decode of this model normally reaches on a processor at this depth."""
    normal = normal_decode("cpu", header.active_parameters, header.quantization)
    cache = cache_bytes(header, facts, depth_tokens)
    if normal is None or cache is None or header.read_bytes_per_token is None:
        return None
    return at_depth(normal, header.read_bytes_per_token, cache)


def cache_bytes(header: ModelHeader, facts: RuntimeFacts, depth_tokens: float) -> float | None:
    """KV cache bytes that one decode step reads at this depth; None when unknown."""
    if depth_tokens <= 0:
        return 0.0
    per_token = cache_bytes_per_token(header, facts)
    return None if per_token is None else per_token * _within_window(header, depth_tokens)


def cache_bytes_per_token(header: ModelHeader, facts: RuntimeFacts) -> float | None:
    """KV cache bytes of one token in the types that the runtime uses (f16 where it does not say).

    Keys and values are taken to be equally wide.
    """
    if header.kv_bytes_per_token_f16 is None:
        return None
    keys = bytes_per_weight(facts.kv_type_k or "f16")
    values = bytes_per_weight(facts.kv_type_v or "f16")
    if keys is None or values is None:
        return None
    return header.kv_bytes_per_token_f16 * (keys + values) / 2 / F16_BYTES


def prefill_ceiling_tps(
    header: ModelHeader, flops_per_s: float | None, prompt_tokens: int
) -> float | None:
    """Prompt tokens per second if prefill did nothing but its products; None when unknown."""
    if not flops_per_s or not header.active_parameters:
        return None
    if header.layers is None or header.attention_width is None:
        return None
    depth = _within_window(header, prompt_tokens / 2)
    attention = 4 * header.layers * header.attention_width * depth
    return flops_per_s / (2 * header.active_parameters + attention)


def _within_window(header: ModelHeader, depth_tokens: float) -> float:
    window = header.sliding_window
    return depth_tokens if window is None else min(depth_tokens, window)


def _probe_describes_server_host(run: Run) -> bool:
    return run.source.local is True and run.source.kind in PROBED_SOURCES


def _client(value: float | None) -> Quantity | None:
    return None if value is None else Quantity(value=value, origin="client")


def _share(reached_tps: float | None, ceiling_tps: float | None) -> Quantity | None:
    if reached_tps is None or ceiling_tps is None:
        return None
    return Quantity(value=reached_tps / ceiling_tps, origin="client")
