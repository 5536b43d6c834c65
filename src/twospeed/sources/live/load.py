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
MOST_PROMPT_BYTES = 512 * 2**20
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


class ReadyLoad:
    """Requests written and connections opened: nothing is left to do but to send.

    Each lane sends the next request as soon as its last one is recorded.
    """

    def __init__(
        self, endpoint: Endpoint, load: Load, requests: deque[Prepared], channels: list[Channel]
    ) -> None:
        self._endpoint = endpoint
        self._load = load
        self._waiting = requests
        self._channels = channels
        self._sent = 0
        self._failed_in_a_row = 0
        self._most_failures = max(FEWEST_FAILURES, len(channels))

    async def run(self, on_record: OnRecord) -> bool:
        """Send all requests; a failed one is a record with its error.

        Args:
            on_record: told of each record as it is complete; must return at once.

        Returns:
            False when so many requests failed in a row that the rest was not sent.
        """
        apart_s = SPREAD_S / len(self._channels) if self._load.start == "spread" else 0.0
        with collection_held():
            lanes: list[asyncio.Task[None]] = []
            try:
                for index, channel in enumerate(self._channels):
                    sends = self._lane(channel, index * apart_s, on_record)
                    lanes.append(asyncio.create_task(sends))
                    await asyncio.sleep(0)  # between any two sends, what has arrived is read
                await asyncio.gather(*lanes)
            finally:
                for lane in lanes:
                    lane.cancel()
                await asyncio.gather(*lanes, return_exceptions=True)
                for channel in self._channels:
                    self._endpoint.give_back(channel)
        return not self._waiting

    async def _lane(self, channel: Channel, delay_s: float, on_record: OnRecord) -> None:
        if delay_s:
            await asyncio.sleep(delay_s)
        while self._waiting and self._failed_in_a_row < self._most_failures:
            self._sent += 1
            record = await self._recorded(self._waiting.popleft(), self._sent, channel)
            self._failed_in_a_row = self._failed_in_a_row + 1 if record.error else 0
            on_record(record)

    async def _recorded(self, request: Prepared, number: int, channel: Channel) -> RequestRecord:
        if len(self._channels) == 1:
            return await self._endpoint.sender.send_alone(request, number, channel)
        return await self._endpoint.sender.send(request, number, channel)


async def ready_load(
    endpoint: Endpoint, load: Load, on_prepared: OnPrepared | None = None
) -> ReadyLoad:
    """Write all prompts and open all connections.

    Args:
        endpoint: an opened endpoint.
        load: what to send.
        on_prepared: told how many requests are ready.

    Raises:
        UsageError: the system allows too few connections, or the prompts are too long to hold.
    """
    allow_files(load.concurrency + SPARE_FILES)
    requests = await _written(endpoint, load, on_prepared)
    channels = [endpoint.take_channel() for _ in range(min(load.concurrency, load.requests))]
    await open_all(channels, requests[0].limits)
    return ReadyLoad(endpoint, load, requests, channels)


async def _written(
    endpoint: Endpoint, load: Load, on_prepared: OnPrepared | None
) -> deque[Prepared]:
    if load.prompt is not None:
        request = await endpoint.prepare(load.probe, prompt=load.prompt, stream=load.stream)
        return deque([request] * load.requests)
    requests: deque[Prepared] = deque()
    held_bytes = 0
    while len(requests) < load.requests:
        requests.append(await endpoint.prepare(load.probe, stream=load.stream))
        held_bytes += len(requests[-1].request)
        if held_bytes > MOST_PROMPT_BYTES:
            raise UsageError(
                f"{load.requests:,} prompts of {load.probe.prompt_tokens:,} tokens need more than"
                f" {MOST_PROMPT_BYTES // 2**20} MiB.",
                hint="Use fewer --requests or a smaller --prompt-tokens.",
            )
        if on_prepared is not None:
            on_prepared(len(requests))
    return requests


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
