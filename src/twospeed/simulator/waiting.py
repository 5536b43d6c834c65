"""Waits for sockets and deadlines more finely than a selector alone can.

epoll counts in milliseconds and wakes late. `select` on epoll's own descriptor counts in
microseconds; the rest is spun away, so that a deadline is met and never anticipated.
"""

from __future__ import annotations

import select
import selectors
import socket
from time import monotonic_ns

SPIN_NS = 200_000
"""Longest spin before a deadline, and how much earlier the wait is meant to end."""
LOOK_NS = 1_000_000
"""Sockets are looked at this often even when deadlines leave no time to wait."""
_SELECTABLE = 1024
"""`select` takes only descriptors below this."""


class Waiter:
    """Sockets with something to do."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        number = getattr(self._selector, "fileno", lambda: _SELECTABLE)()
        self._number: int | None = number if number < _SELECTABLE else None
        self._looked_ns = 0

    def watch(self, sock: socket.socket, owner: object) -> None:
        """Tell `owner` when a socket has something to read."""
        self._selector.register(sock, selectors.EVENT_READ, owner)

    def watch_writing(self, sock: socket.socket, owner: object, *, on: bool) -> None:
        """Also tell when it can take more, or no longer."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if on else 0)
        self._selector.modify(sock, events, owner)

    def forget(self, sock: socket.socket) -> None:
        """Watch a socket no longer."""
        self._selector.unregister(sock)

    def close(self) -> None:
        """Watch nothing any longer."""
        self._selector.close()

    def wait(self, deadline_ns: int | None, longest_s: float) -> list[tuple[object, bool, bool]]:
        """Wait until sockets have something to do or a deadline has come.

        Args:
            deadline_ns: monotonic; None when only sockets matter.
            longest_s: return after so long in any case.

        Returns:
            Owner, whether it can read and whether it can write, for each ready socket. When it
            is empty and there was a deadline within reach, that has come.
        """
        now_ns = monotonic_ns()
        left_ns = round(1e9 * longest_s) if deadline_ns is None else deadline_ns - now_ns
        left_ns = min(left_ns, round(1e9 * longest_s))
        if left_ns > SPIN_NS or now_ns - self._looked_ns > LOOK_NS:
            ready = self._look(max(left_ns - SPIN_NS, 0) / 1e9)
            if ready:
                return ready
        if deadline_ns is not None and deadline_ns - monotonic_ns() <= SPIN_NS:
            while monotonic_ns() < deadline_ns:
                pass
        return []

    def _look(self, seconds: float) -> list[tuple[object, bool, bool]]:
        if self._number is not None:
            # An interrupted or early wait is harmless: the caller asks again.
            found = select.select([self._number], [], [], seconds)[0]
            seconds = 0.0
            self._looked_ns = monotonic_ns()
            if not found:
                return []
        keys = self._selector.select(seconds)
        self._looked_ns = monotonic_ns()
        return [
            (key.data, bool(events & selectors.EVENT_READ), bool(events & selectors.EVENT_WRITE))
            for key, events in keys
        ]
