"""What measuring cost this process, and whether it was held up: a stopwatch that watches itself.

A periodic call notes how late it came. asyncio waits in whole milliseconds, so that up to one of
them is no delay. With the kernel's stamps a late read does no harm until it merges with the next
one, which is marked; with stamps of our own it moves them, so the bound is narrower.
"""

from __future__ import annotations

import asyncio
import sys
import time
from array import array
from dataclasses import dataclass
from pathlib import Path

from twospeed.sources.live.receiver import StampedBy

PERIOD_S = 0.01
MOST_LAG_S: dict[StampedBy, float] = {"user": 0.005, "kernel": 0.05}
MOST_PROCESSOR_FRAC = 0.8
"""Of one processor, which is all that one thread can have: with more, reads queue up."""
SHORTEST_S = 1.0
"""A share of a shorter span says nothing."""

STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnUse:
    """What this process used while it measured."""

    cpu_s: float
    """Processor time, kernel time of its calls included."""
    wall_s: float
    loop_lag_s: float | None
    """Lateness that 99 of 100 periodic calls kept within (the largest of fewer)."""
    peak_bytes: int | None
    """Most memory that the process held since it started; None where the system does not tell."""

    def warnings(self, clock: StampedBy) -> tuple[str, ...]:
        """What makes the numbers untrustworthy, with the bound that was passed.

        Args:
            clock: that stamped the reads.
        """
        said = []
        if self.loop_lag_s is not None and self.loop_lag_s > MOST_LAG_S[clock]:
            said.append(
                f"twospeed itself was held up for {self.loop_lag_s * 1e3:.0f} ms at times (more"
                f" than {MOST_LAG_S[clock] * 1e3:.0f} ms): arrivals may be stamped late or merged."
                " Stop other programs, or measure fewer streams at once."
            )
        share = self.cpu_s / self.wall_s if self.wall_s > SHORTEST_S else 0.0
        if share > MOST_PROCESSOR_FRAC:
            said.append(
                f"twospeed itself needed {share:.0%} of a processor to read the streams (more than"
                f" {MOST_PROCESSOR_FRAC:.0%}): arrivals may be merged. Measure fewer at once."
            )
        return tuple(said)


class SelfCheck:
    """Watches this process from `start` to `stop`, inside a running event loop."""

    def __init__(self) -> None:
        self._late_s = array("d")
        self._timer: asyncio.TimerHandle | None = None
        self._started_s = self._started_cpu_s = 0.0

    def start(self) -> None:
        """Begin to watch."""
        self._started_s, self._started_cpu_s = time.monotonic(), time.process_time()
        self._next(asyncio.get_running_loop())

    def stop(self) -> OwnUse:
        """End the watch and say what it saw."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            self._note_late(timer.when())
        return OwnUse(
            cpu_s=time.process_time() - self._started_cpu_s,
            wall_s=time.monotonic() - self._started_s,
            loop_lag_s=lag_of(self._late_s),
            peak_bytes=peak_bytes(),
        )

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        due_s = loop.time() + PERIOD_S
        self._timer = loop.call_at(due_s, self._note, loop, due_s)

    def _note(self, loop: asyncio.AbstractEventLoop, due_s: float) -> None:
        self._note_late(due_s)
        self._next(loop)

    def _note_late(self, due_s: float) -> None:
        late_s = asyncio.get_running_loop().time() - due_s
        if late_s >= 0:
            self._late_s.append(late_s)


def lag_of(late_s: array[float]) -> float | None:
    """Lateness that 99 of 100 calls kept within; None without any call.

    Args:
        late_s: lateness of each, in seconds.
    """
    ascending = sorted(late_s)
    return (
        ascending[max(0, len(ascending) * 99 // 100 - 1)]
        if len(ascending) > 99
        else max(ascending, default=None)
    )


def peak_bytes(status: Path = STATUS) -> int | None:
    """Most memory that this process ever held; None where the system does not tell.

    Linux tells it of this program alone; what `getrusage` tells begins with the parent's.

    Args:
        status: Linux's file about this process.
    """
    if sys.platform == "win32":
        return None
    try:
        lines = status.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        import resource  # noqa: PLC0415  (not on Windows)

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    found = next((line for line in lines if line.startswith("VmHWM:")), None)
    return None if found is None else int(found.split()[1]) * 1024
