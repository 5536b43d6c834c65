"""An event loop with a short way to the sockets of streams.

asyncio makes a handle of every readable socket, queues it and runs it in a context of its own: for
a token of 300 bytes that is a fifth of all work. Here the callbacks of streams run inside `select`,
and the rest of the loop only wakes when one of them left something to do.
"""

from __future__ import annotations

import asyncio
import select
import selectors
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

MOST_EVENTS = 1024

OnReadable = Callable[[], bool]
"""Called when a socket is readable; True when the loop now has something to do."""


class StreamSelector(selectors.BaseSelector):
    """One epoll for all streams, and behind it the selector of everything else."""

    def __init__(self) -> None:
        self._others = selectors.DefaultSelector()
        self._others_fd = self._others.fileno()
        self._epoll = select.epoll()
        self._epoll.register(self._others_fd, select.EPOLLIN)
        self._streams: dict[int, OnReadable] = {}

    def add(self, fd: int, on_readable: OnReadable) -> None:
        """Call back whenever a stream's socket is readable."""
        self._streams[fd] = on_readable
        self._epoll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        """Call back no more; the socket is still open."""
        if self._streams.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Serve streams until something else is ready, the loop has to run, or time is up."""
        ends_s = None if timeout is None else time.monotonic() + timeout
        left_s = timeout
        while True:
            others = busy = False
            for fd, _ in self._epoll.poll(left_s, MOST_EVENTS):
                on_readable = self._streams.get(fd)
                if on_readable is not None:
                    busy = on_readable() or busy
                else:
                    others = others or fd == self._others_fd
            if others:
                return self._others.select(0)
            if ends_s is not None:
                left_s = max(0.0, ends_s - time.monotonic())
            if busy or left_s == 0.0:
                return []

    def close(self) -> None:
        """Free the epoll and the other selector."""
        self._epoll.close()
        self._others.close()

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: object = None
    ) -> selectors.SelectorKey:
        """Watch anything else."""
        return self._others.register(fileobj, events, data)

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        """Watch it no more."""
        return self._others.unregister(fileobj)

    def modify(
        self, fileobj: FileDescriptorLike, events: int, data: object = None
    ) -> selectors.SelectorKey:
        """Watch it for something else."""
        return self._others.modify(fileobj, events, data)

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        """Everything else that is watched."""
        return self._others.get_map()


_SELECTORS: WeakKeyDictionary[asyncio.AbstractEventLoop, StreamSelector] = WeakKeyDictionary()


def stream_loop() -> asyncio.AbstractEventLoop:
    """A new event loop, with the short way where the system has epoll (Linux)."""
    if not hasattr(select, "epoll"):
        # The default loop of Windows cannot watch a socket of our own.
        return asyncio.SelectorEventLoop()
    selector = StreamSelector()
    loop = asyncio.SelectorEventLoop(selector)
    _SELECTORS[loop] = selector
    return loop


def stream_selector(loop: asyncio.AbstractEventLoop) -> StreamSelector | None:
    """The short way of a loop; None when it was not made by `stream_loop`, or has none."""
    return _SELECTORS.get(loop)
