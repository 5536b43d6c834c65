"""When bytes came: the kernel's own stamp of a read, on the clock that plans use.

The kernel stamps in wall-clock time. It is mapped with a pair of readings taken at that moment, so
that a step of the wall clock can only touch a stamp when it falls between arrival and reading;
what is impossible then is discarded.

Source: Linux Documentation/networking/timestamping.rst (SO_TIMESTAMPNS).
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import CLOCK_REALTIME, clock_gettime_ns, monotonic_ns

READ_BYTES = 256 * 1024
# Not named by Python's socket module; the same on every architecture that Linux runs on today
# but PA-RISC and SPARC.
SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@ll")
_ANCILLARY_BYTES = 64
OLDEST_NS = 10_000_000_000
"""A stamp that is older cannot be that of bytes which were waited for."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Bytes of one read and when they came, in monotonic nanoseconds."""

    data: bytes
    read_ns: int
    """Our own clock right after the read."""
    kernel_ns: int | None
    """The kernel's stamp of the last of these bytes."""
    offset_ns: int
    """Wall clock minus monotonic clock at that moment."""

    @property
    def best_ns(self) -> int:
        """The kernel's stamp where there is one."""
        return self.read_ns if self.kernel_ns is None else self.kernel_ns


def stamp_arrivals(listener: socket.socket) -> bool:
    """Ask the kernel to stamp what arrives on every connection of a listening socket.

    Returns:
        Whether it will.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def receive(sock: socket.socket) -> Arrival:
    """Read what is there; no bytes mean that the other side has closed.

    Raises:
        BlockingIOError: nothing is there.
        OSError: the connection is broken.
    """
    ancillary: Sequence[tuple[int, int, bytes]] = ()
    if hasattr(sock, "recvmsg"):
        data, ancillary, _, _ = sock.recvmsg(READ_BYTES, _ANCILLARY_BYTES)
    else:
        data = sock.recv(READ_BYTES)
    read_ns = monotonic_ns()
    offset_ns = clock_gettime_ns(CLOCK_REALTIME) - monotonic_ns()
    stamp_ns = kernel_stamp(ancillary)
    kernel_ns = None if stamp_ns is None else plausible(stamp_ns - offset_ns, read_ns)
    return Arrival(data, read_ns, kernel_ns, offset_ns)


def kernel_stamp(ancillary: Sequence[tuple[int, int, bytes]]) -> int | None:
    """The kernel's stamp among the control messages of a read, in wall-clock nanoseconds."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS) and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            return int(seconds) * 1_000_000_000 + int(nanoseconds)
    return None


def plausible(mapped_ns: int, read_ns: int) -> int | None:
    """A mapped stamp that can be true: before the read, but not long before."""
    return mapped_ns if read_ns - OLDEST_NS < mapped_ns <= read_ns else None
