"""From an address to a connection, each step timed apart: name, socket, proxy tunnel, TLS."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from typing import Any

from twospeed.sources.live import failures
from twospeed.sources.live.clock import Clock
from twospeed.sources.live.connection import Connection, SetUp
from twospeed.sources.live.proxy import Proxy
from twospeed.sources.live.receiver import Receiver
from twospeed.sources.live.target import Target
from twospeed.sources.live.tls import Tls
from twospeed.sources.live.tunnel import open_tunnel

Address = tuple[int, int, int, str, Any]
"""Family, kind, protocol, canonical name and socket address, as getaddrinfo tells them."""


async def connect(
    target: Target,
    *,
    limit_s: float,
    clock: Clock,
    receiver: Receiver,
    context: ssl.SSLContext | None = None,
    proxy: Proxy | None = None,
    unix_socket: str | None = None,
) -> Connection:
    """Open a connection, trying every address of the name in turn.

    Args:
        target: where to.
        limit_s: seconds for name look-up, connection, tunnel and TLS together.
        clock: stamps of requests sent over it.
        receiver: the receive step, same clock.
        context: trust for https; None uses this machine's own.
        proxy: stands before the target; for https it opens a tunnel.
        unix_socket: path to connect to instead.

    Raises:
        ConnectFailed: nobody listens, the name is unknown, proxy or TLS refused.
        TimedOut: nothing answered within the limit.
    """
    opening = _Opening(target, limit_s, clock, receiver, proxy)
    try:
        async with asyncio.timeout(limit_s):
            sock = await opening.connected(unix_socket)
            with _closing_on_failure(sock):
                tls = None
                if target.scheme == "https":
                    if proxy is not None:
                        await open_tunnel(sock, proxy, target)
                    tls = await opening.tls(sock, context or ssl.create_default_context())
    except TimeoutError:
        raise failures.connect_timed_out(target, limit_s, proxy) from None
    except OSError as error:
        raise failures.translated(error, target) from error
    return Connection(
        sock, target, clock=clock, receiver=receiver, tls=tls, set_up=opening.set_up()
    )


class _Opening:
    """The steps of one attempt, and how long they took."""

    def __init__(
        self,
        target: Target,
        limit_s: float,
        clock: Clock,
        receiver: Receiver,
        proxy: Proxy | None,
    ) -> None:
        self._target = target
        self._clock = clock
        self._receiver = receiver
        self._proxy = proxy
        self._loop = asyncio.get_running_loop()
        self._ends_s = self._loop.time() + limit_s
        self._started_ns = clock.now_ns()
        self._dns_s: float | None = None
        self._tcp_s: float | None = None
        self._tls_s: float | None = None

    def set_up(self) -> SetUp:
        """What it took until now."""
        return SetUp(
            total_s=self._since(self._started_ns),
            dns_s=self._dns_s,
            tcp_s=self._tcp_s,
            tls_s=self._tls_s,
        )

    async def connected(self, unix_socket: str | None) -> socket.socket:
        """A connected socket to whatever comes first on the way.

        Raises:
            ConnectFailed: there is none to be had from the proxy or the unix socket.
            OSError: there is none to be had from the target.
        """
        try:
            if unix_socket is not None:
                return await self._connected(
                    (socket.AF_UNIX, socket.SOCK_STREAM, 0, "", unix_socket)
                )
            first = self._proxy or self._target
            return await self._connected_to_any(first.host, first.port)
        except TimeoutError:
            raise
        except OSError as error:
            if unix_socket is not None:
                raise failures.unix_socket_failed(error, unix_socket) from error
            if self._proxy is not None:
                raise failures.proxy_failed(error, self._proxy) from error
            raise

    async def tls(self, sock: socket.socket, context: ssl.SSLContext) -> Tls:
        """Agree on keys with the target.

        Raises:
            OSError: certificate or protocol are not acceptable, or the connection failed.
        """
        before_ns = self._clock.now_ns()
        tls = Tls(context, self._target.bare_host)
        await tls.handshake(sock)
        self._tls_s = self._since(before_ns)
        return tls

    async def _connected_to_any(self, host: str, port: int) -> socket.socket:
        """First address of a name that accepts; each gets its share of the time that is left."""
        found = await self._addresses(host, port)
        before_ns = self._clock.now_ns()
        last: OSError = OSError("the name has no address")
        for tried, address in enumerate(found):
            share_s = (self._ends_s - self._loop.time()) / (len(found) - tried)
            try:
                async with asyncio.timeout(share_s):
                    sock = await self._connected(address)
            except OSError as error:
                last = error
            else:
                self._tcp_s = self._since(before_ns)
                return sock
        raise last

    async def _addresses(self, host: str, port: int) -> list[Address]:
        """Addresses of a name; an address is its own, without a look-up."""
        kind = socket.SOCK_STREAM
        if _is_address(host):
            return list(socket.getaddrinfo(host, port, type=kind, flags=socket.AI_NUMERICHOST))
        before_ns = self._clock.now_ns()
        found = await self._loop.getaddrinfo(host, port, type=kind)
        self._dns_s = self._since(before_ns)
        return list(found)

    async def _connected(self, address: Address) -> socket.socket:
        family, kind, protocol, _, where = address
        sock = socket.socket(family, kind, protocol)
        with _closing_on_failure(sock):
            sock.setblocking(False)  # noqa: FBT003
            if family != getattr(socket, "AF_UNIX", None):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._receiver.prepare(sock)
            await self._loop.sock_connect(sock, where)
        return sock

    def _since(self, before_ns: int) -> float:
        return (self._clock.now_ns() - before_ns) / 1e9


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def _closing_on_failure(sock: socket.socket) -> Iterator[None]:
    """Close the socket when the block fails or is cancelled."""
    try:
        yield
    except BaseException:
        sock.close()
        raise
