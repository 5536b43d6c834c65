"""The bytes of a GGUF file in, its metadata and tensor table out; nothing is interpreted here.

Nothing in the file is believed before it is checked against the file's size: counts, lengths and
offsets come from a stranger. Arrays of text (the vocabulary) are stepped over, never built, which
takes a 49,152-token vocabulary from 2.1 s in the `gguf` package to well under 0.1 s and spares its
requests, tqdm and pyyaml.

Source: GGUF specification, ggml/docs/gguf.md (versions 2 and 3).
"""

from __future__ import annotations

import io
import math
import os
import stat
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec import Struct

from twospeed.limits.ggml_types import TENSOR_TYPES
from twospeed.records.errors import InputError

Scalar = int | float | bool | str
Value = Scalar | tuple[int | float | bool, ...]

MAGIC = b"GGUF"
READABLE_VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32

# Far above any real model (the largest have some 2,000 tensors and 1,000,000 vocabulary entries);
# a header beyond them is an attack or an accident.
MOST_METADATA = 1 << 16
MOST_TENSORS = 1 << 17
MOST_DIMENSIONS = 8
LONGEST_NAME_BYTES = 1 << 16
LONGEST_KEPT_TEXT_BYTES = 1 << 10
LONGEST_KEPT_ARRAY = 1 << 12
DEEPEST_ARRAY = 4
MOST_ARRAY_STEPS = 1 << 22

_TEXT = 8
_ARRAY = 9
_NUMBERS = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<?"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class Tensor(Struct, frozen=True, kw_only=True):
    """One row of the tensor table."""

    name: str
    dimensions: tuple[int, ...]
    type_id: int
    weights: int
    size_bytes: int


class GgufFile(Struct, frozen=True, kw_only=True):
    """Metadata and tensor table of one file; long texts and arrays are left out."""

    file_bytes: int
    metadata: dict[str, Value]
    tensors: tuple[Tensor, ...]


def read_gguf(path: Path) -> GgufFile:
    """What the header of one GGUF file says, every size checked against the file.

    Args:
        path: a single file; parts of a split model are read one by one.

    Raises:
        InputError: the file is missing, is not GGUF, is big-endian, cut or inconsistent. Download
            it again or name another file.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would block, a device might act
            raise InputError(f"Cannot read {path}: it is not a regular file.")
        with open(path, "rb", buffering=1 << 18, opener=_without_waiting) as file:
            return _Reader(file, path).whole()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except ValueError as error:  # the path may come from a server: a zero byte, half a character
        raise InputError(f"Cannot read {str(path)!r}: no file can have that name.") from error


def _without_waiting(path: str, flags: int) -> int:
    """Open without waiting for a writer, should a pipe have taken the place of the file."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class _Row(NamedTuple):
    """A tensor as the table lists it."""

    name: str
    dimensions: tuple[int, ...]
    type_id: int
    offset: int


class _Reader:
    """A cursor that refuses to leave the file."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._size = file.seek(0, io.SEEK_END)
        self._array_steps = 0
        file.seek(0)

    def whole(self) -> GgufFile:
        self._check_version()
        tensor_count = self._count(MOST_TENSORS, 24, "tensors")
        metadata_count = self._count(MOST_METADATA, 13, "metadata entries")
        metadata = dict(self._entry() for _ in range(metadata_count))
        kept = {key: value for key, value in metadata.items() if value is not None}
        rows = [self._tensor_row() for _ in range(tensor_count)]
        tensors = self._sized(rows, self._data_start(kept))
        return GgufFile(file_bytes=self._size, metadata=kept, tensors=tensors)

    def _check_version(self) -> None:
        magic = self._take(4)
        if magic != MAGIC:
            raise self._broken("does not begin with GGUF", "Name a .gguf model file.")
        version = self._number(_U32)
        if version in READABLE_VERSIONS:
            return
        if int.from_bytes(version.to_bytes(4, "little"), "big") in READABLE_VERSIONS:
            raise self._broken("is a big-endian GGUF", "Convert it to little-endian first.")
        raise self._broken(f"has GGUF version {version}", "Versions 2 and 3 can be read.")

    def _entry(self) -> tuple[str, Value | None]:
        return self._name(), self._value(self._number(_U32))

    def _value(self, type_id: int) -> Value | None:
        """One metadata value, or None when it is too long to be of use here."""
        if type_id in _NUMBERS:
            number: int | float | bool = _NUMBERS[type_id].unpack(
                self._take(_NUMBERS[type_id].size)
            )[0]
            return number
        if type_id == _TEXT:
            return self._text()
        if type_id == _ARRAY:
            return self._array(1)
        raise self._broken(f"has a metadata value of unknown type {type_id}")

    def _text(self) -> str | None:
        length = self._number(_U64)
        if length > LONGEST_KEPT_TEXT_BYTES:
            self._skip(length)
            return None
        return self._take(length).decode("utf-8", "replace")

    def _array(self, depth: int) -> tuple[int | float | bool, ...] | None:
        """A short array of numbers; anything else is stepped over."""
        if depth > DEEPEST_ARRAY:
            raise self._broken(f"nests arrays more than {DEEPEST_ARRAY} deep")
        type_id = self._number(_U32)
        length = self._number(_U64)
        if type_id in _NUMBERS:
            return self._number_array(_NUMBERS[type_id], length)
        if type_id not in (_TEXT, _ARRAY):
            raise self._broken(f"has an array of unknown type {type_id}")
        self._array_steps += length
        if length * 8 > self._left() or self._array_steps > MOST_ARRAY_STEPS:
            raise self._broken(f"claims an array of {length} entries")
        for _ in range(length):
            if type_id == _TEXT:
                self._skip(self._number(_U64))
            else:
                self._array(depth + 1)
        return None

    def _number_array(
        self, layout: struct.Struct, length: int
    ) -> tuple[int | float | bool, ...] | None:
        if length > LONGEST_KEPT_ARRAY:
            self._skip(length * layout.size)
            return None
        data = self._take(length * layout.size)
        return tuple(values[0] for values in layout.iter_unpack(data))

    def _tensor_row(self) -> _Row:
        name = self._name()
        rank = self._number(_U32)
        if rank > MOST_DIMENSIONS:
            raise self._broken(f"gives tensor {name!r} {rank} dimensions")
        dimensions = tuple(self._number(_U64) for _ in range(rank))
        return _Row(name, dimensions, self._number(_U32), self._number(_U64))

    def _data_start(self, metadata: dict[str, Value]) -> int:
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
            raise self._broken(f"has an impossible alignment ({alignment!r})")
        return -(-self._file.tell() // alignment) * alignment

    def _sized(self, rows: list[_Row], data_start: int) -> tuple[Tensor, ...]:
        """The tensor table with sizes, each tensor inside the file."""
        data_bytes = self._size - data_start
        offsets = sorted({row.offset for row in rows})
        stops = dict(zip(offsets, [*offsets[1:], data_bytes], strict=False))
        tensors = tuple(self._tensor(row, stops[row.offset], data_bytes) for row in rows)
        if sum(tensor.size_bytes for tensor in tensors) > data_bytes:
            raise self._broken("has tensors that overlap")
        return tensors

    def _tensor(self, row: _Row, stop: int, data_bytes: int) -> Tensor:
        """One tensor whose size comes from its type, or from where the next one begins."""
        weights = math.prod(row.dimensions)
        size = tensor_bytes(row.type_id, weights)
        if size is None:
            size = max(stop - row.offset, 0)
        if row.offset + size > data_bytes:
            raise self._broken(
                f"ends before its tensor {row.name!r} does",
                "The download is incomplete: fetch it again.",
            )
        if weights > 8 * size:
            raise self._broken(f"gives tensor {row.name!r} less than one bit per weight")
        return Tensor(
            name=row.name,
            dimensions=row.dimensions,
            type_id=row.type_id,
            weights=weights,
            size_bytes=size,
        )

    def _name(self) -> str:
        length = self._number(_U64)
        if length > LONGEST_NAME_BYTES:
            raise self._broken(f"has a name of {length} bytes")
        return self._take(length).decode("utf-8", "replace")

    def _count(self, most: int, least_bytes_each: int, what: str) -> int:
        count = self._number(_U64)
        if count > most or count * least_bytes_each > self._left():
            raise self._broken(f"claims {count} {what}")
        return count

    def _number(self, layout: struct.Struct) -> int:
        number: int = layout.unpack(self._take(layout.size))[0]
        return number

    def _take(self, length: int) -> bytes:
        data = self._file.read(length) if length <= self._left() else b""
        if len(data) != length:
            raise self._cut()
        return data

    def _skip(self, length: int) -> None:
        if length > self._left():
            raise self._cut()
        self._file.seek(length, io.SEEK_CUR)

    def _left(self) -> int:
        return self._size - self._file.tell()

    def _cut(self) -> InputError:
        return self._broken("ends inside its header", "The download is incomplete: fetch it again.")

    def _broken(self, what: str, hint: str = "") -> InputError:
        return InputError(f"{self._path} {what}.", hint=hint)


def tensor_bytes(type_id: int, weights: int) -> int | None:
    """Bytes of a tensor of this type; None for a type that is not in the table."""
    kind = TENSOR_TYPES.get(type_id)
    if kind is None:
        return None
    return -(-weights // kind.block_weights) * kind.block_bytes
