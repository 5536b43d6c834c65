"""One socket to one endpoint, and one request after the other over it."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from twospeed.records.errors import EndpointError
from twospeed.sources.live.clock import Clock
from twospeed.sources.live.receiver import Receiver, StampedBy
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Limits
from twospeed.sources.live.tls import Tls
from twospeed.sources.live.transfer import OnText, Transfer
from twospeed.wire.http_response import ResponseReader
from twospeed.wire.response_reading import ResponseReading


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """How long opening a connection took, in seconds; None for a part that it did without."""

    total_s: float
    """All parts, and with them the time in which a proxy opened a tunnel."""
    dns_s: float | None = None
    """Looking up the name: of the endpoint, or of the proxy before it."""
    tcp_s: float | None = None
    """Connecting, addresses of the name that did not accept included."""
    tls_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and what came back, complete or not."""

    reader: ResponseReader
    reading: ResponseReading | None = None
    """What the response says, for the caller to finish; None when no dialect was given."""
    sent_ns: int | None = None
    """Moment before the send that handed over the last request byte; None when none did."""
    set_up: SetUp | None = None
    """Opening the connection before the clock started; None on a reused one."""
    retries: int = 0
    redirects: int = 0
    """Redirects that were followed; each one restarted the clock."""
    clock: StampedBy = "user"
    failure: EndpointError | None = None
    """Why the response is not complete; what had arrived is in the reader."""

    @property
    def connect_s(self) -> float | None:
        """Seconds that opening the connection took; None on a reused one."""
        return None if self.set_up is None else self.set_up.total_s


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
        set_up: SetUp | None = None,
    ) -> None:
        self.sock = sock
        self.target = target
        self.clock = clock
        self.receiver = receiver
        self.tls = tls
        self.open = True
        self._set_up = set_up

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
        transfer = Transfer(
            self.sock,
            self.target,
            clock=self.clock,
            receiver=self.receiver,
            tls=self.tls,
            limits=limits,
            on_text=on_text,
            dialect=dialect,
        )
        set_up, self._set_up = self._set_up, None
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
            set_up=set_up,
            clock=transfer.stamped_by or "user",
            failure=failure,
        )
