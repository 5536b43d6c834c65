"""A simulated server without sockets, and what it would have put on the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass

from twospeed.simulator.exchange import Reply, Request, Write
from twospeed.simulator.framing import reply_bytes
from twospeed.simulator.machine import Machine
from twospeed.simulator.simulation import Settings, Simulation, Stream

WALL_S = 1_796_000_000
MACHINE = Machine(prefill_tps=1000, decode_tps=100)
CHAT = "/v1/chat/completions"


def user(text: str, **more) -> dict:
    return {"messages": [{"role": "user", "content": text}], **more}


@dataclass
class Answered:
    """What came of one request."""

    head: bytes
    writes: list[Write]
    body: bytes
    job: object = None

    @property
    def status(self) -> int:
        return int(self.head.split(b" ")[1])

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self) -> list[dict]:
        """Objects of the stream, in either framing."""
        found = []
        for line in self.body.decode().splitlines():
            data = line.removeprefix("data: ")
            if data.startswith("{"):
                found.append(json.loads(data))
        return found

    def times_s(self, *kinds: str) -> list[float]:
        """When writes of these kinds are due, since the request came."""
        return [write.at_ns / 1e9 for write in self.writes if write.kind in kinds]


class Server:
    """Feeds requests to a simulation; time starts at 0 and stands still unless told."""

    def __init__(self, speak: str = "openai", machine: Machine = MACHINE, **settings):
        self.simulation = Simulation(
            Settings(machine=machine, speak=speak, **settings), started_ns=0, wall_s=lambda: WALL_S
        )

    def request(self, path: str, body=None, method: str | None = None, **headers: str) -> Request:
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        method = method or ("GET" if body is None else "POST")
        return Request(method=method, path=path, headers={"host": "127.0.0.1", **headers}, body=raw)

    def ask(self, path: str, body=None, *, at_ns: int = 0, **how) -> Answered:
        """One request, alone on the machine, from start to end."""
        request = self.request(path, body, **how)
        handled = self.simulation.handle(request, at_ns, at_ns)
        if isinstance(handled, Reply):
            head = self.simulation.head(
                request, handled.status, handled.content_type, *handled.headers
            )
            whole = reply_bytes(head, handled)
            return Answered(whole[: len(whole) - len(handled.body)], [], handled.body)
        return self.told(handled, at_ns)

    def told(self, stream: Stream, at_ns: int = 0) -> Answered:
        """Let one answer be told; plain pieces of its body, not framed."""
        first = self.simulation.greeting(stream, at_ns)
        writes = [] if first is None else [first]
        started = self.simulation.bench.start_next()
        assert started is stream.job
        for write in self.simulation.writes(stream):
            writes.append(write)
            if write.end or write.reset:
                self.simulation.bench.leave(stream.job, write.at_ns)
                break
        framed = [stream.framer.frame(write) for write in writes if not write.reset]
        head = next((data for data in framed if data), b"").partition(b"\r\n\r\n")[0]
        body = b"".join(chunk for write in writes for chunk in write.chunks)
        return Answered(head, writes, body, stream.job)
