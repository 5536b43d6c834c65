"""A writer of small GGUF files, independent of the reader under test."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

SCALARS = {
    "u8": (0, "<B"),
    "u32": (4, "<I"),
    "f32": (6, "<f"),
    "bool": (7, "<?"),
    "u64": (10, "<Q"),
}


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, kind: str, value: object) -> bytes:
    head = text(key)
    if kind == "str":
        return head + struct.pack("<I", 8) + text(value)
    if kind == "strs":
        body = b"".join(text(each) for each in value)
        return head + struct.pack("<IIQ", 9, 8, len(value)) + body
    if kind.endswith("[]"):
        type_id, layout = SCALARS[kind[:-2]]
        body = b"".join(struct.pack(layout, each) for each in value)
        return head + struct.pack("<IIQ", 9, type_id, len(value)) + body
    if kind == "raw":
        return head + value
    type_id, layout = SCALARS[kind]
    return head + struct.pack("<I", type_id) + struct.pack(layout, value)


class GgufWriter:
    """Collects entries and tensors and writes them as one file."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.tensors: list[tuple[str, tuple[int, ...], int, int]] = []
        self.version = 3
        self.metadata_count: int | None = None
        self.tensor_count: int | None = None

    def add(self, key: str, kind: str, value: object) -> None:
        self.entries.append(entry(key, kind, value))

    def tensor(self, name: str, dimensions: tuple[int, ...], type_id: int, size: int) -> None:
        self.tensors.append((name, dimensions, type_id, size))

    def header(self) -> bytes:
        rows, offset = b"", 0
        for name, dimensions, type_id, size in self.tensors:
            rows += text(name) + struct.pack("<I", len(dimensions))
            rows += b"".join(struct.pack("<Q", each) for each in dimensions)
            rows += struct.pack("<IQ", type_id, offset)
            offset += -(-size // 32) * 32
        counts = (
            len(self.tensors) if self.tensor_count is None else self.tensor_count,
            len(self.entries) if self.metadata_count is None else self.metadata_count,
        )
        head = b"GGUF" + struct.pack("<I", self.version) + struct.pack("<QQ", *counts)
        return head + b"".join(self.entries) + rows

    def write(self, path: Path) -> Path:
        data = self.header()
        data += b"\0" * (-len(data) % 32)
        data += b"".join(b"\0" * (-(-size // 32) * 32) for *_, size in self.tensors)
        path.write_bytes(data)
        return path


@pytest.fixture
def writer() -> GgufWriter:
    return GgufWriter()


@pytest.fixture
def llama(writer: GgufWriter) -> GgufWriter:
    """Metadata of a 2-layer model: embedding 64, 4 query heads, 2 key-value heads of 16."""
    writer.add("general.architecture", "str", "llama")
    writer.add("llama.block_count", "u32", 2)
    writer.add("llama.embedding_length", "u32", 64)
    writer.add("llama.attention.head_count", "u32", 4)
    writer.add("llama.attention.head_count_kv", "u32", 2)
    return writer
