"""Ceilings and shares against sums done by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from twospeed.limits.ceilings import Limits, limits_of, runs_on_processor
from twospeed.limits.normal import (
    CPU_DECODE_I_LOW_BIT,
    CPU_DECODE_K_LOW_BIT,
    CPU_DECODE_LARGE,
    CPU_DECODE_MIDDLE,
    CPU_DECODE_SMALL,
    CPU_PREFILL_SMALL,
    GPU_DECODE,
    GPU_PREFILL,
    normal_decode,
    normal_prefill,
)
from twospeed.records.run import (
    Goals,
    MachineProbe,
    ModelHeader,
    Quantity,
    Run,
    RuntimeFacts,
    Source,
    Workload,
)

HEADER = ModelHeader(
    file_bytes=120_000_000,
    layers=10,
    read_bytes_per_token=100_000_000,
    active_parameters=200_000_000,
    kv_bytes_per_token_f16=20_000,
    attention_width=500,
    quantization="Q4_1",
)
RUN = Run(
    source=Source(kind="engine", where="embedded", local=True),
    workload=Workload(prompt_tokens=2000, output_tokens=300),
    goals=Goals(),
    made_at="2026-11-30T00:00:00Z",
    twospeed_version="0",
    facts=RuntimeFacts(layers_offloaded=0),
    probe=MachineProbe(
        memory_bandwidth_bytes_per_s=40e9, matmul_flops_per_s=200e9, threads=2, cpu_s=1.0
    ),
    header=HEADER,
)


def at(
    run: Run,
    *,
    prefill_tps: float | None = 100.0,
    decode_tps: float | None = 50.0,
    depth: float = 1000,
    prompt: int = 2000,
) -> Limits:
    return limits_of(
        run,
        prefill_tps=prefill_tps,
        decode_tps=decode_tps,
        depth_tokens=depth,
        prompt_tokens=prompt,
    )


def test_decode_ceiling_counts_weights_and_cache():
    limits = at(RUN)
    ceiling = 40e9 / (100e6 + 20_000 * 1000)
    assert limits.decode_ceiling_tps is not None
    assert limits.decode_ceiling_tps.value == pytest.approx(ceiling)
    assert limits.decode_ceiling_tps.origin == "client"
    assert limits.decode_of_limit_frac is not None
    assert limits.decode_of_limit_frac.value == pytest.approx(50 / ceiling)
    assert limits.memory_bandwidth_bytes_per_s == Quantity(value=40e9, origin="client")


def test_prefill_ceiling_counts_attention_at_half_the_prompt():
    ceiling = 200e9 / (2 * 200e6 + 4 * 10 * 500 * 1000)
    limits = at(RUN)
    assert limits.prefill_ceiling_tps is not None
    assert limits.prefill_ceiling_tps.value == pytest.approx(ceiling)
    assert limits.prefill_of_limit_frac is not None
    assert limits.prefill_of_limit_frac.value == pytest.approx(100 / ceiling)


def test_cache_types_change_the_bytes():
    facts = RuntimeFacts(layers_offloaded=0, kv_type_k="q8_0", kv_type_v="q4_0")
    limits = at(replace(RUN, facts=facts))
    # (1.0625 + 0.5625) / 2 of the 16-bit bytes: 0.8125 / 2
    expected = 40e9 / (100e6 + 20_000 * 1000 * (1.0625 + 0.5625) / 4)
    assert limits.decode_ceiling_tps is not None
    assert limits.decode_ceiling_tps.value == pytest.approx(expected)


def test_unknown_cache_type_leaves_the_ceiling_unknown():
    facts = RuntimeFacts(layers_offloaded=0, kv_type_k="turbo3")
    limits = at(replace(RUN, facts=facts))
    assert limits.decode_ceiling_tps is None
    assert limits.decode_of_limit_frac is None
    assert limits.decode_normal is None
    assert limits.prefill_ceiling_tps is not None


def test_window_caps_the_depth():
    limits = at(replace(RUN, header=replace(HEADER, sliding_window=512)), depth=8000)
    assert limits.decode_ceiling_tps is not None
    assert limits.decode_ceiling_tps.value == pytest.approx(40e9 / (100e6 + 20_000 * 512))


def test_depth_zero_needs_no_cache_size():
    run = replace(RUN, header=replace(HEADER, kv_bytes_per_token_f16=None))
    shallow, deep = at(run, depth=0), at(run)
    assert shallow.decode_ceiling_tps is not None
    assert shallow.decode_ceiling_tps.value == pytest.approx(400.0)
    assert deep.decode_ceiling_tps is None


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, probe=None),
        replace(RUN, source=replace(RUN.source, local=False)),
        replace(RUN, source=replace(RUN.source, local=None)),
        replace(RUN, source=replace(RUN.source, kind="simulated")),
        replace(RUN, source=replace(RUN.source, kind="log")),
    ],
)
def test_probe_of_another_machine_says_nothing(run):
    assert at(run) == Limits()


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, facts=RuntimeFacts()),
        replace(RUN, facts=RuntimeFacts(layers_offloaded=12)),
        replace(RUN, facts=RuntimeFacts(size_vram_bytes=1)),
        replace(RUN, header=None),
    ],
)
def test_gpu_or_unknown_placement_gives_bandwidth_only(run):
    assert at(run) == Limits(memory_bandwidth_bytes_per_s=Quantity(value=40e9, origin="client"))


def test_no_vram_is_the_processor():
    facts = RuntimeFacts(size_vram_bytes=0)
    assert at(replace(RUN, facts=facts)).decode_ceiling_tps is not None


def test_shares_need_a_measured_speed():
    limits = at(RUN, prefill_tps=None, decode_tps=None)
    assert limits.decode_of_limit_frac is None
    assert limits.prefill_of_limit_frac is None
    assert limits.decode_ceiling_tps is not None


def test_partly_failed_probe_gives_the_other_half():
    run = replace(RUN, probe=MachineProbe(memory_bandwidth_bytes_per_s=40e9))
    limits = at(run)
    assert limits.decode_ceiling_tps is not None
    assert limits.prefill_ceiling_tps is None
    assert limits.prefill_normal is None


def test_normal_ranges_of_a_small_model_contain_what_was_measured():
    limits = at(RUN, depth=0)
    assert limits.decode_normal == CPU_DECODE_SMALL
    assert limits.prefill_normal == CPU_PREFILL_SMALL
    for share in (0.37, 0.47):
        assert CPU_DECODE_SMALL.low < share < CPU_DECODE_SMALL.high
    assert CPU_PREFILL_SMALL.low < 0.41 < CPU_PREFILL_SMALL.high


@pytest.mark.parametrize(
    ("parameters", "quantization", "expected"),
    [
        (135_000_000, "Q4_1", CPU_DECODE_SMALL),
        (1_200_000_000, "Q8_0", CPU_DECODE_MIDDLE),
        (8_000_000_000, "Q4_K_M", CPU_DECODE_LARGE),
        (8_000_000_000, None, CPU_DECODE_LARGE),
        (8_000_000_000, "Q3_K_S", CPU_DECODE_K_LOW_BIT),
        (8_000_000_000, "IQ2_XXS", CPU_DECODE_I_LOW_BIT),
        (8_000_000_000, "TQ1_0", None),
        (None, "Q4_K_M", None),
    ],
)
def test_normal_decode_on_a_processor(parameters, quantization, expected):
    assert normal_decode("cpu", parameters, quantization) == expected


def test_normal_ranges_elsewhere():
    assert normal_decode("cuda", 8_000_000_000, "Q4_K_M") == GPU_DECODE["cuda"]
    assert normal_decode("cuda", 500_000_000, "Q4_K_M") is None
    assert normal_decode("metal", 8_000_000_000, "IQ1_S") is None
    assert normal_prefill("metal", 8_000_000_000) == GPU_PREFILL["metal"]
    assert normal_prefill("cpu", 8_000_000_000) is None
    assert normal_prefill("cpu", None) is None


def test_a_healthy_share_falls_with_depth():
    """20 MB of cache beside 100 MB of weights: 120 / (100 / .2 + 20 / .06) = .144."""
    normal = at(RUN).decode_normal
    assert normal is not None
    assert normal.low == pytest.approx(120 / (100 / CPU_DECODE_SMALL.low + 20 / 0.06))
    assert normal.high == pytest.approx(120 / (100 / CPU_DECODE_SMALL.high + 20 / 0.87))


@pytest.mark.parametrize(("depth", "tps"), [(16, 180), (1024, 78), (4096, 34), (7500, 23)])
@pytest.mark.parametrize("bandwidth", [36e9, 61e9])
def test_the_test_machine_is_normal_at_every_depth(depth, tps, bandwidth):
    """docs/physics.md's decode speeds of SmolLM2 against both bandwidths seen on such machines."""
    header = replace(HEADER, read_bytes_per_token=96_576_768, kv_bytes_per_token_f16=23_040)
    probe = MachineProbe(memory_bandwidth_bytes_per_s=bandwidth)
    limits = at(replace(RUN, header=header, probe=probe), decode_tps=tps, depth=depth)
    assert limits.decode_normal is not None
    assert limits.decode_of_limit_frac is not None
    share = limits.decode_of_limit_frac.value
    assert limits.decode_normal.low < share < limits.decode_normal.high


def test_every_range_is_a_range():
    ranges = [CPU_DECODE_SMALL, CPU_DECODE_LARGE, *GPU_DECODE.values(), *GPU_PREFILL.values()]
    assert all(0 < each.low < each.high < 1.2 for each in ranges)
    assert all(each.source for each in ranges)


def test_a_machine_without_graphics_device_runs_on_its_processor():
    assert runs_on_processor(RuntimeFacts(), MachineProbe(graphics_devices=0))
    assert not runs_on_processor(RuntimeFacts(), MachineProbe(graphics_devices=1))
    assert not runs_on_processor(RuntimeFacts(), MachineProbe())
    assert not runs_on_processor(RuntimeFacts())
