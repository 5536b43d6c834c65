"""The short way to streams: the same exchanges, and nothing else of the loop waits for them."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
import time

import pytest
from tiny_server import (
    CHAT,
    GOOD_STREAM,
    LAST_CHUNK,
    MODELS,
    STREAM_HEAD,
    Act,
    TinyServer,
    answer,
    chunk,
    delta,
    models,
    stream,
)

from twospeed.records.errors import TimedOut
from twospeed.records.request_record import Probe
from twospeed.sources.live.channel import Access, Channel
from twospeed.sources.live.clock import MonotonicClock
from twospeed.sources.live.endpoint import Endpoint
from twospeed.sources.live.load import Load, ready_load
from twospeed.sources.live.receiver import UserReceiver
from twospeed.sources.live.stream_loop import StreamSelector, stream_loop, stream_selector
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Limits
from twospeed.sources.live.transfer import Transfer

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="epoll is Linux's")

SHORT = Limits(connect_s=5, headers_s=5, first_text_s=5, gap_s=5, total_s=5)


def run(main):
    with asyncio.Runner(loop_factory=stream_loop) as runner:
        return runner.run(main())


def exchanged(script, *, limits: Limits = SHORT, body=None, on_text=None):
    """One exchange with a server in the same loop, and the streams that are still watched."""

    async def main():
        async with TinyServer({CHAT: script}) as server:
            channel = Channel(Access.to(Target.parse(server.url)))
            try:
                request = channel.access.request(CHAT, body=body or {})
                exchange = await channel.exchange(request, limits, on_text, "openai_chat")
            finally:
                channel.close()
            return exchange, watched()

    return run(main)


def watched() -> list[int]:
    return list(stream_selector(asyncio.get_running_loop())._streams)


def test_a_stream_is_read_to_its_end_beside_a_server_in_the_same_loop():
    exchange, still_watched = exchanged(GOOD_STREAM)
    assert exchange.failure is None
    assert [event.text for event in exchange.reading.finish().text] == ["Once", " upon"]
    assert still_watched == []


def test_a_long_stream_is_read_while_it_arrives():
    twenty = [delta(content="x" * 300)] * 20
    script = stream(*[step for _ in range(10) for step in (*twenty, 0.002)])
    exchange, _ = exchanged(script)
    assert len(exchange.reader.segments) < 100
    assert len(exchange.reading.finish().text) == 200


def test_whoever_watches_is_told():
    heard: list[float] = []
    exchanged(GOOD_STREAM, on_text=heard.append)
    assert len(heard) >= 2
    assert heard == sorted(heard)


def test_a_stall_is_noticed_in_time():
    script = [STREAM_HEAD + chunk(delta(content="a")), Act.HANG]
    exchange, still_watched = exchanged(script, limits=Limits(gap_s=0.03, total_s=5))
    assert isinstance(exchange.failure, TimedOut)
    assert still_watched == []


def test_a_body_larger_than_the_socket_buffer_goes_out():
    exchange, _ = exchanged(answer({"error": "no"}, 400), body={"prompt": "p" * 4_000_000})
    assert exchange.failure is None
    assert exchange.reader.status == 400


def test_cancelling_ends_the_watch():
    async def main():
        script = [STREAM_HEAD + chunk(delta(content="a")), Act.HANG]
        async with TinyServer({CHAT: script}) as server:
            channel = Channel(Access.to(Target.parse(server.url)))
            request = channel.access.request(CHAT, body={})
            heard = asyncio.Event()
            task = asyncio.create_task(channel.exchange(request, SHORT, lambda _: heard.set()))
            await heard.wait()
            before = watched()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return len(before), watched()

    assert run(main) == (1, [])


def test_many_streams_at_once():
    async def main():
        routes = {MODELS: models("tiny"), CHAT: GOOD_STREAM}
        async with TinyServer(routes) as server, await Endpoint.open(server.url) as endpoint:
            probe = Probe(step="curve", prompt_tokens=60, output_tokens=2)
            records = []
            ready = await ready_load(endpoint, Load(probe=probe, requests=60, concurrency=20))
            await ready.run(records.append)
            return records, watched()

    records, still_watched = run(main)
    assert len(records) == 60
    assert [record.error for record in records if record.error] == []
    assert still_watched == []


class Silent:
    """A response over a socket pair from another thread, while nothing else goes on."""

    def __init__(self, *pieces: bytes) -> None:
        self._near, self._far = socket.socketpair()
        self._near.setblocking(False)  # noqa: FBT003
        self._pieces = pieces
        self._thread = threading.Thread(target=self._speak)
        clock = MonotonicClock()
        self.transfer = Transfer(
            self._near,
            Target.parse("http://h"),
            clock=clock,
            receiver=UserReceiver(clock),
            tls=None,
            limits=SHORT,
            dialect="openai_chat",
        )

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.transfer.stop()
        self._thread.join()
        self._near.close()
        self._far.close()

    def _speak(self) -> None:
        self._far.recv(100)
        for piece in self._pieces:
            time.sleep(0.01)
            self._far.sendall(piece)
        time.sleep(0.1)
        self.held = list(self.transfer.reader.segments)


def test_a_response_ends_at_once_where_nothing_else_wakes_the_loop():
    async def main():
        with Silent(STREAM_HEAD, chunk(delta("stop", content="a")) + LAST_CHUNK) as silent:
            started_s = time.monotonic()
            await silent.transfer.run(b"request")
            return time.monotonic() - started_s

    assert run(main) < 1.0


def test_a_long_body_is_let_go_of_where_nothing_else_wakes_the_loop():
    async def main():
        with Silent(STREAM_HEAD, chunk(delta(content="x" * 300)) * 60) as silent:
            task = asyncio.create_task(silent.transfer.run(b"request"))
            await asyncio.sleep(0.5)
            task.cancel()
            return silent.transfer.reader.bytes_seen, silent.held

    seen, held = run(main)
    assert seen > 20_000
    assert held == []


class Flood:
    """A socket that is always readable, and a callback that leaves it so."""

    def __init__(self) -> None:
        self.near, self.far = socket.socketpair()
        self.far.send(b"x")
        self.calls = 0
        self.selector = stream_selector(asyncio.get_running_loop())
        self.selector.add(self.near.fileno(), self.on_readable)

    def on_readable(self) -> bool:
        self.calls += 1
        return False

    def stop(self) -> None:
        self.selector.remove(self.near.fileno())
        self.near.close()
        self.far.close()


def test_timers_come_while_streams_never_rest():
    async def main():
        flood = Flood()
        await asyncio.sleep(0.01)
        flood.stop()
        return flood.calls

    assert run(main) > 10


def test_other_sockets_and_threads_come_while_streams_never_rest():
    async def main():
        flood, loop = Flood(), asyncio.get_running_loop()
        called = asyncio.Event()
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(called.set,))
        thread.start()
        await called.wait()
        near, far = socket.socketpair()
        near.setblocking(False)  # noqa: FBT003
        far.send(b"y")
        data = await loop.sock_recv(near, 1)
        for sock in (near, far):
            sock.close()
        thread.join()
        flood.stop()
        return data

    assert run(main) == b"y"


def test_a_callback_that_leaves_work_wakes_the_loop():
    async def main():
        loop = asyncio.get_running_loop()
        near, far = socket.socketpair()
        done = loop.create_future()

        def on_readable() -> bool:
            done.set_result(near.recv(1))
            return True

        selector = stream_selector(loop)
        selector.add(near.fileno(), on_readable)
        far.send(b"z")
        data = await done
        selector.remove(near.fileno())
        selector.remove(near.fileno())
        for sock in (near, far):
            sock.close()
        return data

    assert run(main) == b"z"


def test_without_streams_it_is_a_selector_like_any_other():
    selector = StreamSelector()
    near, far = socket.socketpair()
    try:
        assert selector.select(0) == []
        selector.register(near, select.EPOLLIN, "first")
        far.send(b"x")
        ((key, _),) = selector.select(1)
        assert key.data == "first"
        selector.modify(near, select.EPOLLIN, "second")
        assert selector.get_key(near).data == "second"
        selector.unregister(near)
        assert dict(selector.get_map()) == {}
        assert selector.select(0) == []
    finally:
        selector.close()
        near.close()
        far.close()


def test_an_ordinary_loop_has_no_short_way():
    async def main():
        return stream_selector(asyncio.get_running_loop())

    assert asyncio.run(main()) is None
