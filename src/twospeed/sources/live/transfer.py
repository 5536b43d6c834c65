"""One request under way over one socket, every read stamped.

The loop calls back on each readable moment: receive, stamp, feed, look for the end. Nothing is
parsed here but HTTP framing, and no coroutine wakes up before the response is complete. A long body
is read on after the stamps of all sockets that wait, so that its bytes can be let go of.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable

from twospeed.records.errors import EndpointError, ProtocolBroken
from twospeed.sources.live import failures
from twospeed.sources.live.clock import Clock
from twospeed.sources.live.receiver import Receiver, StampedBy
from twospeed.sources.live.stream_loop import StreamSelector, stream_selector
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Limits, Watch
from twospeed.sources.live.tls import Tls
from twospeed.wire.dialects import reading_of
from twospeed.wire.http_response import ResponseReader
from twospeed.wire.response_reading import ResponseReading

HELD_BYTES = 8 * 1024
"""Of a body: with more, the reading advances and lets go of them; a tenth of a millisecond."""

OnText = Callable[[float], None]
"""Told at every read after text began: seconds since the request. Must return at once."""


class Transfer:
    """The state of one request under way."""

    __slots__ = (
        "_advances_at",
        "_clock",
        "_done",
        "_heard",
        "_last_ns",
        "_left_work",
        "_limits",
        "_loop",
        "_now_s",
        "_on_text",
        "_receive",
        "_short_way",
        "_sock",
        "_started_s",
        "_target",
        "_timer",
        "_tls",
        "_watch",
        "ended",
        "reader",
        "reading",
        "sent",
        "sent_ns",
        "stamped_by",
    )

    def __init__(
        self,
        sock: socket.socket,
        target: Target,
        *,
        clock: Clock,
        receiver: Receiver,
        tls: Tls | None,
        limits: Limits,
        on_text: OnText | None = None,
        dialect: str | None = None,
    ) -> None:
        self.reader = ResponseReader()
        self.reading = None if dialect is None else reading_of(dialect, self.reader)
        self.sent_ns: int | None = None
        self.sent = False
        self.ended = False
        self.stamped_by: StampedBy | None = None
        self._receive = receiver.receive
        self._sock = sock
        self._target = target
        self._clock = clock
        self._tls = tls
        self._limits = limits
        self._on_text = on_text
        self._loop = asyncio.get_running_loop()
        self._short_way: StreamSelector | None = stream_selector(self._loop)
        self._now_s = time.monotonic  # the loop's own clock, without a detour
        self._started_s = self._now_s()
        self._watch = Watch(limits, self._started_s)
        self._heard = self._watch.heard
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._last_ns = 0
        self._left_work = False
        # Streams that began together do not all advance at the same moment.
        self._advances_at = HELD_BYTES // 8 * (4 + self._sock.fileno() % 8)

    async def run(self, request: bytes) -> None:
        """Send, then wait for the end of the response.

        Raises:
            EndpointError: why there is no complete response.
        """
        if self._short_way is None:
            self._loop.add_reader(self._sock, self._on_readable)
        else:
            self._short_way.add(self._sock.fileno(), self._on_readable)
        self._look_at_the_time()
        await self._send(request)
        await self._done

    def stop(self) -> None:
        """Leave the loop: no more callbacks."""
        if self._short_way is None:
            self._loop.remove_reader(self._sock)
        else:
            self._short_way.remove(self._sock.fileno())
        if self._timer is not None:
            self._timer.cancel()
        if not self._done.done():
            self._done.cancel()
        elif not self._done.cancelled():
            self._done.exception()  # seen, even where a cancelled exchange never awaited it

    async def _send(self, request: bytes) -> None:
        """Hand over all bytes; the stamp before the last send starts the clock."""
        sock, clock, tls = self._sock, self._clock, self._tls
        rest = memoryview(request if tls is None else tls.encrypted(request))
        while not self._done.done():
            self.sent_ns = clock.now_ns()
            try:
                rest = rest[sock.send(rest) :]
            except (BlockingIOError, InterruptedError):
                await self._writable()
            except OSError:
                # The reading side knows better: an early refusal may be waiting there.
                return
            if not rest:
                self.sent = True
                return

    async def _writable(self) -> None:
        """Wait until the socket takes more, or the exchange is over."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(self._sock, _resolve, waiter)
        try:
            await asyncio.wait({waiter, self._done}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._loop.remove_writer(self._sock)
            waiter.cancel()

    def _on_readable(self) -> bool:
        """One read: receive, stamp, feed, look for the end; True when the loop has work now."""
        try:
            data, at_ns, stamped_by = self._receive(self._sock)
            ended = not data
            if self._tls is not None and data:
                data, ended = self._tls.decrypted(data)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._finish(failures.translated(error, self._target))
            return True
        at_ns = max(at_ns, self._last_ns)
        self._last_ns = at_ns
        if data:
            if stamped_by != self.stamped_by:
                self._change_clock(stamped_by)
            self._take(data, at_ns)
        if ended:
            self.ended = True
            self.reader.end_of_input(at_ns)
            self._finish_ended()
        left_work, self._left_work = self._left_work, False
        return left_work

    def _change_clock(self, stamped_by: StampedBy) -> None:
        if self.stamped_by != "user":  # one read of our own stamp makes it our own clock
            self.stamped_by = stamped_by

    def _take(self, data: bytes, at_ns: int) -> None:
        """Feed one read, and look whether it was the last."""
        reader = self.reader
        try:
            reader.feed(data, at_ns)
        except ProtocolBroken as broken:
            first_bytes = data if reader.bytes_seen == len(data) else b""
            target = self._target
            self._finish(failures.not_http(target, first_bytes, broken.what))
            return
        said = self._heard(reader, self._now_s())
        if reader.complete:
            self._finish(None)
        elif reader.bytes_seen > self._advances_at:
            self._go_on(reader)
        if self._on_text is not None and said:
            self._tell(self._on_text, at_ns)

    def _tell(self, on_text: OnText, at_ns: int) -> None:
        if self._watch.text_seen and self.sent_ns is not None:
            self._left_work = True  # whatever it calls for
            on_text((at_ns - self.sent_ns) / 1e9)

    def _go_on(self, reader: ResponseReader) -> None:
        """Another few KiB are there: bound the response, and let its reading advance."""
        self._advances_at = reader.bytes_seen + HELD_BYTES
        if reader.bytes_seen > self._limits.response_bytes:
            failure = failures.too_large(self._target, self._limits.response_bytes)
            self._finish(failure)
        elif self.reading is not None:
            # After all reads that wait now: their stamps come first.
            self._loop.call_soon(self._advance, self.reading)
            self._left_work = True

    def _advance(self, reading: ResponseReading) -> None:
        if not self._done.done():
            reading.advance()
            self._watch.look_from(len(self.reader.segments))

    def _finish_ended(self) -> None:
        reader, target = self.reader, self._target
        if reader.complete and not reader.premature:
            self._finish(None)
        else:
            self._finish(failures.closed_early(target, bytes_seen=reader.bytes_seen))

    def _look_at_the_time(self) -> None:
        """End the exchange when a stage is overdue, else look again when one may be."""
        due_s, stage = self._watch.due()
        now_s = self._now_s()
        if now_s >= due_s:
            waited_s = self._watch.waited_s(stage, now_s)
            self._finish(failures.stage_timed_out(self._target, stage, waited_s))
        else:
            # A later stage may have a nearer end as soon as it begins.
            wait_s = min(due_s - now_s, self._limits.shortest_s)
            self._timer = self._loop.call_later(wait_s, self._look_at_the_time)

    def _finish(self, failure: EndpointError | None) -> None:
        self._left_work = True
        with contextlib.suppress(asyncio.InvalidStateError):
            if failure is None:
                self._done.set_result(None)
            else:
                self._done.set_exception(failure)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
