"""What one decode step reads and one prompt token computes, from the header of a GGUF file.

Source: llama.cpp (llama-arch.cpp for the key names, llama-kv-cache.cpp for the cache layout);
docs/physics.md for which tensors count.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

from twospeed.limits.ggml_types import FILE_TYPES, TENSOR_TYPES
from twospeed.limits.gguf_file import GgufFile, Tensor, Value, read_gguf
from twospeed.records.errors import InputError
from twospeed.records.run import ModelHeader

F16_BYTES = 2
MOST_LAYERS = 1 << 14
MOST_KV_BYTES = 1 << 30
LARGEST_NUMBER = 1 << 24

EMBEDDING = "token_embd.weight"
OUTPUT = "output.weight"
# Tables of which a token reads one row only.
LOOKUPS = {"per_layer_token_embd.weight", "position_embd.weight", "token_types.weight"}

_PART = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
_EXPERT = re.compile(r"_exps\.|\.ffn_(?:gate|up|down)\.\d+\.")
_LAYER = re.compile(r"blk\.(\d+)\.")


def read_header(path: Path) -> ModelHeader:
    """The sizes that bound both phases, from a GGUF file or all present parts of a split one.

    Bytes per decode step are exact tensor bytes without the token embedding table (counted when it
    is tied to the output), with routed experts scaled by used / total. What depends on the whole
    tensor table is None when parts are missing.

    Args:
        path: the file, or any part named `…-00001-of-0000N.gguf`.

    Raises:
        InputError: missing, not GGUF, big-endian, cut or inconsistent; fetch the file again.
    """
    names, expected = _parts(path)
    parts = [read_gguf(name) for name in names]
    metadata: dict[str, Value] = {}
    for part in reversed(parts):
        metadata |= part.metadata
    return header_of(parts, metadata, complete=len(parts) == expected)


def _parts(path: Path) -> tuple[list[Path], int]:
    """The files that make up the model and how many there should be."""
    match = _PART.fullmatch(path.name)
    if match is None:
        return [path], 1
    count = int(match["count"])
    wanted = [
        path.with_name(f"{match['stem']}-{number:05}-of-{count:05}.gguf")
        for number in range(1, count + 1)
    ]
    present = [name for name in wanted if name.exists()]
    if not present:
        raise InputError(f"Cannot read {path}: no such file.")
    return present, count


def header_of(
    parts: list[GgufFile], metadata: dict[str, Value], *, complete: bool = True
) -> ModelHeader:
    """The model header from metadata and tensor tables that were already read."""
    model = _Model(metadata, [tensor for part in parts for tensor in part.tensors])
    known = complete and bool(model.tensors)
    return ModelHeader(
        file_bytes=sum(part.file_bytes for part in parts),
        architecture=model.architecture,
        parameters=sum(t.weights for t in model.tensors) if known else None,
        layers=model.layers,
        read_bytes_per_token=model.read_bytes() if known else None,
        active_parameters=model.prompt_weights() if known else None,
        kv_bytes_per_token_f16=model.kv_bytes_f16(),
        attention_width=model.attention_width(),
        sliding_window=model.positive("attention.sliding_window"),
        quantization=model.quantization(),
    )


class _Model:
    """Metadata and tensors of one model, seen as bytes and operations."""

    def __init__(self, metadata: dict[str, Value], tensors: list[Tensor]) -> None:
        self.metadata = metadata
        self.tensors = tensors
        architecture = metadata.get("general.architecture")
        self.architecture = architecture if isinstance(architecture, str) else None
        self.layers = self.positive("block_count")

    def key(self, suffix: str) -> Value | None:
        return self.metadata.get(f"{self.architecture}.{suffix}")

    def positive(self, suffix: str) -> int | None:
        value = self.key(suffix)
        return value if isinstance(value, int) and 0 < value < LARGEST_NUMBER else None

    def read_bytes(self) -> int | None:
        """Tensor bytes of one decode step; None when the active experts are unknown."""
        tied = not any(tensor.name == OUTPUT for tensor in self.tensors)
        total = Fraction(0)
        for tensor in self.tensors:
            share = self._share(tensor)
            if share is None:
                return None
            if tensor.name != EMBEDDING or tied:
                total += share * tensor.size_bytes
        return round(total)

    def prompt_weights(self) -> int | None:
        """Matrix weights that every prompt token passes through.

        The output matrix is left out: only the last prompt token needs logits.
        """
        total = Fraction(0)
        for tensor in self.tensors:
            share = self._share(tensor)
            if share is None:
                return None
            if len(tensor.dimensions) > 1 and tensor.name not in (EMBEDDING, OUTPUT):
                total += share * tensor.weights
        return round(total)

    def _share(self, tensor: Tensor) -> Fraction | None:
        """The part of a tensor that one token uses; None when the experts are not told."""
        layer = _LAYER.match(tensor.name)
        if tensor.name in LOOKUPS or (layer and int(layer[1]) >= self._layers_used()):
            return Fraction(0)
        if not _EXPERT.search(tensor.name):
            return Fraction(1)
        used, total = self.positive("expert_used_count"), self.positive("expert_count")
        if used is None or total is None or used > total:
            return None
        return Fraction(used, total)

    def _layers_used(self) -> int:
        """Layers without the extra ones that only predict further tokens (MTP)."""
        return (self.layers or MOST_LAYERS) - (self.positive("nextn_predict_layers") or 0)

    def kv_bytes_f16(self) -> int | None:
        """Cache bytes of one token with 16-bit keys and values."""
        if self.layers is None or self.layers > MOST_LAYERS:
            return None
        latent = self._latent_width()
        if latent is not None:
            return self._layers_used() * latent * F16_BYTES
        heads, width = self._kv_heads(), self._head_widths()
        if heads is None or width is None:
            return None
        total = sum(heads[: self._layers_used()]) * sum(width) * F16_BYTES
        return total if total < MOST_KV_BYTES else None

    def _latent_width(self) -> int | None:
        """Values per layer of a compressed (MLA) cache, which holds no separate values.

        Older conversions of such models carry no key_length_mla and are cached head by head.
        """
        rank = self.positive("attention.kv_lora_rank")
        rope = self.positive("rope.dimension_count")
        if rank is None or rope is None:
            return None
        compressed = self.positive("attention.key_length_mla") is not None
        return rank + rope if compressed or self.key("attention.head_count_kv") == 1 else None

    def _kv_heads(self) -> list[int] | None:
        """Key-value heads of each layer; zero in recurrent layers."""
        heads = self.key("attention.head_count_kv")
        if heads is None:
            heads = self.key("attention.head_count")
        return _per_layer(heads, self.layers or 0)

    def _query_heads(self) -> int | None:
        heads = _per_layer(self.key("attention.head_count"), self.layers or 1)
        return max(heads, default=0) or None if heads else None

    def _head_widths(self) -> tuple[int, int] | None:
        """Width of a key and of a value head."""
        heads, embedding = self._query_heads(), self.positive("embedding_length")
        default = embedding // heads if heads and embedding else None
        key = self.positive("attention.key_length") or default
        value = self.positive("attention.value_length") or default
        return (key, value) if key and value else None

    def attention_width(self) -> int | None:
        """Query heads times key width."""
        heads, widths = self._query_heads(), self._head_widths()
        return heads * widths[0] if heads and widths else None

    def quantization(self) -> str | None:
        """The file's own name for it, else the type that holds most bytes."""
        file_type = self.metadata.get("general.file_type")
        if isinstance(file_type, int) and file_type in FILE_TYPES:
            return FILE_TYPES[file_type]
        held: Counter[int] = Counter()
        for tensor in self.tensors:
            held[tensor.type_id] += tensor.size_bytes
        if not held:
            return None
        kind = TENSOR_TYPES.get(held.most_common(1)[0][0])
        return kind.name if kind else None


def _per_layer(value: Value | None, layers: int) -> list[int] | None:
    """A number that is given once or per layer, as one per layer."""
    if isinstance(value, tuple):
        numbers = [each for each in value if isinstance(each, int) and 0 <= each < LARGEST_NUMBER]
        return numbers if len(numbers) == len(value) >= layers else None
    if isinstance(value, int) and 0 < value < LARGEST_NUMBER and layers <= MOST_LAYERS:
        return [value] * layers
    return None
