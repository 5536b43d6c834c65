"""A way to ask one endpoint again and again over a kept-alive connection."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from twospeed import __version__
from twospeed.records.errors import EndpointError, StreamBroken, UsageError
from twospeed.runtimes.runtime import Answer, Ask
from twospeed.sources.live.clock import Clock, MonotonicClock
from twospeed.sources.live.connection import Connection, Exchange, OnText, connect
from twospeed.sources.live.receiver import Receiver, StampedBy, best_receiver
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Limits
from twospeed.wire.content import decoded_segments
from twospeed.wire.http_response import ResponseReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Everything needed to open channels to one endpoint."""

    target: Target
    clock: Clock
    receiver: Receiver
    api_key: str | None = None
    context: ssl.SSLContext | None = None

    @classmethod
    def to(
        cls,
        target: Target,
        *,
        api_key: str | None = None,
        clock: Clock | None = None,
        context: ssl.SSLContext | None = None,
        stamped_by: StampedBy | None = None,
    ) -> Access:
        """Prepare access.

        Args:
            target: the endpoint.
            api_key: sent as a bearer token; printable ASCII.
            clock: source of every stamp; None for this machine's.
            context: trust for https; None uses this machine's own.
            stamped_by: "user" to do without the kernel's stamps; None for the best there is.

        Raises:
            UsageError: the key cannot be sent in a header.
        """
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise UsageError("The API key holds characters that no header can carry.")
        clock = clock or MonotonicClock()
        if context is None and target.scheme == "https":
            context = ssl.create_default_context()
        return cls(
            target=target,
            clock=clock,
            receiver=best_receiver(clock, stamped_by),
            api_key=api_key or None,
            context=context,
        )

    def request(
        self,
        path: str,
        *,
        method: str = "POST",
        body: Mapping[str, Any] | None = None,
        accept: str = "application/json, text/event-stream, application/x-ndjson, */*",
    ) -> bytes:
        """Whole request as it goes out, head and body.

        Args:
            path: route below the base address, starting with a slash.
            method: GET or POST.
            body: sent as JSON; None for no body.
            accept: value of the Accept header.
        """
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        lines = [
            f"{method} {self.target.path_of(path)} HTTP/1.1",
            f"Host: {self.target.authority}",
            f"User-Agent: twospeed/{__version__}",
            f"Accept: {accept}",
            # A compressed stream would only arrive in other pieces than it was written in.
            "Accept-Encoding: identity",
            "Connection: keep-alive",
        ]
        if self.api_key is not None:
            lines.append(f"Authorization: Bearer {self.api_key}")
        if body is not None:
            lines.append("Content-Type: application/json")
        if method != "GET":
            lines.append(f"Content-Length: {len(content)}")
        return "\r\n".join([*lines, "", ""]).encode("ascii") + content


class Channel:
    """At most one connection, opened before it is needed and replaced when it died."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._connection: Connection | None = None
        self._opened_s: float | None = None

    async def open(self, limits: Limits) -> None:
        """Open the connection now, so that the next request need not wait for it.

        A failure is left to that request, which tries again.
        """
        if self._usable() is None:
            with contextlib.suppress(EndpointError):
                self._connection, self._opened_s = await self._opened(limits)

    async def exchange(
        self,
        request: bytes,
        limits: Limits,
        on_text: OnText | None = None,
        dialect: str | None = None,
    ) -> Exchange:
        """Send one request; failures come back in the exchange, with whatever arrived.

        A reused connection that dies before the first response byte is replaced once and the
        clock restarted: servers close idle connections, some after every response.
        """
        retries = 0
        while True:
            connection = self._usable()
            opened_s, self._opened_s = self._opened_s, None
            reused = connection is not None
            if connection is None:
                try:
                    connection, opened_s = await self._opened(limits)
                except EndpointError as error:
                    return Exchange(reader=ResponseReader(), retries=retries, failure=error)
            self._connection = connection
            exchange = await connection.exchange(request, limits, on_text, dialect)
            if not (reused and retries == 0 and _died_unheard(exchange)):
                return replace(exchange, connect_s=opened_s, retries=retries)
            retries += 1

    async def ask(self, ask: Ask, limits: Limits) -> tuple[Answer, EndpointError | None]:
        """Put one cheap question; an answer without status when nothing came back."""
        body = ask.body if ask.method == "POST" else None
        request = self.access.request(ask.path, method=ask.method, body=body)
        exchange = await self.exchange(request, limits)
        if exchange.failure is not None:
            return Answer(), exchange.failure
        return answer_of(exchange.reader), None

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _usable(self) -> Connection | None:
        """The idle connection when it is still alive."""
        if self._connection is not None and not self._connection.usable():
            self._connection = None
        return self._connection

    async def _opened(self, limits: Limits) -> tuple[Connection, float]:
        access = self.access
        before_ns = access.clock.now_ns()
        connection = await connect(
            access.target,
            limit_s=limits.connect_s,
            clock=access.clock,
            receiver=access.receiver,
            context=access.context,
        )
        return connection, (access.clock.now_ns() - before_ns) / 1e9


def answer_of(reader: ResponseReader) -> Answer:
    """A complete response as the runtimes read it."""
    body = b"".join(segment.data for segment in decoded_segments(reader))
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    return Answer(status=reader.status, headers=reader.headers, body=body, json=value)


def _died_unheard(exchange: Exchange) -> bool:
    return isinstance(exchange.failure, StreamBroken) and not exchange.reader.bytes_seen
