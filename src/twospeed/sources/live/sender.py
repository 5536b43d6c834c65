"""Sends what was prepared, and makes a record of what came back."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from twospeed.records.request_record import RequestRecord
from twospeed.runtimes.runtime import Runtime
from twospeed.sources.live.channel import Access, Channel
from twospeed.sources.live.garbage import collection_held
from twospeed.sources.live.measurement import OnAnswer, now_utc, record_of
from twospeed.sources.live.prepared import Prepared
from twospeed.sources.live.time_limits import Limits
from twospeed.sources.live.transfer import OnText

ASK_S = 2.0
SETTLE_S = 0.1


class Sender:
    """Sends requests to one endpoint, alone or beside others."""

    def __init__(self, access: Access, runtime: Runtime) -> None:
        self._access = access
        self._runtime = runtime
        self._under_way = 0
        self._recording = asyncio.Lock()
        self._shows_activity = True

    async def send_alone(
        self,
        request: Prepared,
        number: int,
        channel: Channel,
        *,
        on_text: OnText | None = None,
        on_answer: OnAnswer | None = None,
    ) -> RequestRecord:
        """Send a request, and ask the server before and after it what else it is doing."""
        before = await self.other_requests(channel)
        record = await self.send(request, number, channel, on_text=on_text, on_answer=on_answer)
        after = None if record.error else await self.other_requests(channel)
        if after:
            # A runtime may show our own request for an instant after its last byte.
            await asyncio.sleep(SETTLE_S)
            after = await self.other_requests(channel)
        seen = [others for others in (before, after) if others is not None]
        return replace(record, other_requests=max(seen, default=None))

    async def send(
        self,
        request: Prepared,
        number: int,
        channel: Channel,
        *,
        on_text: OnText | None = None,
        on_answer: OnAnswer | None = None,
    ) -> RequestRecord:
        """Send a request beside others: nothing but it goes over the wire.

        Args:
            request: from `Endpoint.prepare`.
            number: its number within the run, from 1.
            channel: from `Endpoint.take_channel`; one request at a time.
            on_text: told of every read after text began; must return at once.
            on_answer: told of the text of the answer.
        """
        started_at = now_utc()
        self._under_way += 1
        try:
            with collection_held():
                exchange = await channel.exchange(
                    request.request, request.limits, on_text, request.dialect
                )
        finally:
            self._under_way -= 1
        # Streams that end together are read one after the other, and others go on in between.
        async with self._recording:
            record = record_of(
                exchange,
                number=number,
                probe=request.probe,
                runtime=self._runtime,
                generation=request.generation,
                dialect=request.dialect,
                target=self._access.target,
                started_at=started_at,
                on_answer=on_answer,
            )
        return self._shown(record)

    def _shown(self, record: RequestRecord) -> RequestRecord:
        """The record as it may be kept: an error of the server's may repeat the key."""
        error = record.error
        if error is None:
            return record
        message = self._access.without_secrets(error.message)
        error = replace(error, message=message)
        return replace(record, error=error)

    async def other_requests(self, channel: Channel) -> int | None:
        """Requests inside the server that are not ours; None where it does not show them."""
        question = self._runtime.activity_ask()
        if question is None or not self._shows_activity:
            return None
        answer, _ = await channel.ask(question, Limits.short(ASK_S))
        seen = self._runtime.activity(answer)
        # Told not to ask (llama-server without --slots or --metrics): do not ask again.
        self._shows_activity = seen is not None or answer.status is None
        return None if seen is None else max(0, seen - self._under_way)
