"""One socket, one request: the clock, the stamps, the limits and the faults."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
from shutil import which

import pytest
from tiny_server import (
    CHAT,
    GOOD_STREAM,
    MODELS,
    STREAM_HEAD,
    Act,
    TinyServer,
    answer,
    chunk,
    delta,
    head,
    in_turn,
    models,
    stream,
)

from twospeed.records.errors import (
    ConnectFailed,
    ProtocolBroken,
    StreamBroken,
    TimedOut,
    UsageError,
)
from twospeed.sources.live.channel import Access, Channel
from twospeed.sources.live.clock import MonotonicClock
from twospeed.sources.live.connecting import connect
from twospeed.sources.live.connection import Connection
from twospeed.sources.live.receiver import UserReceiver
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Limits

SHORT = Limits(connect_s=5, headers_s=5, first_text_s=5, gap_s=5, total_s=5)
OK = head(200, "text/plain", "Content-Length: 2") + b"ok"


class StepClock:
    """Advances by one at each look; writes down that it was looked at."""

    def __init__(self, log: list):
        self.log = log
        self.now = 0

    def now_ns(self) -> int:
        self.now += 1
        self.log.append(("clock", self.now))
        return self.now


class SlowSocket:
    """A real socket that takes few bytes at a time and writes down each send."""

    def __init__(self, sock: socket.socket, log: list, *, most: int, refuse_next: bool):
        self._sock = sock
        self._log = log
        self._most = most
        self._refuse_next = refuse_next
        self._refuses = refuse_next

    def send(self, data) -> int:
        if self._refuse_next:
            self._refuse_next = False
            raise BlockingIOError
        self._refuse_next = self._refuses
        sent = self._sock.send(data[: self._most])
        self._log.append(("send", sent))
        return sent

    def recv(self, size: int) -> bytes:
        return self._sock.recv(size)

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()


def channel_to(server: TinyServer, **options) -> Channel:
    return Channel(Access.to(Target.parse(server.url), **options))


def get(channel: Channel, path: str = "/x", limits: Limits = SHORT):
    return channel.exchange(channel.access.request(path, method="GET"), limits)


def run(routes, talk, **server_options):
    async def main():
        async with TinyServer(routes, **server_options) as server:
            channel = channel_to(server)
            try:
                return await talk(server, channel)
            finally:
                channel.close()

    return asyncio.run(main())


def exchanged_over_a_slow_socket(most: int, *, refuse_first: bool):
    """One exchange of a 100-byte request, answered once all of it is there; and its log."""

    async def main():
        near, far = socket.socketpair()
        for sock in (near, far):
            sock.setblocking(False)  # noqa: FBT003
        log: list = []
        clock = StepClock(log)
        slow = SlowSocket(near, log, most=most, refuse_next=refuse_first)
        connection = Connection(
            slow, Target.parse("http://h"), clock=clock, receiver=UserReceiver(clock)
        )

        async def answer_the_whole():
            loop = asyncio.get_running_loop()
            received = 0
            while received < 100:
                received += len(await loop.sock_recv(far, 100))
            await loop.sock_sendall(far, OK)

        try:
            exchange, _ = await asyncio.gather(
                connection.exchange(b"r" * 100, SHORT), answer_the_whole()
            )
            return exchange, log
        finally:
            connection.close()
            far.close()

    return asyncio.run(main())


def test_the_clock_starts_right_before_the_send_of_the_last_byte():
    exchange, log = exchanged_over_a_slow_socket(40, refuse_first=True)
    assert [entry for entry in log if entry[0] == "send"] == [
        ("send", 40),
        ("send", 40),
        ("send", 20),
    ]
    last = log.index(("send", 20))
    assert log[last - 1] == ("clock", exchange.sent_ns)
    assert exchange.failure is None


def test_a_whole_request_in_one_send_is_stamped_before_it():
    exchange, log = exchanged_over_a_slow_socket(1000, refuse_first=False)
    assert log[:2] == [("clock", 1), ("send", 100)]
    assert exchange.sent_ns == 1
    assert exchange.reader.end_ns == 2, "one stamp per read"


def test_connecting_is_timed_apart_and_only_once():
    async def talk(server, channel):
        return await get(channel), await get(channel), server.connections

    first, second, connections = run({"/x": [OK]}, talk)
    assert first.connect_s > 0
    assert second.connect_s is None
    assert connections == 1
    assert first.clock == ("kernel" if sys.platform == "linux" else "user")


def test_stamps_never_decrease_and_follow_the_send():
    async def talk(server, channel):
        return await channel.exchange(channel.access.request(CHAT, body={}), SHORT)

    exchange = run({CHAT: GOOD_STREAM}, talk)
    stamps = [segment.at_ns for segment in exchange.reader.segments]
    assert stamps == sorted(stamps)
    assert exchange.sent_ns < stamps[0]
    assert len(set(stamps)) >= 3, "the pauses cut the stream into at least three reads"


def test_the_request_is_well_formed():
    async def main():
        async with TinyServer({"/base/x": [OK]}) as server:
            target = Target.parse(server.url + "/base/v1")
            channel = Channel(Access.to(target, api_key="k3y"))
            await channel.exchange(channel.access.request("/x", body={"a": "é"}), SHORT)
            channel.close()
            return server.port, server.requests[0]

    port, request = asyncio.run(main())
    assert request.headers["host"] == f"127.0.0.1:{port}"
    assert request.headers["connection"] == "keep-alive"
    assert request.headers["authorization"] == "Bearer k3y"
    assert request.headers["content-type"] == "application/json"
    assert "accept" in request.headers
    assert request.json == {"a": "é"}


@pytest.mark.parametrize("key", ["two\r\nlines", "sch\u00fcssel"])
def test_a_key_that_no_header_can_carry(key: str):
    with pytest.raises(UsageError):
        Access.to(Target.parse("8080"), api_key=key)


def test_a_server_that_closes_after_each_response_is_followed_silently():
    async def talk(server, channel):
        first = await get(channel)
        while channel._connection.usable():  # noqa: ASYNC110
            await asyncio.sleep(0)
        return first, await get(channel), server.connections

    script = [head(200, "text/plain", "Content-Length: 2", "Connection: keep-alive") + b"ok"]
    first, second, connections = run({"/x": [*script, Act.CLOSE]}, talk)
    assert [first.failure, second.failure] == [None, None]
    assert second.connect_s is not None
    assert connections == 2


@pytest.mark.parametrize("death", [Act.CLOSE, Act.ABORT])
def test_a_connection_that_dies_under_a_request_is_replaced_once_and_counted(death: Act):
    async def talk(server, channel):
        first = await get(channel)
        second = await get(channel)
        return first, second, server.connections

    first, second, connections = run({"/x": in_turn([OK], [death], [OK])}, talk)
    assert (first.retries, second.retries) == (0, 1)
    assert second.failure is None
    assert second.connect_s is not None
    assert connections == 2


def test_it_is_not_replaced_twice():
    async def talk(server, channel):
        await get(channel)
        return await get(channel), len(server.requests)

    exchange, requests = run({"/x": in_turn([OK], [Act.CLOSE])}, talk)
    assert isinstance(exchange.failure, StreamBroken)
    assert "without an answer" in str(exchange.failure)
    assert requests == 3


def test_a_fresh_connection_that_closes_is_not_retried():
    async def talk(server, channel):
        return await get(channel), server.connections

    exchange, connections = run({"/x": [Act.CLOSE]}, talk)
    assert isinstance(exchange.failure, StreamBroken)
    assert (exchange.retries, connections) == (0, 1)


def test_bytes_out_of_turn_spoil_a_connection():
    async def talk(server, channel):
        await get(channel)
        while channel._connection.usable():  # noqa: ASYNC110
            await asyncio.sleep(0)
        return (await get(channel)).failure, server.connections

    assert run({"/x": [OK, 0.001, b"HTTP/1.1 408 Late\r\n\r\n"]}, talk) == (None, 2)


def test_a_break_in_the_middle_keeps_what_had_arrived():
    async def talk(server, channel):
        return await get(channel, CHAT)

    exchange = run({CHAT: stream(delta(content="Once"), end=[Act.CLOSE])}, talk)
    assert isinstance(exchange.failure, StreamBroken)
    assert "mid-answer" in str(exchange.failure)
    assert b"Once" in exchange.reader.segments[0].data


def test_a_reset_in_the_middle_is_said_plainly():
    async def talk(server, channel):
        return await get(channel, CHAT)

    exchange = run({CHAT: [STREAM_HEAD + chunk(delta(content="a")), 0.005, Act.ABORT]}, talk)
    assert isinstance(exchange.failure, StreamBroken)
    assert exchange.failure.hint


@pytest.mark.parametrize(
    ("script", "limits", "stage"),
    [
        ([Act.HANG], Limits(headers_s=0.03, first_text_s=5, total_s=5), "did not answer"),
        ([STREAM_HEAD, Act.HANG], Limits(headers_s=5, first_text_s=0.03, total_s=5), "no text"),
        (
            [STREAM_HEAD + chunk(delta(content="a")), Act.HANG],
            Limits(headers_s=5, first_text_s=5, gap_s=0.03, total_s=5),
            "stalled",
        ),
        (
            [STREAM_HEAD + chunk(delta(content="a")), Act.HANG],
            Limits(headers_s=5, first_text_s=5, gap_s=5, total_s=0.03),
            "not complete",
        ),
    ],
)
def test_each_stage_has_its_limit_and_its_words(script, limits: Limits, stage: str):
    async def talk(server, channel):
        exchange = await get(channel, CHAT, limits)
        return server.url, exchange, channel._connection.open

    url, exchange, still_open = run({CHAT: script}, talk)
    assert isinstance(exchange.failure, TimedOut)
    assert stage in str(exchange.failure)
    assert url in str(exchange.failure)
    assert exchange.failure.hint
    assert not still_open


def test_a_long_stream_is_no_stall_and_its_pings_are_no_text():
    """The bytes of a long stream are let go of while it arrives; its limits go on."""
    burst = [chunk(delta(content="x" * 300))] * 60
    slow = [step for _ in range(3) for step in (0.12, chunk(delta(content="y" * 9_000)))]
    pings = [step for _ in range(40) for step in (0.03, chunk(b": ping\n\n"))]
    limits = Limits(headers_s=5, first_text_s=5, gap_s=0.2, total_s=5)

    async def talk(server, channel):
        request = channel.access.request(CHAT, body={})
        return await channel.exchange(request, limits, None, "openai_chat")

    exchange = run({CHAT: [STREAM_HEAD, *burst, *slow, *pings]}, talk)
    assert isinstance(exchange.failure, TimedOut)
    assert "stalled" in str(exchange.failure)
    assert [len(event.text) for event in exchange.reading.finish().text] == [300] * 60 + [9_000] * 3


def test_a_response_beyond_the_bound_is_cut_off():
    async def talk(server, channel):
        return await get(channel, "/x", Limits(response_bytes=2**20))

    body = b"x" * 2**21
    exchange = run({"/x": answer(body)}, talk)
    assert isinstance(exchange.failure, ProtocolBroken)
    assert "1 MiB" in str(exchange.failure)


def test_bodies_larger_than_the_socket_buffer_pass_both_ways():
    async def talk(server, channel):
        request = channel.access.request("/x", body={"prompt": "p" * 8_000_000})
        return await channel.exchange(request, SHORT), len(server.requests[0].body)

    exchange, received = run({"/x": answer(b"y" * 8_000_000)}, talk)
    assert exchange.failure is None
    assert received > 8_000_000
    assert sum(len(segment.data) for segment in exchange.reader.segments) == 8_000_000


def test_an_early_refusal_of_a_large_request_is_heard():
    """A server that answers without reading the body, then closes."""

    async def talk(server, channel):
        request = channel.access.request("/x", body={"prompt": "p" * 20_000_000})
        return await channel.exchange(request, SHORT)

    refusal = [head(413, "application/json", "Content-Length: 2") + b"{}", 0.01, Act.CLOSE]
    exchange = run({"/x": refusal}, talk, reads_bodies=False)
    assert exchange.reader.status == 413
    assert exchange.failure is None


def test_cancelling_closes_the_socket():
    async def talk(server, channel):
        task = asyncio.create_task(get(channel, CHAT))
        while not server.requests:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not server.closed_by_client:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        return channel._connection.open

    assert run({CHAT: [STREAM_HEAD, 0.001, chunk(delta(content="x")), Act.HANG]}, talk) is False


def test_not_http():
    async def talk(server, channel):
        return (await get(channel)).failure

    failure = run({"/x": [b"SSH-2.0-OpenSSH_9.6\r\n", Act.HANG]}, talk)
    assert isinstance(failure, ProtocolBroken)
    assert "does not answer in HTTP" in str(failure)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def failure_at(url: str):
    async def main():
        channel = Channel(Access.to(Target.parse(url)))
        return (await get(channel)).failure

    return asyncio.run(main())


def test_nothing_listens():
    port = free_port()
    failure = failure_at(f"http://127.0.0.1:{port}")
    assert isinstance(failure, ConnectFailed)
    assert str(failure) == (
        f"Nothing listens at http://127.0.0.1:{port}. Start the server or give another URL."
    )


def test_an_unknown_name():
    failure = failure_at("http://no-such-name.invalid:1")
    assert isinstance(failure, ConnectFailed)
    assert "no-such-name.invalid" in str(failure)
    assert failure.hint


def test_a_listener_that_never_accepts():
    async def main():
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            port = full.getsockname()[1]
            clock = MonotonicClock()
            options = {"limit_s": 0.05, "clock": clock, "receiver": UserReceiver(clock)}
            fillers = []
            try:
                for _ in range(8):
                    filler = await connect(Target.parse(str(port)), **options)
                    fillers.append(filler)
            finally:
                for connection in fillers:
                    connection.close()

    with pytest.raises(TimedOut, match=r"No connection to .* within 0\.05 s"):
        asyncio.run(main())


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")
def test_ipv6_and_a_name_with_two_addresses():
    async def talk(server, channel):
        direct = await get(channel)
        named = Channel(Access.to(Target.parse(f"http://localhost:{server.port}")))
        try:
            return direct, await get(named), server.requests[0].headers["host"], server.port
        finally:
            named.close()

    direct, named, host, port = run({"/x": [OK]}, talk, host="::1")
    assert direct.failure is None
    assert host == f"[::1]:{port}"
    # Where localhost is only 127.0.0.1, nobody listens there.
    assert named.failure is None or isinstance(named.failure, ConnectFailed)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    openssl = which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    home = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-keyout", str(home / "key.pem"), "-out", str(home / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    return home


@pytest.fixture
def tls_server(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return context


def test_tls_with_a_trusted_certificate(certificate, tls_server):
    trust = ssl.create_default_context(cafile=str(certificate / "cert.pem"))

    async def main():
        routes = {CHAT: GOOD_STREAM, "/x": answer(b"y" * 3_000_000)}
        async with TinyServer(routes, context=tls_server) as server:
            channel = channel_to(server, context=trust)
            try:
                body = {"prompt": "p" * 1_000_000}
                large = await channel.exchange(channel.access.request("/x", body=body), SHORT)
                streamed = await channel.exchange(channel.access.request(CHAT, body={}), SHORT)
                return large, streamed, server.connections
            finally:
                channel.close()

    large, streamed, connections = asyncio.run(main())
    assert [large.failure, streamed.failure] == [None, None]
    assert sum(len(segment.data) for segment in large.reader.segments) == 3_000_000
    assert streamed.sent_ns < streamed.reader.first_byte_ns
    assert connections == 1, "session tickets do not count as bytes out of turn"


def test_tls_with_a_certificate_that_nobody_signed(tls_server):
    async def main():
        async with TinyServer({"/x": [OK]}, context=tls_server) as server:
            # The server's side of a refused handshake is no concern of this test.
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            return (await get(channel_to(server))).failure

    failure = asyncio.run(main())
    assert isinstance(failure, ConnectFailed)
    assert "certificate" in str(failure)
    assert "SSL_CERT_FILE" in failure.hint


def test_https_asked_of_a_plain_server():
    async def main():
        plain = [head(400, "text/plain") + b"no", Act.CLOSE]
        async with TinyServer({}, every=plain) as server:
            return (
                await get(Channel(Access.to(Target.parse(f"https://{server.url[7:]}"))))
            ).failure

    failure = asyncio.run(main())
    assert isinstance(failure, ConnectFailed)
    assert "http://" in failure.hint


def test_http_asked_of_a_tls_server(tls_server):
    async def main():
        async with TinyServer({"/x": [OK]}, context=tls_server) as server:
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            plain = Target.parse(server.url.replace("https", "http"))
            return (await get(Channel(Access.to(plain)))).failure

    failure = asyncio.run(main())
    # OpenSSL says so in a TLS alert, or just closes.
    assert isinstance(failure, ProtocolBroken | StreamBroken)
    if isinstance(failure, ProtocolBroken):
        assert "https://" in failure.hint


def test_models_can_be_asked_over_a_kept_connection():
    async def talk(server, channel):
        exchanges = [await get(channel, MODELS) for _ in range(3)]
        return [exchange.failure for exchange in exchanges], server.connections

    assert run({MODELS: models("a")}, talk) == ([None] * 3, 1)
