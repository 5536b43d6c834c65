"""Texts of any size as blocks of whole lines: files, stdin, packed files, UTF-16."""

from __future__ import annotations

import codecs
import gzip
import importlib
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from twospeed.records.errors import InputError

STDIN = "-"
BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 4 << 20
"""A longer line is cut into pieces: no program writes one about timings."""
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_MODULES = ("compression.zstd", "backports.zstd", "zstandard")
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
if TYPE_CHECKING:
    from typing_extensions import Buffer

Read = Callable[[int], bytes]


def opened(where: str) -> BinaryIO:
    """A text, unpacked and as UTF-8; its reading raises OSError where it is damaged.

    Args:
        where: path, or "-" for stdin, which is left open.

    Raises:
        InputError: it cannot be opened or unpacked.
    """
    if where == STDIN:
        if sys.stdin is None:
            raise InputError("Cannot read stdin: it is closed.")
        return _unpacked(_buffered(cast("io.BufferedReader", sys.stdin.buffer).read1), "stdin")
    with ExitStack() as unless_handed_over:
        try:
            file = unless_handed_over.enter_context(Path(where).open("rb"))
            if _is_endless(file):
                raise InputError(f"Cannot read {where}: it is a device, and no text.")
            text = _unpacked(file, where)
        except OSError as error:
            raise InputError(f"Cannot read {where}: {error.strerror or error}.") from error
        unless_handed_over.pop_all()
    return text


def _is_endless(file: BinaryIO) -> bool:
    """Whether it is a device (`/dev/zero`) and no terminal on which somebody types."""
    mode = os.fstat(file.fileno()).st_mode
    return (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not file.isatty()


def head_of(where: str, size: int) -> bytes:
    """The first bytes of a regular file; nothing of stdin, a pipe or a device.

    Raises:
        InputError: it cannot be read.
    """
    if where == STDIN or not Path(where).is_file():
        return b""
    with opened(where) as file:
        try:
            return file.read(size)
        except OSError as error:
            raise InputError(f"{where} is damaged or cut: {error}.") from error


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
        except OSError as error:
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


def _unpacked(file: io.BufferedReader, where: str) -> BinaryIO:
    head = file.peek(4)[:4]
    if head.startswith(_GZIP):
        return _buffered(_careful(gzip.GzipFile(fileobj=file).read, EOFError, zlib.error), file)
    if head.startswith(_ZSTD):
        return _zstd(file, where)
    encoding = _UTF16.get(head[:2])
    return file if encoding is None else _buffered(_recoded(file, encoding), file)


def _zstd(file: BinaryIO, where: str) -> BinaryIO:
    for name in _ZSTD_MODULES:
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        return _buffered(_careful(module.open(file, "rb").read, EOFError, module.ZstdError), file)
    raise InputError(
        f"{where} is packed with zstd, which this Python cannot unpack.",
        hint=f"Unpack it: zstd -dc {where} | twospeed read -",
    )


def _careful(read: Read, *damage: type[Exception]) -> Read:
    """Reads the same, and calls damage an OSError."""

    def read_or_fail(size: int) -> bytes:
        try:
            return read(size)
        except damage as error:
            raise OSError(str(error)) from error

    return read_or_fail


def _recoded(file: BinaryIO, encoding: str) -> Read:
    """Reads a UTF-16 text as UTF-8."""
    decode = codecs.getincrementaldecoder(encoding)(errors="replace").decode

    def read(size: int) -> bytes:
        while True:
            data = file.read(max(size // 2, 1))  # two bytes become at most three
            text = decode(data, final=not data).encode("utf-8", "replace")
            if text or not data:
                return text

    return read


class _Source(io.RawIOBase):
    """What a function reads."""

    def __init__(self, read: Read, file: BinaryIO | None) -> None:
        super().__init__()
        self._read = read
        self._file = file

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """The next bytes."""
        view = memoryview(buffer)
        data = self._read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file below as well."""
        if self._file is not None:
            self._file.close()
        super().close()


def _buffered(read: Read, file: BinaryIO | None = None) -> io.BufferedReader:
    return io.BufferedReader(_Source(read, file), BLOCK_BYTES)
