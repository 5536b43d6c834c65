"""A way to ask one endpoint again and again over a kept-alive connection."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from twospeed import __version__
from twospeed.records.errors import EndpointError, ProtocolBroken, StreamBroken, UsageError
from twospeed.runtimes.runtime import Answer, Ask
from twospeed.sources.live import failures
from twospeed.sources.live.clock import Clock, MonotonicClock
from twospeed.sources.live.connecting import connect
from twospeed.sources.live.connection import Connection, Exchange
from twospeed.sources.live.headers import SHORTEST_SECRET, Header, merged, secrets_in
from twospeed.sources.live.proxy import Proxy
from twospeed.sources.live.reach import Reach
from twospeed.sources.live.receiver import Receiver, StampedBy, best_receiver
from twospeed.sources.live.redirection import MOST_REDIRECTS, led_on
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Limits
from twospeed.sources.live.transfer import OnText
from twospeed.wire.content import decoded_segments
from twospeed.wire.http_response import ResponseReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Everything needed to open channels to one endpoint."""

    target: Target
    clock: Clock
    receiver: Receiver
    api_key: str | None = field(default=None, repr=False)
    context: ssl.SSLContext | None = None
    reach: Reach = field(default_factory=Reach)
    proxy: Proxy | None = None

    @classmethod
    def to(
        cls,
        target: Target,
        *,
        api_key: str | None = None,
        clock: Clock | None = None,
        context: ssl.SSLContext | None = None,
        stamped_by: StampedBy | None = None,
        reach: Reach | None = None,
    ) -> Access:
        """Prepare access.

        Args:
            target: the endpoint.
            api_key: sent as a bearer token; printable ASCII.
            clock: source of every stamp; None for this machine's.
            context: trust for https; None for what `reach` says.
            stamped_by: "user" to do without the kernel's stamps; None for the best there is.
            reach: the way there, and the user's headers; None for the plain one.

        Raises:
            UsageError: the key cannot be sent in a header, or the proxy is none that can be used.
            InputError: a certificate cannot be read.
        """
        if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
            raise UsageError("The API key holds characters that no header can carry.")
        clock, reach = clock or MonotonicClock(), reach or Reach()
        if context is None and target.scheme == "https":
            context = reach.trust.context()
        if reach.unix_socket is not None:
            stamped_by = "user"  # the kernel stamps what comes over a network
        return cls(
            target=target,
            clock=clock,
            receiver=best_receiver(clock, stamped_by),
            api_key=api_key or None,
            context=context,
            reach=reach,
            proxy=reach.proxy_before(target),
        )

    @property
    def port_here(self) -> int | None:
        """Port of this machine that the endpoint listens at; None elsewhere or if it has none."""
        direct = self.proxy is None and self.reach.unix_socket is None
        return self.target.port if direct and self.target.is_loopback else None

    @property
    def is_here(self) -> bool:
        """Whether the endpoint runs on this machine, as far as its address tells."""
        return self.port_here is not None or self.reach.unix_socket is not None

    def without_secrets(self, text: str) -> str:
        """A text of the server's as it may be shown: some repeat the key that they refuse."""
        secrets = [*secrets_in(self.reach.headers), *(self.proxy.secrets if self.proxy else ())]
        # Shorter ones (none, ollama) only fill the place of a key.
        if self.api_key is not None and len(self.api_key) >= SHORTEST_SECRET:
            secrets.append(self.api_key)
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***") if secret else text
        return text

    @property
    def plain_proxy(self) -> Proxy | None:
        """The proxy that takes the requests themselves, rather than opening a tunnel."""
        return self.proxy if self.target.scheme == "http" else None

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
        own = [
            ("Host", self.target.authority),
            ("User-Agent", f"twospeed/{__version__}"),
            ("Accept", accept),
            # A compressed stream would only arrive in other pieces than it was written in.
            ("Accept-Encoding", "identity"),
            ("Connection", "keep-alive"),
            *self._credentials(),
        ]
        if body is not None:
            own.append(("Content-Type", "application/json"))
        if method != "GET":
            own.append(("Content-Length", str(len(content))))
        origin = f"http://{self.target.authority}" if self.plain_proxy else ""
        lines = [f"{method} {origin}{self.target.path_of(path)} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in merged(own, self.reach.headers)]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + content

    def _credentials(self) -> list[Header]:
        """Headers for the endpoint, and for a proxy that reads them."""
        own = [] if self.api_key is None else [("Authorization", f"Bearer {self.api_key}")]
        if self.plain_proxy is not None and self.plain_proxy.authorization is not None:
            own.append(("Proxy-Authorization", self.plain_proxy.authorization))
        return own


class Channel:
    """At most one connection, opened before it is needed and replaced when it died."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._connection: Connection | None = None

    async def open(self, limits: Limits) -> None:
        """Open the connection now, so that the next request need not wait for it.

        A failure is left to that request, which tries again.
        """
        if self._usable() is None:
            with contextlib.suppress(EndpointError):
                self._connection = await self._opened(limits)

    async def exchange(
        self,
        request: bytes,
        limits: Limits,
        on_text: OnText | None = None,
        dialect: str | None = None,
    ) -> Exchange:
        """Send one request; failures come back in the exchange, with whatever arrived.

        A redirect to the same scheme, host and port is followed and the clock restarted.
        """
        exchange = await self._answered(request, limits, on_text, dialect)
        while exchange.failure is None:
            try:
                onward = self._onward(request, exchange)
            except EndpointError as failure:
                return replace(exchange, failure=failure)
            if onward is None:
                break
            request = onward
            again = await self._answered(request, limits, on_text, dialect)
            exchange = replace(
                again,
                set_up=again.set_up or exchange.set_up,
                retries=exchange.retries + again.retries,
                redirects=exchange.redirects + 1,
            )
        return exchange

    def _onward(self, request: bytes, exchange: Exchange) -> bytes | None:
        """The request that a redirect asks for; None when the answer is no redirect.

        Raises:
            EndpointError: a redirect to elsewhere or once too often, or a proxy that refuses.
        """
        access, reader = self.access, exchange.reader
        if reader.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED and access.plain_proxy:
            raise failures.proxy_refused(access.plain_proxy, reader.status, access.target)
        onward = led_on(request, reader, access.target)
        if onward is not None and exchange.redirects == MOST_REDIRECTS:
            raise failures.redirected_too_often(access.target, reader.status, MOST_REDIRECTS)
        return onward

    async def _answered(
        self, request: bytes, limits: Limits, on_text: OnText | None, dialect: str | None
    ) -> Exchange:
        """One answer to one request, whatever it is.

        A reused connection that dies before the first response byte is replaced once and the
        clock restarted: servers close idle connections, some after every response.
        """
        retries = 0
        while True:
            connection = self._usable()
            reused = connection is not None
            if connection is None:
                try:
                    connection = await self._opened(limits)
                except EndpointError as error:
                    return Exchange(reader=ResponseReader(), retries=retries, failure=error)
            self._connection = connection
            exchange = await connection.exchange(request, limits, on_text, dialect)
            if not (reused and retries == 0 and _died_unheard(exchange)):
                return replace(exchange, retries=retries)
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

    async def _opened(self, limits: Limits) -> Connection:
        access = self.access
        return await connect(
            access.target,
            limit_s=limits.connect_s,
            clock=access.clock,
            receiver=access.receiver,
            context=access.context,
            proxy=access.proxy,
            unix_socket=access.reach.unix_socket,
        )


def answer_of(reader: ResponseReader) -> Answer:
    """A complete response as the runtimes read it."""
    try:
        body = b"".join(segment.data for segment in decoded_segments(reader))
    except ProtocolBroken:  # a body that cannot be unpacked answers nothing, and ends nothing
        return Answer(status=reader.status, headers=reader.headers)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    return Answer(status=reader.status, headers=reader.headers, body=body, json=value)


def _died_unheard(exchange: Exchange) -> bool:
    return isinstance(exchange.failure, StreamBroken) and not exchange.reader.bytes_seen
