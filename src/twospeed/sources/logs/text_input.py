"""Texts of any size as blocks of whole lines: files, stdin, packed files, UTF-16."""

from __future__ import annotations

import codecs
import gzip
import importlib
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from twospeed.records.errors import InputError

STDIN = "-"
BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 4 << 20
"""A longer line is cut into pieces: no program writes one about timings."""
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard")
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def opened(where: str) -> BinaryIO:
    """A text, unpacked and as UTF-8.

    Args:
        where: path, or "-" for stdin.

    Raises:
        InputError: it cannot be opened or unpacked.
    """
    if where == STDIN:
        return _unpacked(io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer)), "stdin")
    try:
        return _unpacked(Path(where).open("rb"), where)
    except OSError as error:
        raise InputError(f"Cannot read {where}: {error.strerror or error}.") from error


def _unpacked(file: BinaryIO, where: str) -> BinaryIO:
    head = file.peek(4)[:4] if isinstance(file, io.BufferedReader) else b""
    if head.startswith(_GZIP):
        return io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=file)))
    if head.startswith(_ZSTD):
        return _zstd(file, where)
    encoding = _UTF16.get(head[:2])
    return file if encoding is None else _Recoded(file, encoding)


def _zstd(file: BinaryIO, where: str) -> BinaryIO:
    for name in _ZSTD_MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return cast("BinaryIO", io.BufferedReader(module.open(file, "rb")))
    raise InputError(
        f"{where} is packed with zstd, which this Python cannot unpack.",
        hint=f"Unpack it: zstd -dc {where} | twospeed read -",
    )


class _Recoded(io.RawIOBase, BinaryIO):
    """A UTF-16 text as UTF-8."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder(encoding)(errors="replace").decode

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes; with a size about as many."""
        data = self._file.read(size)
        return self._decode(data, final=not data).encode("utf-8", "replace")


def blocks(file: BinaryIO, where: str) -> Iterator[bytes]:
    """Blocks of whole lines, the last one perhaps without its end.

    Args:
        file: from `opened`.
        where: names it in messages.

    Raises:
        InputError: it cannot be read on.
    """
    rest = b""
    while True:
        try:
            data = file.read(BLOCK_BYTES)
        except (OSError, EOFError, zlib.error) as error:
            if rest:
                yield rest
            raise InputError(f"{where} is damaged or cut: {error}.") from error
        if not data:
            break
        data = rest + data
        end = data.rfind(b"\n") + 1
        if not end and len(data) > LONGEST_LINE_BYTES:
            end = len(data)
        rest = data[end:]
        if end:
            yield data[:end]
    if rest:
        yield rest
