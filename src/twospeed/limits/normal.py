"""What a model of this size normally reaches of what its machine allows.

The raw limit is never the yardstick: a 135M model on a CPU normally reaches about 37 % of memory
bandwidth. The ranges are wide on purpose; outside one, something is worth looking for.
Unknown combinations are None, and no verdict is based on them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

Backend = Literal["cpu", "metal", "cuda", "rocm", "vulkan", "sycl"]
Yardstick = Literal["measured", "specification"]


class NormalRange(Struct, frozen=True, kw_only=True):
    """The share of a limit that healthy set-ups reach."""

    low: float
    high: float
    of: Yardstick
    """Whether the limit is the local probe's or the vendor's number (about a fifth higher)."""
    source: str


SMALL = 1_000_000_000
LARGE = 2_500_000_000

_OWN = "docs/physics.md: SmolLM2-135M .37, Gemma-3-270M .47 of measured bandwidth, two cores"
_CPU = "docs/physics.md: llama.cpp, 8B on 7950X, M2 Max, Threadripper, Xeon"

# Shares of the specified bandwidth were .33 to 1.1 there (median .58); the local probe reads about
# four fifths of the specification, and the ranges below are shares of the probe.
CPU_DECODE_SMALL = NormalRange(low=0.20, high=0.75, of="measured", source=_OWN)
CPU_DECODE_MIDDLE = NormalRange(
    low=0.25, high=0.95, of="measured", source="between the measured sizes below 1B and at 8B"
)
CPU_DECODE_LARGE = NormalRange(low=0.38, high=1.10, of="measured", source=_CPU)
# Below 4 bits the unpacking costs more than the reading on a CPU: .37 to .41 and .16 to .22 there.
CPU_DECODE_K_LOW_BIT = NormalRange(low=0.28, high=0.85, of="measured", source=_CPU)
CPU_DECODE_I_LOW_BIT = NormalRange(low=0.12, high=0.45, of="measured", source=_CPU)
CPU_PREFILL_SMALL = NormalRange(
    low=0.20,
    high=0.75,
    of="measured",
    source="docs/physics.md: SmolLM2-135M about .41 of the matrix probe, llama.cpp on two cores",
)


def _of_specification(low: float, high: float, seen: str) -> NormalRange:
    return NormalRange(low=low, high=high, of="specification", source=f"docs/physics.md: {seen}")


# docs/physics.md, dense models at depth 0: medians of achieved share of the specified bandwidth.
GPU_DECODE: dict[Backend, NormalRange] = {
    "metal": _of_specification(0.45, 0.95, "Apple .56 (Ultra) to .82 (base)"),
    "cuda": _of_specification(0.35, 0.95, "NVIDIA .43 (HBM) to .75 (Ada)"),
    "rocm": _of_specification(0.45, 0.95, "RDNA .64, Strix Halo .79"),
    "vulkan": _of_specification(0.55, 0.95, "RDNA .81, Strix Halo .82"),
    "sycl": _of_specification(0.30, 0.80, "Arc .39 to .63"),
}
GPU_PREFILL: dict[Backend, NormalRange] = {
    "metal": _of_specification(0.50, 0.85, "Apple .68 to .71 on every tier"),
    "cuda": _of_specification(
        0.15, 1.10, "NVIDIA .22 (HBM), .34 (workstation), .91 to 1.02 (consumer)"
    ),
    "rocm": _of_specification(0.20, 0.50, "RDNA .32 to .39, Strix .24 to .29"),
    "vulkan": _of_specification(0.20, 0.50, "RDNA .32 to .39, Strix .24 to .29"),
    "sycl": _of_specification(0.07, 0.40, "Arc .09 to .28"),
}


def normal_decode(
    backend: Backend, parameters: int | None, quantization: str | None
) -> NormalRange | None:
    """The share of memory bandwidth that decode normally reaches at depth 0.

    Args:
        backend: what computes.
        parameters: active parameters.
        quantization: name of the file type, such as "Q4_K_M".

    Returns:
        The range, or None where nothing is known. Models below 1B and 1- and 2-bit types are
        bound by other costs on GPUs, without a usual share.
    """
    if parameters is None:
        return None
    kind = (quantization or "").upper()
    if backend == "cpu":
        return _cpu_decode(parameters, kind)
    launch_bound = parameters < SMALL or kind.startswith(("IQ1", "IQ2", "TQ"))
    return None if launch_bound else GPU_DECODE.get(backend)


def _cpu_decode(parameters: int, kind: str) -> NormalRange | None:
    if kind.startswith("TQ"):
        return None
    if kind.startswith(("IQ1", "IQ2", "IQ3")):
        return CPU_DECODE_I_LOW_BIT
    if parameters < SMALL:
        return CPU_DECODE_SMALL
    if kind.startswith(("Q2", "Q3")):
        return CPU_DECODE_K_LOW_BIT
    return CPU_DECODE_MIDDLE if parameters < LARGE else CPU_DECODE_LARGE


# docs/physics.md: cache reads reach .64 to .87 of bandwidth with good flash attention, .06 to .24
# without; on the test machine's processor they reached .09 to .15.
CACHE_READ_LOW = 0.06
CACHE_READ_HIGH = 0.87


def at_depth(normal: NormalRange, weight_bytes: float, cache_bytes: float) -> NormalRange:
    """The share of memory bandwidth that decode normally reaches with a filled cache.

    Cache reads are less efficient than weight reads, so that a healthy share falls with depth:
    share = (W + K) / (W / share of weights + K / share of cache).

    Args:
        normal: the range at depth 0.
        weight_bytes: bytes of weights read per token, W.
        cache_bytes: bytes of the KV cache read per token at this depth, K.
    """
    if cache_bytes <= 0:
        return normal
    total = weight_bytes + cache_bytes
    cache_high = max(normal.high, CACHE_READ_HIGH)
    return structs.replace(
        normal,
        low=total / (weight_bytes / normal.low + cache_bytes / CACHE_READ_LOW),
        high=total / (weight_bytes / normal.high + cache_bytes / cache_high),
        source=f"{normal.source}; cache reads .06 to .87",
    )


def normal_prefill(backend: Backend, parameters: int | None) -> NormalRange | None:
    """The share of matrix speed that prefill of a dense model normally reaches.

    Args:
        backend: what computes.
        parameters: active parameters.

    Returns:
        The range, or None where nothing is known (a CPU with a model of 1B and more).
    """
    if parameters is None:
        return None
    if backend == "cpu":
        return CPU_PREFILL_SMALL if parameters < SMALL else None
    return None if parameters < SMALL else GPU_PREFILL.get(backend)
