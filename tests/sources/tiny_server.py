"""A server on loopback that answers with scripted bytes; knows nothing of twospeed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto


class Act(Enum):
    CLOSE = auto()
    """Close the connection in good order."""
    ABORT = auto()
    """Reset it."""
    HANG = auto()
    """Say nothing more until the client closes."""


Step = bytes | float | Act
"""Bytes are written, a number is a pause in seconds."""
Script = Sequence[Step]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Number of the connection it came on, from 1."""

    @property
    def json(self):
        return json.loads(self.body)


Route = Script | Callable[[Request], Script]


def head(status: int = 200, kind: str = "application/json", *lines: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status} X", f"Content-Type: {kind}", *lines, "", ""]).encode()


def answer(value, status: int = 200, *lines: str) -> list[Step]:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    kind = "text/html" if body.lstrip().startswith(b"<") else "application/json"
    return [head(status, kind, f"Content-Length: {len(body)}", *lines) + body]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"data: {text}\n\n".encode()


def delta(finish: str | None = None, **fields) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def usage(prompt: int, output: int, cached: int | None = None) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": output}
    if cached is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return event({"choices": [], "usage": counts})


STREAM_HEAD = head(200, "text/event-stream", "Transfer-Encoding: chunked")
DONE = event("[DONE]")
LAST_CHUNK = b"0\r\n\r\n"
STREAM_END = (chunk(DONE) + LAST_CHUNK,)


def stream(*steps: Step, end: Script | None = None) -> list[Step]:
    """Head, then each bytes step as one chunk, then the end."""
    return [
        STREAM_HEAD,
        *(chunk(s) if isinstance(s, bytes) else s for s in steps),
        *(STREAM_END if end is None else end),
    ]


def models(*names: str) -> list[Step]:
    return answer({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})


CHAT = "/v1/chat/completions"
MODELS = "/v1/models"
GOOD_STREAM = stream(
    delta(role="assistant", content=""),
    delta(content="Once"),
    0.01,
    delta(content=" upon"),
    0.01,
    delta("length"),
    usage(100, 2),
)
MISSING = answer({"error": {"message": "File Not Found", "code": 404}}, 404)


@dataclass(slots=True)
class TinyServer:
    routes: dict[str, Route] = field(default_factory=dict)
    every: Script | None = None
    """Answers the first bytes of every connection, whatever they are."""
    reads_bodies: bool = True
    host: str = "127.0.0.1"
    context: ssl.SSLContext | None = None
    port: int = 0
    connections: int = 0
    closed_by_client: int = 0
    requests: list[Request] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task] = field(default_factory=set)

    async def __aenter__(self):
        self._server = await asyncio.start_server(
            self._serve, self.host, 0, ssl=self.context, limit=2**24
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.context else ''}://{host}:{self.port}"

    def asked(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            if self.every is not None:
                await reader.read(1)
                await self._play(self.every, reader, writer)
                return
            while request := await self._request(reader, number):
                self.requests.append(request)
                route = self.routes.get(request.path, MISSING)
                if await self._play(route(request) if callable(route) else route, reader, writer):
                    break
            else:
                self.closed_by_client += 1
        except (ConnectionError, asyncio.CancelledError):
            self.closed_by_client += 1
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _request(self, reader, number):
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = raw.decode().rstrip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0)) if self.reads_bodies else 0
        body = await reader.readexactly(length)
        return Request(method, path, headers, body, number)

    async def _play(self, script: Script, reader, writer) -> bool:
        """Write the script; tells whether the connection is over."""
        for step in script:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif step is Act.CLOSE:
                return True
            elif step is Act.ABORT:
                writer.transport.abort()
                return True
            elif step is Act.HANG:
                await reader.read()
                self.closed_by_client += 1
                return True
            else:
                await asyncio.sleep(step)
        return False


def in_turn(*scripts: Script) -> Route:
    """One script for each request, the last one for all further ones."""
    left = list(scripts)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]
