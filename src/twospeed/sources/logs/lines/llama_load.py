"""llama.cpp: what it says while a model loads.

Prefixes change with every version; the words behind them hardly do.
"""

from __future__ import annotations

import re

from twospeed.sources.logs.collector import Collector, Line
from twospeed.sources.logs.numbers import NUMBER, number, whole

_MARKS = (b"layers", b"n_ctx", b"flash_attn", b"buffer size", b"n_batch", b"graph splits",
          b"graph: nodes", b"Flash Attention", b"n_threads", b"backend", b"dev = ", b"CUDA",
          b"n_ubatch", b"no GPU", b"no usable GPU", b"no ROCm", b"No devices found")  # fmt: skip
MARKS = {b"buffer size =": _MARKS, b"layers to GPU": _MARKS}

_LAYERS = re.compile(r"offloaded\s+(\d+)/(\d+)\s+layers to GPU")
_SETTING = re.compile(r"\b(n_ctx|n_batch|n_ubatch|flash_attn|graph splits)\s*=\s*(\w+)")
_OUTCOME = re.compile(
    r"(Flash Attention|graph: nodes = \d+, splits)(?: was auto, set to| =)? (\w+)"
)
_KV_TYPES = re.compile(r"K \((\w+)\):.*?V \((\w+)\):")
_BUFFER = re.compile(rf"\b(\w{{1,40}})\s+KV buffer size\s*=\s*({NUMBER})\s*MiB")
_MODEL_BUFFER = re.compile(
    rf"\b(\w{{1,40}}?)(?:_Mapped)?(?: model)? buffer size\s*=\s*{NUMBER}\s*MiB"
)
_THREADS = re.compile(r"n_threads\s*=\s*(\d+)(?:\s*\(n_threads_batch\s*=\s*\d+\))?\s*/\s*(\d+)")
_BACKEND = re.compile(r"loaded (\w+) backend from")
_NO_DEVICE = re.compile(
    r"no CUDA-capable device|failed to initialize CUDA|no usable GPU found"
    r"|no GPU (?:found|detected)"
    r"|no ROCm-capable device|ggml_vulkan: No devices found",
    re.IGNORECASE,
)
_KV_LAYER = re.compile(r"layer\s+\d+:\s*dev = (\w+)")
_ON = {"1": True, "enabled": True, "on": True, "0": False, "disabled": False, "off": False}
_HOST = ("CPU", "CUDA_Host", "Vulkan_Host", "ROCm_Host", "SYCL_Host")
_BACKENDS = {"CUDA": "cuda", "Metal": "metal", "MTL": "metal", "Vulkan": "vulkan", "ROCm": "rocm",
             "SYCL": "sycl", "HIP": "rocm"}  # fmt: skip


class LlamaLoad:
    """Facts about one loaded model; the newest load counts."""

    def __init__(self, log: Collector) -> None:
        self._log = log
        self._devices: set[str] = set()
        self._kv_on_cpu_mib = 0.0
        self._backends: set[str] = set()

    def take(self, line: Line) -> bool:
        """Read one line of a load."""
        text, content = line.text, self._log.content
        if _NO_DEVICE.search(text):
            content.learn(gpu_found=False)
        elif (found := _LAYERS.search(text)) is not None:
            content.learn(layers_offloaded=whole(found[1]), layers_total=whole(found[2]))
        elif "buffer size" in text:
            return self._buffer(text)
        elif (found := _KV_TYPES.search(text)) is not None:
            content.learn(kv_type_k=found[1], kv_type_v=found[2])
        elif (found := _THREADS.search(text)) is not None:
            content.learn(threads=whole(found[1]), threads_hw=whole(found[2]))
        elif (found := _BACKEND.search(text)) is not None:
            self._backends.add(found[1])
        elif (found := _KV_LAYER.search(text)) is not None:
            content.learn(kv_cache_on_cpu=found[1] == "CPU" or None)
        elif (found := _OUTCOME.search(text) or _SETTING.search(text)) is not None:
            self._setting(found[1], found[2])
        else:
            return False
        return True

    def close(self) -> None:
        """Say what the whole load shows."""
        if self._backends and all(name.upper() == "CPU" for name in self._backends):
            if not self._devices:
                self._log.content.learn(backend="cpu")
        elif self._devices:
            self._log.content.learn(devices=len(self._devices))

    def _setting(self, name: str, value: str) -> None:
        if name in ("flash_attn", "Flash Attention"):
            self._log.content.learn(flash_attn=_ON.get(value))
        elif name.endswith("splits"):
            self._log.content.learn(graph_splits=whole(value))
        else:
            self._log.content.learn(**{name: whole(value)})

    def _buffer(self, text: str) -> bool:
        if (found := _BUFFER.search(text)) is not None:
            self._kv_buffer(found[1], number(found[2]) or 0.0)
        elif (found := _MODEL_BUFFER.search(text)) is not None:
            self._model_buffer(found[1])
        return found is not None

    def _kv_buffer(self, device: str, mib: float) -> None:
        if device in _HOST and mib > 0:
            self._log.content.learn(kv_cache_on_cpu=True)

    def _model_buffer(self, device: str) -> None:
        kind = device.rstrip("0123456789")
        if kind in _BACKENDS and device not in _HOST:
            self._devices.add(device)
            self._log.content.learn(backend=_BACKENDS[kind])


READER = LlamaLoad
