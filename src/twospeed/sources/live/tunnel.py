"""A way through an HTTP proxy to a target that speaks TLS (RFC 9110 section 9.3.6)."""

from __future__ import annotations

import asyncio
import socket

from twospeed import __version__
from twospeed.records.errors import ProtocolBroken
from twospeed.sources.live import failures
from twospeed.sources.live.proxy import Proxy
from twospeed.sources.live.target import Target
from twospeed.wire.http_response import ResponseReader

READ_BYTES = 64 * 1024


async def open_tunnel(sock: socket.socket, proxy: Proxy, target: Target) -> None:
    """Have the proxy pass everything on to the target from here on.

    Nothing that is meant for the target goes along: no key and none of the user's headers.

    Args:
        sock: connected to the proxy, non-blocking.
        proxy: whose credentials it shows, if there are any.
        target: host and port to reach.

    Raises:
        ConnectFailed: the proxy refuses.
        ProtocolBroken: it is no HTTP proxy.
    """
    reader = ResponseReader()
    try:
        await _ask(sock, _request(proxy, target), reader)
    except OSError as error:
        raise failures.proxy_failed(error, proxy) from error
    except ProtocolBroken as broken:
        raise failures.no_proxy(proxy, broken.what) from None
    if reader.status is None:
        raise failures.proxy_closed(proxy)
    if not 200 <= reader.status < 300:
        raise failures.proxy_refused(proxy, reader.status, target)
    if reader.segments:
        # The target speaks only once it is spoken to, and then in TLS.
        raise failures.no_proxy(proxy, "it goes on talking after it opened the way")


async def _ask(sock: socket.socket, request: bytes, reader: ResponseReader) -> None:
    """Send the request and read until the status is there, or the proxy closed."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(sock, request)
    while reader.status is None and (data := await loop.sock_recv(sock, READ_BYTES)):
        reader.feed(data, 0)


def _request(proxy: Proxy, target: Target) -> bytes:
    where = target.host_and_port
    lines = [f"CONNECT {where} HTTP/1.1", f"Host: {where}", f"User-Agent: twospeed/{__version__}"]
    if proxy.authorization is not None:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    return "\r\n".join([*lines, "", ""]).encode("ascii")
