"""The one monotonic clock that every stamp of a live measurement comes from."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Something that tells monotonic nanoseconds."""

    def now_ns(self) -> int:
        """Tell the present moment in nanoseconds of an arbitrary but steady origin."""
        ...


class MonotonicClock:
    """The finest monotonic clock of this machine."""

    now_ns = staticmethod(time.perf_counter_ns)
    """Tells the present moment in nanoseconds; the bare function, as every read looks thrice."""
