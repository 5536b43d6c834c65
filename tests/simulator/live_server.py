"""A simulator on loopback in a thread, and a reader that shares nothing with twospeed."""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import dataclass, field

from twospeed.simulator.listening import listening
from twospeed.simulator.loop import Loop
from twospeed.simulator.machine import Machine
from twospeed.simulator.simulation import Settings, Simulation
from twospeed.simulator.truth import RequestTruth

PATIENCE_S = 20.0


@dataclass
class Seen:
    """What a client saw: bytes and when."""

    sent_ns: int = 0
    reads: list[tuple[int, bytes]] = field(default_factory=list)
    ended: str = ""
    """`closed`, `reset` or `whole`."""

    @property
    def raw(self) -> bytes:
        return b"".join(data for _, data in self.reads)

    @property
    def head(self) -> str:
        return self.raw.partition(b"\r\n\r\n")[0].decode()

    @property
    def status(self) -> int:
        return int(self.head.split()[1])

    @property
    def body(self) -> bytes:
        """The body, chunks undone."""
        rest = self.raw.partition(b"\r\n\r\n")[2]
        if "transfer-encoding: chunked" not in self.head.lower():
            return rest
        found = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            count = int(size, 16)
            found, rest = found + rest[:count], rest[count + 2 :]
        return found

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self) -> list[dict]:
        lines = self.body.decode().splitlines()
        found = [line.removeprefix("data: ") for line in lines]
        return [json.loads(data) for data in found if data.startswith("{")]

    def first_ns(self, needle: bytes) -> int:
        """When the read came that completed the first occurrence of some bytes."""
        so_far = b""
        for at_ns, data in self.reads:
            so_far += data
            if needle in so_far:
                return at_ns
        raise AssertionError(f"{needle!r} never came")


def is_whole(raw: bytes) -> bool:
    head, mark, body = raw.partition(b"\r\n\r\n")
    if not mark:
        return False
    lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    if b"content-length" in lines:
        return len(body) >= int(lines[b"content-length"])
    return lines.get(b"transfer-encoding") == b"chunked" and body.endswith(b"\r\n0\r\n\r\n")


class Client:
    """One connection."""

    def __init__(self, port: int, buffer_bytes: int | None = None):
        self.sock = socket.socket()
        if buffer_bytes is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(("127.0.0.1", port))
        self.sent_ns = 0
        self._early: list[tuple[int, bytes]] = []
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, path: str, body=None, *headers: str, method: str | None = None) -> Seen:
        self.send(path, body, *headers, method=method)
        return self.read()

    def send(self, path: str, body=None, *headers: str, method: str | None = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        method = method or ("GET" if body is None else "POST")
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers]
        lines.append(f"Content-Length: {len(data)}")
        raw = "\r\n".join([*lines, "", ""]).encode() + data
        self.sent_ns = time.monotonic_ns()
        self.sock.sendall(raw)

    def read(self) -> Seen:
        """Read until the answer is whole or the connection has ended."""
        seen = Seen(self.sent_ns, self._early)
        self._early = []
        while not is_whole(seen.raw):
            try:
                data = self.sock.recv(65536)
            except ConnectionResetError:
                seen.ended = "reset"
                return seen
            seen.reads.append((time.monotonic_ns(), data))
            if not data:
                seen.ended = "closed"
                return seen
        seen.ended = "whole"
        return seen

    def wait_for_head(self) -> None:
        """Until the head of an answer has come; its request is being served or queued then."""
        self._early.append((time.monotonic_ns(), self.sock.recv(65536)))

    def is_closed_soon(self) -> bool:
        """Whether the server closes this connection."""
        self.sock.settimeout(2.0)
        try:
            return self.sock.recv(1) == b""
        except TimeoutError:
            return False

    def close(self) -> None:
        self.sock.close()


class LiveServer:
    def __init__(
        self,
        speak: str = "openai",
        *,
        prefill_tps: float = 2000,
        decode_tps: float = 200,
        new_cipher=None,
        max_requests: int | None = None,
        **settings,
    ):
        machine_fields = ("decode_half_depth", "shared_batch_frac", "draft_tokens", "jitter_frac")
        more = {name: settings.pop(name) for name in machine_fields if name in settings}
        machine = Machine(prefill_tps=prefill_tps, decode_tps=decode_tps, **more)
        self.truth: list[RequestTruth] = []
        self._changed = threading.Condition()
        listener = listening("127.0.0.1", 0)
        self.port: int = listener.getsockname()[1]
        simulation = Simulation(
            Settings(machine=machine, speak=speak, **settings),
            started_ns=time.monotonic_ns(),
            wall_s=lambda: 1_796_000_000,
        )
        self.loop = Loop(
            simulation,
            listener,
            new_cipher=new_cipher,
            on_truth=self._on_truth,
            max_requests=max_requests,
        )
        self._thread = threading.Thread(target=self.loop.run)
        self._thread.start()
        self._clients: list[Client] = []

    def client(self, buffer_bytes: int | None = None) -> Client:
        self._clients.append(Client(self.port, buffer_bytes))
        return self._clients[-1]

    def ask(self, path: str, body=None, *headers: str, method: str | None = None) -> Seen:
        return self.client().ask(path, body, *headers, method=method)

    def truth_of(self, request: int) -> RequestTruth:
        """The truth of a request, as soon as it is told."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._found(request), PATIENCE_S)
            return self._found(request)

    def stop(self) -> None:
        if self._thread.is_alive():
            self.loop.stop()
        self.wait_until_over()
        for client in self._clients:
            client.close()

    def wait_until_over(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _found(self, request: int) -> RequestTruth | None:
        return next((truth for truth in self.truth if truth.request == request), None)

    def _on_truth(self, truth: RequestTruth) -> None:
        with self._changed:
            self.truth.append(truth)
            self._changed.notify_all()
