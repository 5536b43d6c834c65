"""One socket to one endpoint, and one request over it with every read stamped.

The loop calls back on each readable moment: receive, stamp, feed, done. Nothing is parsed here but
HTTP framing, and no coroutine wakes up before the response is complete.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from twospeed.records.errors import EndpointError, ProtocolBroken
from twospeed.sources.live import failures
from twospeed.sources.live.clock import Clock
from twospeed.sources.live.receiver import Receiver, StampedBy
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and what came back, complete or not."""

    reader: ResponseReader
    reading: ResponseReading | None = None
    """What the response says, for the caller to finish; None when no dialect was given."""
    sent_ns: int | None = None
    """Moment before the send that handed over the last request byte; None when none did."""
    connect_s: float | None = None
    """Opening the connection before the clock started; None on a reused one."""
    retries: int = 0
    clock: StampedBy = "user"
    failure: EndpointError | None = None
    """Why the response is not complete; what had arrived is in the reader."""


class Connection:
    """A connected socket, with TLS where the address asks for it."""

    def __init__(
        self,
        sock: socket.socket,
        target: Target,
        *,
        clock: Clock,
        receiver: Receiver,
        tls: Tls | None = None,
    ) -> None:
        self.sock = sock
        self.target = target
        self.clock = clock
        self.receiver = receiver
        self.tls = tls
        self.open = True

    def usable(self) -> bool:
        """Whether another request may go over the idle connection; if not, it is closed.

        It may not when the other side closed it, or spoke out of turn.
        """
        if self.open and not self._is_silent():
            self.close()
        return self.open

    def _is_silent(self) -> bool:
        try:
            data, _, _ = self.receiver.receive(self.sock)
            if not data or self.tls is None:
                return False
            # TLS 1.3 sends session tickets that nobody asked for.
            data, closed = self.tls.decrypted(data)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        return not data and not closed

    def close(self) -> None:
        """Close the socket; harmless when it is closed already."""
        self.open = False
        self.sock.close()

    async def exchange(
        self,
        request: bytes,
        limits: Limits,
        on_text: OnText | None = None,
        dialect: str | None = None,
    ) -> Exchange:
        """Send a request and read its response to the end.

        Cancelling closes the socket, as does every failure.

        Args:
            request: head and body as they go out.
            limits: stages to bound, see `Limits.for_request`.
            on_text: told of every read after text began.
            dialect: in which a long response is read while it still arrives; None keeps its bytes.
        """
        transfer = _Transfer(self, limits, on_text, dialect)
        failure: EndpointError | None = None
        reusable = False
        try:
            await transfer.run(request)
            reusable = transfer.sent and not transfer.ended and transfer.reader.keep_alive
        except EndpointError as error:
            failure = error
        finally:
            transfer.stop()
            if not reusable:
                self.close()
        return Exchange(
            reader=transfer.reader,
            reading=transfer.reading,
            sent_ns=transfer.sent_ns,
            clock=transfer.stamped_by or "user",
            failure=failure,
        )


class _Transfer:
    """The state of one request under way."""

    def __init__(
        self,
        connection: Connection,
        limits: Limits,
        on_text: OnText | None,
        dialect: str | None,
    ) -> None:
        self.reader = ResponseReader()
        self.reading = None if dialect is None else reading_of(dialect, self.reader)
        self.sent_ns: int | None = None
        self.sent = False
        self.ended = False
        self.stamped_by: StampedBy | None = None
        self._connection = connection
        self._receive = connection.receiver.receive
        self._sock = connection.sock
        self._tls = connection.tls
        self._limits = limits
        self._on_text = on_text
        self._loop = asyncio.get_running_loop()
        self._now_s = self._loop.time
        self._started_s = self._now_s()
        self._watch = Watch(limits, self._started_s)
        self._heard = self._watch.heard
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._first_bytes = b""
        self._last_ns = 0
        # Streams that began together do not all advance at the same moment.
        self._advances_at = HELD_BYTES // 8 * (4 + self._sock.fileno() % 8)

    async def run(self, request: bytes) -> None:
        """Send, then wait for the end of the response.

        Raises:
            EndpointError: why there is no complete response.
        """
        self._loop.add_reader(self._connection.sock, self._on_readable)
        self._look_at_the_time()
        await self._send(request)
        await self._done

    def stop(self) -> None:
        """Leave the loop: no more callbacks."""
        self._loop.remove_reader(self._connection.sock)
        if self._timer is not None:
            self._timer.cancel()
        if not self._done.done():
            self._done.cancel()
        elif not self._done.cancelled():
            self._done.exception()  # seen, even where a cancelled exchange never awaited it

    async def _send(self, request: bytes) -> None:
        """Hand over all bytes; the stamp before the last send starts the clock."""
        sock, clock = self._connection.sock, self._connection.clock
        tls = self._connection.tls
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
        self._loop.add_writer(self._connection.sock, _resolve, waiter)
        try:
            await asyncio.wait({waiter, self._done}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._loop.remove_writer(self._connection.sock)
            waiter.cancel()

    def _on_readable(self) -> None:
        """One read: receive, stamp, feed, look for the end."""
        try:
            data, at_ns, stamped_by = self._receive(self._sock)
            ended = not data
            if self._tls is not None and data:
                data, ended = self._tls.decrypted(data)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._finish(failures.translated(error, self._connection.target))
            return
        if at_ns < self._last_ns:
            at_ns = self._last_ns
        self._last_ns = at_ns
        if data:
            if stamped_by != self.stamped_by:
                self._change_clock(stamped_by)
            self._take(data, at_ns)
        if ended:
            self.ended = True
            self.reader.end_of_input(at_ns)
            self._finish_ended()

    def _change_clock(self, stamped_by: StampedBy) -> None:
        if self.stamped_by != "user":  # one read of our own stamp makes it our own clock
            self.stamped_by = stamped_by

    def _take(self, data: bytes, at_ns: int) -> None:
        """Feed one read, and look whether it was the last."""
        reader = self.reader
        try:
            reader.feed(data, at_ns)
        except ProtocolBroken as broken:
            target = self._connection.target
            self._finish(failures.not_http(target, self._first_bytes or data, broken.what))
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
            on_text((at_ns - self.sent_ns) / 1e9)

    def _go_on(self, reader: ResponseReader) -> None:
        """Another few KiB are there: bound the response, and let its reading advance."""
        self._advances_at = reader.bytes_seen + HELD_BYTES
        if reader.bytes_seen > self._limits.response_bytes:
            failure = failures.too_large(self._connection.target, self._limits.response_bytes)
            self._finish(failure)
        elif self.reading is not None:
            # After all reads that wait now: their stamps come first.
            self._loop.call_soon(self._advance, self.reading)

    def _advance(self, reading: ResponseReading) -> None:
        if not self._done.done():
            reading.advance()
            self._watch.look_from(len(self.reader.segments))

    def _finish_ended(self) -> None:
        reader, target = self.reader, self._connection.target
        if reader.complete and not reader.premature:
            self._finish(None)
        else:
            self._finish(failures.closed_early(target, bytes_seen=reader.bytes_seen))

    def _look_at_the_time(self) -> None:
        """End the exchange when a stage is overdue, else look again when one may be."""
        due_s, stage = self._watch.due()
        now_s = self._loop.time()
        if now_s >= due_s:
            waited_s = self._watch.waited_s(stage, now_s)
            self._finish(failures.stage_timed_out(self._connection.target, stage, waited_s))
        else:
            # A later stage may have a nearer end as soon as it begins.
            wait_s = min(due_s - now_s, self._limits.shortest_s)
            self._timer = self._loop.call_later(wait_s, self._look_at_the_time)

    def _finish(self, failure: EndpointError | None) -> None:
        with contextlib.suppress(asyncio.InvalidStateError):
            if failure is None:
                self._done.set_result(None)
            else:
                self._done.set_exception(failure)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def connect(
    target: Target,
    *,
    limit_s: float,
    clock: Clock,
    receiver: Receiver,
    context: ssl.SSLContext | None = None,
) -> Connection:
    """Open a connection, trying every address of the name in turn.

    Args:
        target: where to.
        limit_s: seconds for name look-up, connection and TLS together.
        clock: stamps of requests sent over it.
        receiver: the receive step, same clock.
        context: trust for https; None uses this machine's own.

    Raises:
        ConnectFailed: nobody listens, the name is unknown, TLS was refused.
        TimedOut: nothing answered within the limit.
    """
    try:
        async with asyncio.timeout(limit_s):
            sock = await _socket_to(target, limit_s, receiver)
            with _closing_on_failure(sock):
                tls = None
                if target.scheme == "https":
                    tls = Tls(context or ssl.create_default_context(), target.host)
                    await tls.handshake(sock)
    except TimeoutError:
        raise failures.connect_timed_out(target, limit_s) from None
    except OSError as error:
        raise failures.translated(error, target) from error
    return Connection(sock, target, clock=clock, receiver=receiver, tls=tls)


async def _socket_to(target: Target, limit_s: float, receiver: Receiver) -> socket.socket:
    """First address of the name that accepts; each gets its share of the time that is left."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + limit_s
    found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    last: OSError = OSError("the name has no address")
    for tried, (family, kind, protocol, _, address) in enumerate(found):
        share_s = (ends_s - loop.time()) / (len(found) - tried)
        sock = socket.socket(family, kind, protocol)
        try:
            with _closing_on_failure(sock):
                sock.setblocking(False)  # noqa: FBT003
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                receiver.prepare(sock)
                async with asyncio.timeout(share_s):
                    await loop.sock_connect(sock, address)
        except OSError as error:
            last = error
        else:
            return sock
    raise last


@contextlib.contextmanager
def _closing_on_failure(sock: socket.socket) -> Iterator[None]:
    """Close the socket when the block fails or is cancelled."""
    try:
        yield
    except BaseException:
        sock.close()
        raise
