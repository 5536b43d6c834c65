"""The way to an endpoint: sockets, proxies, redirects, headers, certificates; and its times."""

from __future__ import annotations

import argparse
import asyncio
import base64
import socket
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_server import (
    CHAT,
    GOOD_STREAM,
    MODELS,
    Act,
    TinyServer,
    answer,
    delta,
    head,
    in_turn,
    models,
    stream,
    usage,
)

from twospeed.cli.measuring.connection_options import access_options, add_connection_arguments
from twospeed.records.errors import (
    ConnectFailed,
    EndpointError,
    HttpRefused,
    InputError,
    ProtocolBroken,
    TimedOut,
    UsageError,
)
from twospeed.records.request_record import Probe
from twospeed.sources.live import failures
from twospeed.sources.live.channel import Access, Channel
from twospeed.sources.live.clock import MonotonicClock
from twospeed.sources.live.connecting import connect
from twospeed.sources.live.endpoint import Endpoint
from twospeed.sources.live.headers import headers_of
from twospeed.sources.live.proxy import Proxy, is_excepted, proxy_for
from twospeed.sources.live.reach import Reach
from twospeed.sources.live.receiver import UserReceiver
from twospeed.sources.live.redirection import led_on
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Limits
from twospeed.sources.live.trust import Trust
from twospeed.wire.http_response import ResponseReader

SHORT = Limits(connect_s=5, headers_s=5, first_text_s=5, gap_s=5, total_s=5)
OK = head(200, "text/plain", "Content-Length: 2") + b"ok"
KEY = "sk-very-secret-key"
PROBE = Probe(step="user", prompt_tokens=20, output_tokens=2)


class TickingClock:
    """Advances by one nanosecond at each look."""

    def __init__(self):
        self.now = 0

    def now_ns(self) -> int:
        self.now += 1
        return self.now


@dataclass(slots=True)
class TinyProxy:
    """A CONNECT proxy that leads every tunnel to one port, or answers with scripted bytes."""

    leads_to: int = 0
    says: bytes | None = None
    """Instead of opening a tunnel; after it the proxy closes."""
    hangs: bool = False
    port: int = 0
    heads: list[list[str]] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task] = field(default_factory=set)

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(raw.decode().rstrip().split("\r\n"))
            if self.hangs:
                await reader.read()
            elif self.says is not None:
                writer.write(self.says)
            else:
                await self._tunnel(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _tunnel(self, reader, writer):
        there, onward = await asyncio.open_connection("127.0.0.1", self.leads_to)
        writer.write(b"HTTP/1.1 200 Connection established\r\nVia: tiny\r\n\r\n")
        try:
            await asyncio.gather(_pass_on(reader, onward), _pass_on(there, writer))
        finally:
            onward.close()


async def _pass_on(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


@dataclass(slots=True)
class UnixServer(TinyServer):
    """The same server at a path."""

    path: str = ""

    async def __aenter__(self):
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self


def channel_to(url: str, **options) -> Channel:
    return Channel(Access.to(Target.parse(url), **options))


async def get(channel: Channel, path: str = "/x", limits: Limits = SHORT):
    try:
        return await channel.exchange(channel.access.request(path, method="GET"), limits)
    finally:
        channel.close()


async def post(channel: Channel, path: str = "/x"):
    try:
        return await channel.exchange(channel.access.request(path, body={"a": 1}), SHORT)
    finally:
        channel.close()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


# Unix sockets


@pytest.fixture
def socket_path(tmp_path_factory):
    if not hasattr(socket, "AF_UNIX"):
        pytest.skip("no unix sockets here")
    path = str(tmp_path_factory.mktemp("s") / "s")
    if len(path) > 90:
        pytest.skip("the temporary folder's name is too long for a socket")
    return path


def test_a_unix_socket_is_connected_to_and_the_url_says_the_rest(socket_path):
    async def main():
        async with UnixServer({"/base/x": [OK]}, path=socket_path) as server:
            reach = Reach(unix_socket=socket_path, environment={"http_proxy": "http://127.0.0.1:1"})
            channel = channel_to("http://model.test/base/v1", reach=reach)
            return await get(channel), server.requests, channel.access.receiver

    exchange, requests, receiver = asyncio.run(main())
    assert exchange.failure is None
    assert (requests[0].path, requests[0].headers["host"]) == ("/base/x", "model.test")
    assert exchange.clock == "user"
    assert isinstance(receiver, UserReceiver), "with room for a stamp, it would take in open files"
    assert exchange.connect_s > 0
    assert exchange.set_up.dns_s is exchange.set_up.tcp_s is exchange.set_up.tls_s is None


def test_an_endpoint_at_a_unix_socket_runs_here_and_has_no_port(socket_path):
    async def main():
        routes = {MODELS: models("m"), CHAT: GOOD_STREAM}
        async with UnixServer(routes, path=socket_path):
            reach = Reach(unix_socket=socket_path)
            async with await Endpoint.open("http://model.test:8080", reach=reach) as endpoint:
                record = await endpoint.measure(PROBE, 1)
                return endpoint.source().local, endpoint.port_here, record.error

    assert asyncio.run(main()) == (True, None, None)


def test_there_is_no_such_socket(socket_path):
    exchange = asyncio.run(get(channel_to("http://h", reach=Reach(unix_socket=socket_path))))
    assert isinstance(exchange.failure, ConnectFailed)
    assert f"no unix socket at {socket_path}" in str(exchange.failure)


def test_nobody_listens_at_the_socket(socket_path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(socket_path)
    exchange = asyncio.run(get(channel_to("http://h", reach=Reach(unix_socket=socket_path))))
    assert isinstance(exchange.failure, ConnectFailed)
    assert f"Nothing listens at the unix socket {socket_path}" in str(exchange.failure)


def test_a_path_that_no_socket_can_have(socket_path):
    exchange = asyncio.run(get(channel_to("http://h", reach=Reach(unix_socket="/x" * 100))))
    assert isinstance(exchange.failure, ConnectFailed)
    assert "cannot be used" in str(exchange.failure)


def test_a_unix_socket_behind_a_proxy_is_refused(socket_path):
    with pytest.raises(UsageError):
        Reach(unix_socket=socket_path, proxy="http://p:1")


# Which proxy


@pytest.mark.parametrize(
    ("url", "environment", "expected"),
    [
        ("http://a.b", {}, None),
        ("http://a.b", {"http_proxy": "p:1"}, "http://p:1"),
        ("http://a.b", {"HTTP_PROXY": "p:1"}, None),
        ("http://a.b", {"https_proxy": "p:1", "HTTPS_PROXY": "p:2"}, None),
        ("https://a.b", {"http_proxy": "p:1"}, None),
        ("https://a.b", {"HTTPS_PROXY": "http://p:2"}, "http://p:2"),
        ("https://a.b", {"https_proxy": "p:1", "HTTPS_PROXY": "p:2"}, "http://p:1"),
        ("https://a.b", {"https_proxy": "", "HTTPS_PROXY": "p:2"}, "http://p:2"),
        ("https://a.b", {"ALL_PROXY": "p:3"}, "http://p:3"),
        ("http://a.b", {"all_proxy": "p:3"}, "http://p:3"),
        ("http://a.b", {"http_proxy": "p:1", "all_proxy": "p:3"}, "http://p:1"),
        ("http://a.b", {"http_proxy": "http://p"}, "http://p:1080"),
        ("http://a.b", {"http_proxy": "http://p:80/"}, "http://p:80"),
        ("http://a.b", {"http_proxy": "[::2]:8"}, "http://[::2]:8"),
        ("http://a.b", {"http_proxy": "[::2]"}, "http://[::2]:1080"),
        ("http://a.b", {"http_proxy": "p:1", "NO_PROXY": "a.b"}, None),
        ("http://a.b", {"http_proxy": "p:1", "no_proxy": "c.d", "NO_PROXY": "a.b"}, "http://p:1"),
        ("http://127.0.0.1:8080", {"http_proxy": "p:1", "all_proxy": "p:2"}, None),
        ("http://127.9.9.9:8080", {"http_proxy": "p:1"}, None),
        ("http://localhost:8080", {"http_proxy": "p:1"}, None),
        ("https://[::1]", {"ALL_PROXY": "p:1"}, None),
        ("https://[::ffff:127.0.0.1]", {"ALL_PROXY": "p:1"}, None),
    ],
)
def test_the_environment_names_the_proxy(url: str, environment: dict, expected: str | None):
    proxy = proxy_for(Target.parse(url), named=None, environment=environment)
    assert (proxy and proxy.url) == expected


@pytest.mark.parametrize(
    ("host", "exceptions", "expected"),
    [
        ("a.b", "", False),
        ("a.b", "*", True),
        ("a.b", "x.y,*", False),
        ("a.b", "a.b", True),
        ("A.b.", "x.y, a.B", True),
        ("a.b", "x.y a.b", True),
        ("c.a.b", "a.b", True),
        ("c.a.b", ".a.b", True),
        ("a.b", ".a.b", True),
        ("ca.b", "a.b", False),
        ("a.b", "c.a.b", False),
        ("a.b", ".", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.0.0/16", True),
        ("10.1.2.3", "10.2.0.0/16", False),
        ("10.1.2.3", "2.3", False),
        ("fd00::1", "[fd00::1]", True),
        ("fd00::1", "fd00::/8", True),
        ("fd00::1", "10.0.0.0/8, x", False),
    ],
)
def test_exceptions(host: str, exceptions: str, expected: bool):
    assert is_excepted(host, exceptions) is expected


@pytest.mark.parametrize("url", ["http://127.0.0.1", "https://a.b", "http://a.b"])
def test_a_named_proxy_is_used_in_any_case_and_an_empty_name_means_none(url: str):
    environment = {"all_proxy": "p:2", "NO_PROXY": "*"}
    named = proxy_for(Target.parse(url), named="p:1", environment=environment)
    assert named.url == "http://p:1"
    environment = {"all_proxy": "p:2"}
    assert proxy_for(Target.parse(url), named="", environment=environment) is None


@pytest.mark.parametrize(
    "text",
    [
        "socks5://user:hunter22@p:1",
        "https://user:hunter22@p:1",
        "http://user:hunter22@",
        "http://user:hunter22@p:99999",
        "http://user:hunter22@p q",
        "http://user:hunter22@[::1",
    ],
)
def test_what_is_no_http_proxy_is_refused_without_repeating_it(text: str):
    with pytest.raises(UsageError) as caught:
        proxy_for(Target.parse("http://a.b"), named=None, environment={"ALL_PROXY": text})
    assert "ALL_PROXY" in str(caught.value)
    assert "hunter22" not in str(caught.value)
    assert caught.value.hint
    proxy_for(Target.parse("http://127.0.0.1"), named=None, environment={"ALL_PROXY": text})


def test_credentials_of_a_proxy_are_decoded():
    proxy = Proxy.parse("http://us%40er:p%3Aw%20d@p:1", "--proxy")
    assert base64.b64decode(proxy.authorization.removeprefix("Basic ")) == b"us@er:p:w d"
    assert proxy.url == "http://p:1"


# Through a proxy


@pytest.fixture(scope="module")
def pem(tmp_path_factory) -> Path:
    """Folder with certificates: of the server, of a client, and one that nobody knows."""
    openssl = which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make certificates with")
    home = tmp_path_factory.mktemp("pem")
    names = "subjectAltName=IP:127.0.0.1,IP:::1,DNS:localhost,DNS:model.test"
    for name in ("server", "client", "other"):
        subprocess.run(
            [
                *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-subj", f"/CN={name}", "-addext", names),
                *("-keyout", str(home / f"{name}.key"), "-out", str(home / f"{name}.pem")),
            ],
            check=True,
            capture_output=True,
        )
    subprocess.run(
        [
            *(openssl, "pkey", "-in", str(home / "client.key"), "-aes256", "-passout", "pass:x1y2"),
            *("-out", str(home / "locked.key")),
        ],
        check=True,
        capture_output=True,
    )
    return home


@pytest.fixture
def tls_server(pem) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem / "server.pem", pem / "server.key")
    return context


def trusting(pem: Path) -> Trust:
    return Trust(authorities=str(pem / "server.pem"))


def test_a_tunnel_is_opened_for_https_and_learns_no_secret(pem, tls_server):
    async def main():
        async with (
            TinyServer({CHAT: GOOD_STREAM}, context=tls_server) as server,
            TinyProxy(server.port) as proxy,
        ):
            reach = Reach(
                environment={"HTTPS_PROXY": f"http://user:hunter22@127.0.0.1:{proxy.port}"},
                headers=(("X-Tenant", "secret-tenant"),),
                trust=trusting(pem),
            )
            channel = channel_to("https://model.test", reach=reach, api_key=KEY)
            return await post(channel, CHAT), proxy.heads, server.requests

    exchange, heads, requests = asyncio.run(main())
    assert exchange.failure is None
    [[first, *lines]] = heads
    assert first == "CONNECT model.test:443 HTTP/1.1"
    names = {line.partition(":")[0] for line in lines}
    assert names == {"Host", "User-Agent", "Proxy-Authorization"}
    credentials = base64.b64encode(b"user:hunter22").decode()
    assert f"Proxy-Authorization: Basic {credentials}" in lines
    assert requests[0].headers["host"] == "model.test"
    assert requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert requests[0].headers["x-tenant"] == "secret-tenant"
    assert "proxy-authorization" not in requests[0].headers
    times = exchange.set_up
    assert times.dns_s is None, "the proxy is named by its address and looks up the target's name"
    assert times.tcp_s + times.tls_s < times.total_s, "the tunnel is a part of its own"


def test_a_tunnel_to_an_ipv6_address_is_asked_for_in_brackets(pem, tls_server):
    async def main():
        async with (
            TinyServer({"/x": [OK]}, context=tls_server) as server,
            TinyProxy(server.port) as proxy,
        ):
            reach = Reach(proxy=f"127.0.0.1:{proxy.port}", trust=trusting(pem))
            return await get(channel_to("https://[::1]:8443", reach=reach)), proxy.heads

    exchange, heads = asyncio.run(main())
    assert exchange.failure is None
    assert heads[0][0] == "CONNECT [::1]:8443 HTTP/1.1"


def test_http_goes_to_the_proxy_in_absolute_form():
    async def main():
        async with TinyServer({"http://model.test:81/base/x": [OK]}) as server:
            reach = Reach(environment={"http_proxy": f"http://us:hunter22@127.0.0.1:{server.port}"})
            channel = channel_to("http://model.test:81/base", reach=reach, api_key=KEY)
            return await get(channel), server.requests

    exchange, [request] = asyncio.run(main())
    assert exchange.reader.status == 200
    assert request.headers["host"] == "model.test:81"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["proxy-authorization"].startswith("Basic ")


def test_a_loopback_endpoint_is_asked_directly_unless_the_proxy_is_named():
    async def main():
        async with TinyServer({"/x": [OK]}) as server:
            url = server.url
            dead = f"127.0.0.1:{free_port()}"
            direct = Reach(environment={"http_proxy": dead, "ALL_PROXY": dead})
            access = Access.to(Target.parse(url), reach=direct)
            exchange = await get(Channel(access))
            named = await get(channel_to(url, reach=Reach(proxy=dead)))
            return exchange.failure, access.port_here == server.port, named.failure, dead

    failure, port_is_known, named, dead = asyncio.run(main())
    assert failure is None
    assert port_is_known
    assert isinstance(named, ConnectFailed)
    assert str(named).startswith(f"Nothing listens at the proxy http://{dead}. Check --proxy")


def test_what_is_behind_a_proxy_is_not_taken_for_this_machine():
    access = Access.to(Target.parse("http://127.0.0.1:8080"), reach=Reach(proxy="p:1"))
    assert (access.is_here, access.port_here) == (False, None)


REFUSALS = [
    (b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", ConnectFailed, "user name and password"),
    (b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", ConnectFailed, "no way to model.test:443"),
    (b"", ConnectFailed, "closed the connection"),
    (b"HTTP/1.1 200", ConnectFailed, "closed the connection"),
    (b"SSH-2.0-OpenSSH_9.6\r\n", ProtocolBroken, "like an HTTP proxy"),
    (b"HTTP/1.1 200 OK\r\n\r\nand more", ProtocolBroken, "goes on talking"),
]


@pytest.mark.parametrize(("says", "kind", "words"), REFUSALS)
def test_a_proxy_that_opens_no_tunnel(says: bytes, kind: type, words: str):
    async def main():
        async with TinyProxy(says=says) as proxy:
            reach = Reach(environment={"https_proxy": f"http://us:hunter22@127.0.0.1:{proxy.port}"})
            channel = channel_to("https://model.test", reach=reach, api_key=KEY)
            return (await get(channel)).failure, f"http://127.0.0.1:{proxy.port}"

    failure, url = asyncio.run(main())
    assert type(failure) is kind
    assert words in str(failure)
    assert url in str(failure)
    assert "https_proxy" in failure.hint
    assert "hunter22" not in str(failure)


def test_a_proxy_that_never_answers():
    async def main():
        async with TinyProxy(hangs=True) as proxy:
            reach = Reach(proxy=f"http://us:hunter22@127.0.0.1:{proxy.port}")
            channel = channel_to("https://model.test", reach=reach)
            return (await get(channel, limits=Limits.short(0.05))).failure, proxy.port

    failure, port = asyncio.run(main())
    assert isinstance(failure, TimedOut)
    assert f"through the proxy http://127.0.0.1:{port} (--proxy) within 0.05 s" in str(failure)


def test_a_proxy_that_never_accepts():
    async def main():
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            reach = Reach(proxy=f"127.0.0.1:{full.getsockname()[1]}")
            channels = [channel_to("http://model.test", reach=reach) for _ in range(8)]
            try:
                for channel in channels:
                    await channel.open(Limits.short(0.05))
                return (await get(channels[-1], limits=Limits.short(0.05))).failure
            finally:
                for channel in channels:
                    channel.close()

    failure = asyncio.run(main())
    assert isinstance(failure, TimedOut)
    assert "through the proxy" in str(failure)


def test_an_unknown_proxy_is_not_confused_with_an_unknown_endpoint():
    reach = Reach(proxy="no-such-proxy.invalid:1")
    failure = asyncio.run(get(channel_to("http://model.test", reach=reach))).failure
    assert isinstance(failure, ConnectFailed)
    assert "no-such-proxy.invalid" in str(failure)
    assert "model.test" not in str(failure)


def test_a_proxy_that_wants_a_password_for_plain_http():
    async def main():
        async with TinyServer({"http://model.test/x": answer({}, 407)}) as server:
            reach = Reach(proxy=f"127.0.0.1:{server.port}")
            return (await get(channel_to("http://model.test", reach=reach))).failure

    failure = asyncio.run(main())
    assert isinstance(failure, ConnectFailed)
    assert failure.http_status == 407
    assert "http://user:password@host:port" in failure.hint


# Redirects


def to(location: str, status: int = 307, *lines: str):
    return answer({}, status, f"Location: {location}", *lines)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_on_the_spot_is_followed_as_it_was_and_restarts_the_clock(status: int):
    async def main():
        asked_ns = []

        def moved(_request):
            asked_ns.append(time.perf_counter_ns())
            return to("/new/x?b=c", status)

        async with TinyServer({"/x": moved, "/new/x?b=c": [OK]}) as server:
            exchange = await post(channel_to(server.url, api_key=KEY))
            return exchange, server.requests, server.connections, asked_ns[0]

    exchange, (old, new), connections, asked_ns = asyncio.run(main())
    assert exchange.reader.status == 200
    assert (exchange.redirects, exchange.retries, connections) == (1, 0, 1)
    assert (new.method, new.body, new.headers) == ("POST", old.body, old.headers)
    assert new.headers["authorization"] == f"Bearer {KEY}"
    assert asked_ns < exchange.sent_ns < exchange.reader.first_byte_ns
    assert exchange.connect_s is not None, "opened for this request"


def test_a_redirect_that_closes_the_connection_is_followed_on_a_new_one():
    async def main():
        routes = {"/x": [*to("y", 301, "Connection: close"), Act.CLOSE], "/y": [OK]}
        async with TinyServer(routes) as server:
            return await post(channel_to(server.url)), server.connections

    exchange, connections = asyncio.run(main())
    assert exchange.reader.status == 200
    assert (exchange.redirects, exchange.retries, connections) == (1, 0, 2)


def test_a_dead_connection_before_a_redirect_is_counted_apart():
    async def main():
        routes = {"/x": in_turn([OK], [Act.CLOSE], to("/y")), "/y": [OK]}
        async with TinyServer(routes) as server:
            channel = channel_to(server.url)
            request = channel.access.request("/x", method="GET")
            await channel.exchange(request, SHORT)
            exchange = await channel.exchange(request, SHORT)
            channel.close()
            return exchange

    exchange = asyncio.run(main())
    assert (exchange.failure, exchange.retries, exchange.redirects) == (None, 1, 1)
    assert exchange.connect_s is not None, "the connection was replaced for this request"


def test_three_redirects_are_followed_and_no_fourth():
    async def main():
        routes = {"/x": to("/1"), "/1": to("2"), "/2": to("./3"), "/3": [OK], "/y": to("/y")}
        async with TinyServer(routes) as server:
            three = await post(channel_to(server.url))
            asked = len(server.requests)
            return three, asked, await post(channel_to(server.url), "/y"), len(server.requests)

    three, asked, endless, in_all = asyncio.run(main())
    assert (three.failure, three.redirects, asked) == (None, 3, 4)
    assert isinstance(endless.failure, HttpRefused)
    assert "more than 3 times" in str(endless.failure)
    assert in_all - asked == 4


def test_the_own_address_in_full_is_on_the_spot():
    async def main():
        async with TinyServer({"/y": [OK]}) as server:
            server.routes["/x"] = to(f"{server.url}/y#part")
            return await post(channel_to(server.url))

    assert asyncio.run(main()).reader.status == 200


def test_a_redirect_through_a_proxy_keeps_the_absolute_form():
    async def main():
        routes = {"http://a.test/x": to("/y"), "http://a.test/y": [OK]}
        async with TinyServer(routes) as server:
            reach = Reach(proxy=f"127.0.0.1:{server.port}")
            return await post(channel_to("http://a.test", reach=reach))

    assert asyncio.run(main()).reader.status == 200


def test_a_redirect_to_elsewhere_is_named_and_hears_nothing():
    async def main():
        async with TinyServer({}) as other, TinyServer({}) as server:
            address = f"127.0.0.1:{other.port}"
            server.routes["/x"] = to(f"http://user:hunter22@{address}/base/v1/x?key={KEY}")
            exchange = await post(channel_to(server.url, api_key=KEY))
            return exchange, address, len(server.requests), other.connections

    exchange, address, asked, other_connections = asyncio.run(main())
    assert isinstance(exchange.failure, HttpRefused)
    assert exchange.failure.http_status == 307
    assert f"http://{address}/base" in str(exchange.failure)
    assert "hunter22" not in str(exchange.failure)
    assert KEY not in str(exchange.failure)
    assert (asked, other_connections) == (1, 0)


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://h:81/x", "https://h:81/x"),
        ("//other/x", "http://other/x"),
        ("http://h/x", "http://h/x"),
        ("http://h:82/v1/models", "http://h:82"),
        ("ftp://h:81/x", "an address that cannot be used"),
        ("http://h:99999/", "an address that cannot be used"),
    ],
)
def test_another_scheme_host_or_port_is_elsewhere(location: str, shown: str):
    with pytest.raises(HttpRefused) as caught:
        led_on(b"POST /x HTTP/1.1\r\n\r\n", redirect_to(location), Target.parse("http://h:81"))
    assert f"redirects to {shown} (HTTP 308)" in str(caught.value)


def redirect_to(location: str) -> ResponseReader:
    reader = ResponseReader()
    reader.status, reader.headers = 308, {"location": location}
    return reader


@given(st.text(st.characters(max_codepoint=255), max_size=40), st.sampled_from(["", "/", "//h:81"]))
def test_no_location_smuggles_anything_into_a_request(text: str, start: str):
    request = b"POST /a/b HTTP/1.1\r\nHost: h:81\r\n\r\n{}"
    try:
        onward = led_on(request, redirect_to(start + text), Target.parse("http://h:81"))
    except HttpRefused:
        return
    if onward is None:
        assert not start + text
        return
    method, path, rest = onward.split(b" ", 2)
    assert (method, rest) == (b"POST", request.split(b" ", 2)[2])
    assert path.startswith(b"/")
    assert all(0x20 < byte < 0x7F for byte in path)


@pytest.mark.parametrize("script", [answer({}, 302), to("/y", 303), to("/y", 300)])
def test_other_answers_are_left_as_they_are(script):
    async def main():
        async with TinyServer({"/x": script}) as server:
            return await post(channel_to(server.url)), len(server.requests)

    exchange, asked = asyncio.run(main())
    assert (exchange.failure, exchange.redirects, asked) == (None, 0, 1)


def test_an_endpoint_behind_redirects_is_measured_and_they_are_counted():
    async def main():
        routes = {
            MODELS: to("/v1/models/"),
            "/v1/models/": models("m"),
            CHAT: to("/v1/chat/completions/", 301),
            "/v1/chat/completions/": stream(delta(content="a"), usage(20, 1)),
        }
        async with TinyServer(routes) as server, await Endpoint.open(server.url) as endpoint:
            return endpoint.models, await endpoint.measure(PROBE, 1)

    names, record = asyncio.run(main())
    assert names == ["m"]
    assert (record.error, record.redirects, record.counts.prompt_tokens) == (None, 1, 20)


def test_an_endpoint_that_moved_altogether_is_named():
    async def main():
        moved = to("https://api.test/v1", 301)
        async with TinyServer({}, every=moved) as server:
            await Endpoint.open(server.url)

    with pytest.raises(HttpRefused, match=r"redirects to https://api\.test "):
        asyncio.run(main())


# Headers


def sent_with(*lines: str, api_key: str | None = None) -> list[str]:
    reach = Reach(headers=headers_of(list(lines)))
    access = Access.to(Target.parse("http://h:81"), api_key=api_key, reach=reach)
    return access.request("/x", body={}).decode().partition("\r\n\r\n")[0].split("\r\n")


def test_headers_are_added_repeated_replaced_and_left_out():
    lines = sent_with(
        "X-A: 1", "X-A:2 ", "authorization: Basic abc", "HOST: name", "User-Agent:", api_key=KEY
    )
    assert lines[0] == "POST /x HTTP/1.1"
    assert {"X-A: 1", "X-A: 2", "authorization: Basic abc", "HOST: name"} <= set(lines)
    names = [line.partition(":")[0].lower() for line in lines[1:]]
    assert [names.count(name) for name in ("authorization", "host", "user-agent")] == [1, 1, 0]
    assert KEY not in "".join(lines)


@pytest.mark.parametrize(
    "line",
    [
        f"Bearer {KEY}",
        f"Authorization Bearer: {KEY}",
        f": {KEY}",
        f"X: {KEY}\r\nY: b",
        f"X: {KEY}\nY: b",
        f"X: {KEY}\x00",
        f"X: {KEY}\x7f",
        f"X: {KEY}\u00fc",
        f"X\r\n: {KEY}",
        "Content-Length: 3",
        "Transfer-encoding: chunked",
        "Connection: close",
    ],
)
def test_what_is_no_header_is_refused_without_repeating_it(line: str):
    with pytest.raises(UsageError, match="--header number 2") as caught:
        headers_of(["X: y", line])
    assert KEY not in str(caught.value)


@given(st.text(max_size=30))
def test_any_line_is_one_clean_header_or_a_usage_error(line: str):
    try:
        lines = sent_with(line)
    except UsageError:
        return
    plain = sent_with()
    assert len(plain) - 1 <= len(lines) <= len(plain) + 1
    assert all(entry.isprintable() or "\t" in entry for entry in lines)


def test_a_key_that_the_server_repeats_is_not_recorded():
    async def main():
        def denied(request):
            seen = " ".join(request.headers.values())
            return answer({"error": {"message": f"Invalid key in {seen}"}}, 401)

        reach = Reach(headers=headers_of(["X-Token: Token another-secret"]))
        async with (
            TinyServer({MODELS: models("m"), CHAT: denied}) as server,
            await Endpoint.open(server.url, api_key=KEY, reach=reach) as endpoint,
        ):
            return await endpoint.measure(PROBE, 1)

    message = asyncio.run(main()).error.message
    assert "Invalid key in" in message
    assert "***" in message
    assert KEY not in message
    assert "another-secret" not in message


def test_nothing_secret_is_shown_by_the_objects_that_hold_it():
    reach = Reach(
        proxy="http://user:hunter22@p:1",
        environment={"ALL_PROXY": "http://user:hunter22@p:1"},
        headers=headers_of([f"X: {KEY}"]),
    )
    access = Access.to(Target.parse("http://h"), api_key=KEY, reach=reach)
    assert access.proxy.authorization
    shown = f"{access!r} {reach!r} {access.proxy!r}"
    assert KEY not in shown
    assert "hunter22" not in shown
    assert access.proxy.authorization.split()[1] not in shown


# Certificates


def failure_over_tls(context: ssl.SSLContext, trust: Trust) -> EndpointError | None:
    async def main():
        async with TinyServer({"/x": [OK]}, context=context) as server:
            # The server's side of a refused handshake is no concern of these tests.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            return (await get(channel_to(server.url, reach=Reach(trust=trust)))).failure

    return asyncio.run(main())


def test_the_certificate_is_checked_unless_told_otherwise(pem, tls_server):
    failure = failure_over_tls(tls_server, Trust())
    assert isinstance(failure, ConnectFailed)
    assert "--cacert" in failure.hint
    assert "--insecure" in failure.hint
    other = Trust(authorities=str(pem / "other.pem"))
    assert isinstance(failure_over_tls(tls_server, other), ConnectFailed)
    assert failure_over_tls(tls_server, trusting(pem)) is None
    assert failure_over_tls(tls_server, Trust(insecure=True)) is None


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_certificate_is_shown(pem, tls_server, version):
    tls_server.verify_mode = ssl.CERT_REQUIRED
    tls_server.load_verify_locations(pem / "client.pem")
    tls_server.minimum_version = tls_server.maximum_version = version
    shown = Trust(
        authorities=str(pem / "server.pem"),
        certificate=str(pem / "client.pem"),
        key=str(pem / "client.key"),
    )
    assert failure_over_tls(tls_server, shown) is None
    missing = failure_over_tls(tls_server, trusting(pem))
    assert isinstance(missing, EndpointError)
    if version == ssl.TLSVersion.TLSv1_2:  # 1.3 refuses after the handshake, beside our request
        assert "--cert" in missing.hint


def test_a_missing_client_certificate_is_said_plainly():
    error = ssl.SSLError(1, "[SSL] tlsv13 alert certificate required")
    error.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    said = failures.translated(error, Target.parse("https://h"))
    assert str(said).startswith("https://h wants to see a client certificate. Pass one with --cert")


def test_certificate_and_key_may_share_a_file(pem, tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes((pem / "client.pem").read_bytes() + (pem / "client.key").read_bytes())
    assert Trust(certificate=str(both)).context()


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"authorities": "absent.pem"}, "absent.pem"),
        ({"authorities": "server.key"}, "server.key"),
        ({"certificate": "absent.pem"}, "absent.pem"),
        ({"certificate": "client.pem"}, "client.pem"),
        ({"certificate": "client.pem", "key": "other.key"}, "other.key"),
        ({"certificate": "client.pem", "key": "locked.key"}, "encrypted"),
    ],
)
def test_files_that_cannot_be_used(pem, options: dict, names: str):
    trust = Trust(**{name: str(pem / file) for name, file in options.items()})
    with pytest.raises(InputError, match=names) as caught:
        Access.to(Target.parse("https://h"), reach=Reach(trust=trust))
    assert caught.value.hint


# The clock


def test_name_socket_and_tls_are_timed_apart(pem, tls_server):
    async def main():
        async with TinyServer({"/x": [OK]}, context=tls_server) as server:
            reach = Reach(trust=trusting(pem))
            options = {"reach": reach, "stamped_by": "user"}
            url = f"https://localhost:{server.port}"
            named = await get(channel_to(url, clock=TickingClock(), **options))
            return named, await get(channel_to(server.url, clock=TickingClock(), **options))

    named, direct = asyncio.run(main())
    ns = pytest.approx(1e-9)
    times = named.set_up
    assert (times.dns_s, times.tcp_s, times.tls_s) == (ns, ns, ns), "one look before, one after"
    assert times.total_s == pytest.approx(7e-9)
    assert direct.set_up.dns_s is None, "an address is not looked up"
    assert (direct.set_up.tcp_s, direct.set_up.tls_s) == (ns, ns)


def test_the_times_are_in_the_record_of_the_request_that_opened_the_connection(pem, tls_server):
    async def main():
        close = "Connection: close"
        routes = {MODELS: [*answer({"data": [{"id": "m"}]}, 200, close), Act.CLOSE]}
        routes[CHAT] = in_turn(stream(delta(content="a")), stream(delta(content="b")))
        async with (
            TinyServer(routes, context=tls_server) as server,
            await Endpoint.open(server.url, reach=Reach(trust=trusting(pem))) as endpoint,
        ):
            await endpoint.round_trip_s()
            return [(await endpoint.measure(PROBE, number)).client for number in (1, 2)]

    first, second = asyncio.run(main())
    assert 0 < first.tcp_s + first.tls_s < first.connect_s
    assert first.dns_s is None
    assert second.connect_s is second.tcp_s is second.tls_s is None


class WatchedSocket:
    """A real socket that writes down what its sends did, and when the first one was refused."""

    def __init__(self, sock: socket.socket, log: list, full: asyncio.Event):
        self._sock = sock
        self._log = log
        self._full = full

    def send(self, data) -> int:
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            self._full.set()
            raise
        self._log.append((time.perf_counter_ns(), sent))
        return sent

    def recv(self, size: int) -> bytes:
        return self._sock.recv(size)

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()


@pytest.mark.parametrize("encrypted", [False, True])
def test_the_clock_starts_before_the_last_send_to_a_slow_reader(pem, tls_server, encrypted: bool):
    """The reader takes nothing until our side is full; the body is larger than all buffers."""
    body = b"p" * 24_000_000

    async def main():
        full, closed, log, reads_from_ns = asyncio.Event(), asyncio.Event(), [], []

        async def slow(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            await full.wait()
            reads_from_ns.append(time.perf_counter_ns())
            await reader.readexactly(len(body))
            writer.write(OK)
            await reader.read()
            writer.close()
            await writer.wait_closed()
            closed.set()

        server = await asyncio.start_server(
            slow, "127.0.0.1", 0, ssl=tls_server if encrypted else None
        )
        port = server.sockets[0].getsockname()[1]
        clock = MonotonicClock()
        connection = await connect(
            Target.parse(f"http{'s' if encrypted else ''}://127.0.0.1:{port}"),
            limit_s=5,
            clock=clock,
            receiver=UserReceiver(clock),
            context=trusting(pem).context(),
        )
        connection.sock = WatchedSocket(connection.sock, log, full)
        try:
            head_lines = f"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
            exchange = await connection.exchange(head_lines.encode() + body, SHORT)
        finally:
            connection.close()
            server.close()
        await closed.wait()
        return exchange, log, reads_from_ns[0]

    exchange, log, reads_from_ns = asyncio.run(main())
    assert exchange.failure is None
    assert len(log) > 2
    assert sum(sent for _, sent in log) >= len(body)
    before_last_ns, last_ns = log[-2][0], log[-1][0]
    assert reads_from_ns < exchange.sent_ns
    assert before_last_ns < exchange.sent_ns < last_ns
    assert last_ns <= exchange.reader.first_byte_ns


# The command line


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?")
    add_connection_arguments(parser)
    return parser.parse_args(words)


def test_options_become_the_way_to_the_endpoint(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://from-environment:3")
    words = ["https://a.b", "-H", "X-A: 1", "--header", "X-B: 2", "--insecure", "--cacert", "c"]
    reach = access_options(parsed(*words, "--cert", "d", "--key", "e"))
    assert reach.headers == (("X-A", "1"), ("X-B", "2"))
    assert reach.trust == Trust(insecure=True, authorities="c", certificate="d", key="e")
    assert reach.proxy_before(Target.parse("https://a.b")).url == "http://from-environment:3"
    named = access_options(parsed("https://a.b", "--proxy", "p:1"))
    assert named.proxy_before(Target.parse("https://a.b")).url == "http://p:1"
    none = access_options(parsed("https://a.b", "-x", ""))
    assert none.proxy_before(Target.parse("https://a.b")) is None
    assert access_options(parsed("http://h", "--unix-socket", "/s")).unix_socket == "/s"


@pytest.mark.parametrize(
    "words",
    [
        ["--unix-socket", "/s"],
        ["http://h", "--key", "k"],
        ["http://h", "--unix-socket", "/s", "--proxy", "p:1"],
        ["http://h", "-H", "nonsense"],
    ],
)
def test_options_that_cannot_be_meant(words: list[str]):
    with pytest.raises(UsageError):
        access_options(parsed(*words))


def test_help_waits_for_nothing_heavy():
    code = (
        "import sys; import twospeed.cli.measuring.connection_options;"
        "sys.exit(bool({'asyncio', 'ssl', 'httptools'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
