"""The receive step: bytes of one socket read and the moment they came.

The only place that knows where an arrival stamp comes from. On Linux it is the kernel's own: the
network stack stamps each segment as it arrives, so a late read does not move the stamp. Segments
that were merged before the read carry the stamp of the last one.
"""

from __future__ import annotations

import functools
import socket
import struct
import sys
import time
from typing import Literal, Protocol

from twospeed.sources.live.clock import Clock

READ_BYTES = 64 * 1024
SO_TIMESTAMPNS = 35
"""Linux, asm-generic/socket.h; Python's socket module does not name it."""
TIMESPEC = struct.Struct("@ll")
TIMESPEC_BYTES = TIMESPEC.size
SOL_SOCKET = socket.SOL_SOCKET
unpack_timespec = TIMESPEC.unpack_from
CONTROL_BYTES = socket.CMSG_SPACE(TIMESPEC.size) if hasattr(socket, "CMSG_SPACE") else 0
STEP_NS = 200_000
"""A change between the two clocks larger than this, and than any slewing, is a step."""
SLEW_PER_S_NS = 1_000_000
"""Twice what adjtimex may slew (500 ppm)."""
PAIR_NS = 20_000
"""A pair of clock readings further apart than this was interrupted and is taken again."""

StampedBy = Literal["user", "kernel"]


class Receiver(Protocol):
    """One socket read with its stamp."""

    def prepare(self, sock: socket.socket) -> None:
        """Set up a socket before it is connected."""
        ...

    def receive(self, sock: socket.socket) -> tuple[bytes, int, StampedBy]:
        """Read once; the stamp is in nanoseconds of the clock that also starts requests.

        Raises:
            BlockingIOError: nothing is there yet.
            OSError: the connection failed.
        """
        ...


class UserReceiver:
    """Stamps right after the socket call, before anything is parsed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def prepare(self, sock: socket.socket) -> None:
        """Nothing is needed."""

    def receive(self, sock: socket.socket) -> tuple[bytes, int, StampedBy]:
        """Read once and stamp."""
        data = sock.recv(READ_BYTES)
        return data, self._clock.now_ns(), "user"


class WallClock:
    """The realtime clock, in which the kernel stamps."""

    now_ns = staticmethod(time.time_ns)
    """Nanoseconds since 1970, as far as the machine knows; may step."""


class KernelReceiver:
    """Takes the kernel's receive stamp and maps it to the monotonic clock.

    The two clocks are read as a pair at every read. When their difference has stepped since the
    read before, the stamp was made before or after the step: of the two moments it can mean, the
    later one that is not in the future is taken. It is never further off than a stamp of our own.
    """

    def __init__(self, clock: Clock, wall: Clock | None = None) -> None:
        keep_stamping()
        self._now_ns = clock.now_ns
        self._wall_ns = (wall or WallClock()).now_ns
        self._paired_at_ns, self._offset_ns = self._pair()

    def prepare(self, sock: socket.socket) -> None:
        """Have the kernel stamp what this socket receives."""
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def receive(self, sock: socket.socket) -> tuple[bytes, int, StampedBy]:
        """Read once; without a stamp of the kernel, the moment after the read counts."""
        data, control, _, _ = sock.recvmsg(READ_BYTES, CONTROL_BYTES)
        look_ns = self._now_ns
        early_ns, wall_ns, now_ns = look_ns(), self._wall_ns(), look_ns()
        offset_ns = wall_ns - (early_ns + now_ns) // 2
        if now_ns - early_ns >= PAIR_NS:
            now_ns, offset_ns = self._pair()
        before_at_ns, before_ns = self._paired_at_ns, self._offset_ns
        self._paired_at_ns, self._offset_ns = now_ns, offset_ns
        stamp_ns = stamp_of(control)
        if stamp_ns is None:
            return data, now_ns, "user"
        at_ns = stamp_ns - offset_ns
        drift_ns = offset_ns - before_ns
        if not -STEP_NS <= drift_ns <= STEP_NS and abs(drift_ns) > most_ns(now_ns - before_at_ns):
            possible = (at_ns, stamp_ns - before_ns)
            at_ns = max((at for at in possible if at <= now_ns), default=now_ns)
        return data, min(at_ns, now_ns), "kernel"

    def _pair(self) -> tuple[int, int]:
        """The monotonic moment, and how far the wall clock is ahead of it."""
        now_ns, wall_now_ns = self._now_ns, self._wall_ns
        tries_left = 4
        while True:
            before_ns, wall_ns, after_ns = now_ns(), wall_now_ns(), now_ns()
            tries_left -= 1
            if after_ns - before_ns < PAIR_NS or not tries_left:
                return after_ns, wall_ns - (before_ns + after_ns) // 2


@functools.cache
def keep_stamping() -> None:
    """Have the kernel stamp packets from now on, until this process ends.

    It begins only a moment after the first socket asks for it, and ends with the last one: a
    request over the first connection would go without.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.detach()


def most_ns(past_ns: int) -> int:
    """How far the clocks may drift apart in so many nanoseconds without a step."""
    return STEP_NS + past_ns * SLEW_PER_S_NS // 1_000_000_000


def stamp_of(control: list[tuple[int, int, bytes]]) -> int | None:
    """The kernel's receive stamp in nanoseconds of the wall clock, if the message has one."""
    for level, kind, value in control:
        if kind == SO_TIMESTAMPNS and level == SOL_SOCKET and len(value) >= TIMESPEC_BYTES:
            seconds, nanoseconds = unpack_timespec(value)
            stamp: int = seconds * 1_000_000_000 + nanoseconds
            return stamp
    return None


def best_receiver(clock: Clock, wanted: StampedBy | None = None) -> Receiver:
    """The receiver with the truest stamps that this system has.

    Args:
        clock: starts requests; the kernel's stamps are mapped to it.
        wanted: "user" for our own stamps also where the kernel's are to be had.
    """
    if wanted == "user" or sys.platform != "linux":
        return UserReceiver(clock)
    return KernelReceiver(clock)
