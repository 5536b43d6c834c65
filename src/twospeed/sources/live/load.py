"""Many requests to one endpoint, so many at once, each stream timed as if it were alone.

One process and one thread read all streams. Prompts are written and connections opened before the
first clock starts; while streams arrive, nothing else goes over the wire.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from twospeed.records.errors import UsageError
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.sources.live.channel import Channel
from twospeed.sources.live.endpoint import Endpoint
from twospeed.sources.live.garbage import collection_held
from twospeed.sources.live.prepared import Prepared
from twospeed.sources.live.time_limits import Limits

SPREAD_S = 1.0
OPENED_AT_ONCE = 16
SPARE_FILES = 64
"""Files that the process has open besides its connections."""
FEWEST_FAILURES = 10
"""So many in a row, and at least one on each connection, mean that the rest will fail too."""

Start = Literal["together", "spread"]
OnRecord = Callable[[RequestRecord], None]
OnPrepared = Callable[[int], None]
"""Told how many requests are ready to be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is sent."""

    probe: Probe
    requests: int = 1
    concurrency: int = 1
    """Connections, each with one request at a time."""
    start: Start = "together"
    """The first requests at once, or spread evenly over one second."""
    prompt: str | None = None
    """The user's own text for all requests; None for a written one each."""
    stream: bool = True


async def run_load(
    endpoint: Endpoint,
    load: Load,
    on_record: OnRecord,
    on_prepared: OnPrepared | None = None,
) -> bool:
    """Send all requests; a failed one is a record with its error.

    Args:
        endpoint: an opened endpoint.
        load: what to send.
        on_record: told of each record as it is complete; must return at once.
        on_prepared: told of the progress before anything is sent.

    Returns:
        False when so many requests failed in a row that the rest was not sent.

    Raises:
        UsageError: the system allows too few connections at once.
    """
    allow_files(load.concurrency + SPARE_FILES)
    requests: deque[Prepared] = deque()
    for number in range(1, load.requests + 1):
        requests.append(await endpoint.prepare(load.probe, prompt=load.prompt, stream=load.stream))
        if on_prepared is not None:
            on_prepared(number)
    channels = [endpoint.take_channel() for _ in range(min(load.concurrency, load.requests))]
    try:
        await open_all(channels, requests[0].limits)
        return await _Round(endpoint, load, requests, on_record).run(channels)
    finally:
        for channel in channels:
            endpoint.give_back(channel)


class _Round:
    """The requests under way: each lane sends the next one as soon as its last is recorded."""

    def __init__(
        self, endpoint: Endpoint, load: Load, requests: deque[Prepared], on_record: OnRecord
    ) -> None:
        self._endpoint = endpoint
        self._load = load
        self._waiting = requests
        self._sent = 0
        self._on_record = on_record
        self._failed_in_a_row = 0
        self._most_failures = max(FEWEST_FAILURES, load.concurrency)

    async def run(self, channels: list[Channel]) -> bool:
        apart_s = SPREAD_S / len(channels) if self._load.start == "spread" else 0.0
        with collection_held():
            lanes = [
                asyncio.create_task(self._lane(channel, index * apart_s))
                for index, channel in enumerate(channels)
            ]
            try:
                await asyncio.gather(*lanes)
            finally:
                for lane in lanes:
                    lane.cancel()
                await asyncio.gather(*lanes, return_exceptions=True)
        return not self._hopeless

    @property
    def _hopeless(self) -> bool:
        return self._failed_in_a_row >= self._most_failures

    async def _lane(self, channel: Channel, delay_s: float) -> None:
        if delay_s:
            await asyncio.sleep(delay_s)
        while self._waiting:
            self._sent += 1
            record = await self._recorded(self._waiting.popleft(), self._sent, channel)
            self._failed_in_a_row = self._failed_in_a_row + 1 if record.error else 0
            self._on_record(record)
            if self._hopeless:
                return

    async def _recorded(self, request: Prepared, number: int, channel: Channel) -> RequestRecord:
        if self._load.concurrency == 1:
            return await self._endpoint.send_alone(request, number, channel)
        return await self._endpoint.send(request, number, channel)


async def open_all(channels: list[Channel], limits: Limits) -> None:
    """Open all connections, a few at a time: servers queue only few that they did not accept yet.

    Args:
        channels: any.
        limits: for how long to try.
    """
    gate = asyncio.Semaphore(OPENED_AT_ONCE)

    async def opened(channel: Channel) -> None:
        async with gate:
            await channel.open(limits)

    await asyncio.gather(*map(opened, channels))


def allow_files(wanted: int) -> None:
    """Have the system allow so many open files to this process.

    Raises:
        UsageError: its administrator does not.
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  (not on Windows)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if wanted <= soft or soft == resource.RLIM_INFINITY:
        return
    if hard != resource.RLIM_INFINITY and wanted > hard:
        raise UsageError(
            f"This system allows a process {hard} open files, too few for so many connections.",
            hint="Use a smaller --concurrency, or raise the limit (ulimit -Hn).",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
