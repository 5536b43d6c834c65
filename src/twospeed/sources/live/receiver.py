"""The receive step: bytes of one socket read and the moment they came.

The only place that knows where an arrival stamp comes from.
"""

from __future__ import annotations

import socket
from typing import Literal, Protocol

from twospeed.sources.live.clock import Clock

READ_BYTES = 64 * 1024


class Receiver(Protocol):
    """One socket read with its stamp."""

    clock: Literal["user", "kernel"]

    def receive(self, sock: socket.socket) -> tuple[bytes, int]:
        """Read once; the stamp is in nanoseconds of the clock that also starts requests."""
        ...


class UserReceiver:
    """Stamps right after the socket call, before anything is parsed."""

    clock: Literal["user", "kernel"] = "user"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def receive(self, sock: socket.socket) -> tuple[bytes, int]:
        """Read once and stamp.

        Raises:
            BlockingIOError: nothing is there yet.
            OSError: the connection failed.
        """
        data = sock.recv(READ_BYTES)
        return data, self._clock.now_ns()
