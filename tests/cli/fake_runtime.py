"""A model server without a model: paced text at a few milliseconds a token, faults on demand.

It stands in a thread of the test process, speaks HTTP/1.1 from the standard library alone and knows
nothing of twospeed. Pace, counts and clocks are honest: what it tells of its phases is what it did.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CHAT = "/v1/chat/completions"
TEMPLATE_TOKENS = 5
HTML = b"<!doctype html><html><head><title>Router login</title></head><body>Hi</body></html>"


@dataclass(frozen=True, slots=True)
class Generation:
    """One request for text as a fault sees it."""

    number: int
    """From 1, over all connections."""
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Paced:
    """What one answered request really took; a busy machine makes it longer than planned."""

    prefill_s: float
    token_s: float


Fault = Callable[[Generation], str | None]
"""Names what goes wrong with a request, None for nothing. See `Talk.fail`."""


def always(what: str) -> Fault:
    return lambda _: what


def from_number(first: int, what: str) -> Fault:
    return lambda generation: what if generation.number >= first else None


def only(number: int, what: str) -> Fault:
    return lambda generation: what if generation.number == number else None


@dataclass(slots=True)
class FakeRuntime:
    """How it behaves; every default is that of a healthy llama-server."""

    llama: bool = True
    """With llama-server's routes, header and timings; else any OpenAI-compatible endpoint."""
    models: tuple[str, ...] = ("heron-8b-q4_k_m",)
    n_ctx: int = 8192
    tells_n_ctx: bool = True
    key: str | None = None
    loading_answers: int = 0
    """So many first answers are 503 Loading model."""
    prefill_s_per_token: float = 5e-5
    step_s: float = 0.001
    step_factor: dict[str, float] = field(default_factory=dict)
    """A step takes so many times as long when a request holds the field."""
    tokens_per_chunk: int = 1
    reasoning_tokens: int = 0
    """So many first output tokens are reasoning."""
    shows_reasoning: bool = True
    role_first: bool = False
    """A chunk with only a role is sent before prefill."""
    progress: bool = False
    """A progress chunk is sent in the middle of prefill."""
    usage: bool = True
    hangs_up: bool = False
    """Closes after each stream although it said keep-alive."""
    page: bytes | None = None
    """Answers every request with this body."""
    page_type: str = "text/html"
    fault: Fault = lambda _: None
    error_message: str = "CUDA error: out of memory"
    host: str = "127.0.0.1"

    port: int = 0
    asked: list[str] = field(default_factory=list)
    """Method and path of each request."""
    keys: set[str | None] = field(default_factory=set)
    """Values of Authorization seen."""
    generations: list[Generation] = field(default_factory=list)
    paced: list[Paced] = field(default_factory=list)
    """Of each answered request, in order."""
    connections: int = 0
    last_prompt: str | None = None
    held: threading.Event = field(default_factory=threading.Event)
    """Set when a generation hangs on purpose."""
    released: threading.Event = field(default_factory=threading.Event)
    """Set to let hanging ones go."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: ThreadingHTTPServer | None = None

    def start(self) -> FakeRuntime:
        runtime = self

        class OneTalk(Talk):
            ways = runtime

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in runtime.host else socket.AF_INET
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request, client_address) -> None:
                """A client that went away is no news."""

            def server_bind(self) -> None:
                """Without the name look-up of HTTPServer."""
                self.socket.bind(self.server_address)
                self.server_address = self.socket.getsockname()

        self._server = Server((self.host, 0), OneTalk)
        self.port = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def numbered(self, prompt_tokens: int) -> Generation:
        with self._lock:
            generation = Generation(len(self.generations) + 1, prompt_tokens)
            self.generations.append(generation)
            return generation

    def still_loading(self) -> bool:
        with self._lock:
            self.loading_answers -= 1
            return self.loading_answers >= 0

    def cached_of(self, prompt: str, tokens: int) -> int:
        """All but one token of a prompt that is sent again, else none."""
        with self._lock:
            again, self.last_prompt = prompt == self.last_prompt, prompt
            return tokens - 1 if again else 0


class Talk(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    ways: FakeRuntime

    def setup(self) -> None:
        super().setup()
        self.ways.connections += 1

    def log_message(self, *_: object) -> None:
        pass

    def version_string(self) -> str:
        return "llama.cpp" if self.ways.llama else "fake"

    def do_GET(self) -> None:
        ways = self.ways
        if self.turned_away():
            return
        facts = self.facts().get(self.path)
        if ways.loading_answers > 0 and ways.still_loading():
            self.answer({"error": {"code": 503, "message": "Loading model"}}, 503)
        elif facts is None:
            self.answer({"error": {"code": 404, "message": "File Not Found"}}, 404)
        else:
            self.answer(facts)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.turned_away():
            return
        if self.path == CHAT:
            self.generate(json.loads(body))
        elif self.path == "/tokenize" and self.ways.llama:
            self.answer({"tokens": [1] * len(json.loads(body)["content"].split())})
        else:
            self.answer({"error": {"code": 404, "message": "File Not Found"}}, 404)

    def turned_away(self) -> bool:
        ways = self.ways
        ways.asked.append(f"{self.command} {self.path}")
        ways.keys.add(self.headers["Authorization"])
        if ways.page is not None:
            self.answer(ways.page, kind=ways.page_type)
        elif ways.key is not None and self.headers["Authorization"] != f"Bearer {ways.key}":
            self.answer({"error": {"code": 401, "message": "Invalid API Key"}}, 401)
        else:
            return False
        return True

    def facts(self) -> dict[str, Any]:
        ways = self.ways
        entries = [
            {"id": name, "object": "model", **({"owned_by": "llamacpp"} if ways.llama else {})}
            for name in ways.models
        ]
        known: dict[str, Any] = {"/v1/models": {"object": "list", "data": entries}}
        if ways.llama:
            settings = {"n_ctx": ways.n_ctx} if ways.tells_n_ctx else {}
            known["/health"] = {"status": "ok"}
            known["/slots"] = [{"id": 0, "is_processing": False}]
            known["/props"] = {
                "total_slots": 1,
                "build_info": "b9999-fake",
                "default_generation_settings": settings,
            }
        return known

    def answer(self, value: Any, status: int = 200, kind: str = "application/json") -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def generate(self, asked: dict[str, Any]) -> None:
        ways, prompt = self.ways, asked["messages"][0]["content"]
        tokens = TEMPLATE_TOKENS + len(prompt.split())
        fault = ways.fault(ways.numbered(tokens))
        if tokens + asked["max_tokens"] > ways.n_ctx:
            message = f"the request exceeds the available context size of {ways.n_ctx} tokens"
            self.answer({"error": {"code": 400, "message": message}}, 400)
        elif fault in BEFORE_TEXT:
            BEFORE_TEXT[fault](self)
        else:
            self.stream(asked, tokens, ways.cached_of(prompt, tokens), fault)

    def stream(self, asked: dict[str, Any], tokens: int, cached: int, fault: str | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for number, event in enumerate(self.events(asked, tokens, cached)):
                self.event(event)
                if number == 5 and fault is not None:
                    IN_MID_STREAM[fault](self)
                    return
            self.event("[DONE]")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
        if self.ways.hangs_up:
            self.close_connection = True

    def events(self, asked: dict[str, Any], tokens: int, cached: int) -> Iterator[dict[str, Any]]:
        """What a request is answered with, each event at its time."""
        ways = self.ways
        output = asked["max_tokens"]
        started = time.perf_counter()
        if ways.role_first:
            yield delta(role="assistant", content="")
        prefill_s = (tokens - cached) * ways.prefill_s_per_token
        if ways.progress:
            wait_until(started + prefill_s / 2)
            yield {
                **delta(content=None),
                "prompt_progress": {"total": tokens, "cache": cached, "processed": tokens // 2},
            }
        wait_until(started + prefill_s)
        first = time.perf_counter()
        factors = [factor for name, factor in ways.step_factor.items() if name in asked]
        step_s = ways.step_s * max(factors, default=1.0)
        for done in range(0, output, ways.tokens_per_chunk):
            part = range(done, min(done + ways.tokens_per_chunk, output))
            wait_until(first + part[-1] * step_s)
            thinks = done < ways.reasoning_tokens
            if not thinks or ways.shows_reasoning:
                key = "reasoning_content" if thinks else "content"
                yield delta(**{key: "".join(f" w{number}" for number in part)})
        last = time.perf_counter()
        # Nothing but the last token's own chunk follows the last wait.
        ways.paced.append(Paced(first - started, (last - first) / (output - 1)))
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
        yield from self.counts(tokens, cached, output, first - started, last - first)

    def counts(
        self, tokens: int, cached: int, output: int, prefill_s: float, decode_s: float
    ) -> Iterator[dict[str, Any]]:
        ways = self.ways
        closing: dict[str, Any] = {"choices": []}
        if ways.usage:
            closing["usage"] = {
                "prompt_tokens": tokens,
                "completion_tokens": output,
                "prompt_tokens_details": {"cached_tokens": cached},
            }
            if ways.reasoning_tokens:
                thought = min(ways.reasoning_tokens, output)
                closing["usage"]["completion_tokens_details"] = {"reasoning_tokens": thought}
        if ways.llama:
            closing["timings"] = {
                "cache_n": cached,
                "prompt_n": tokens - cached,
                "prompt_ms": prefill_s * 1e3,
                "predicted_n": output,
                "predicted_ms": decode_s * 1e3,
            }
        if len(closing) > 1:
            yield closing

    def event(self, value: dict[str, Any] | str) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        data = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def error_object(self) -> None:
        self.event({"error": {"code": 500, "message": self.ways.error_message}})
        self.wfile.write(b"0\r\n\r\n")

    def garbage(self) -> None:
        self.event('{"choices": [{"delta": nonsense')
        self.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close in good order, but in mid-answer."""
        self.close_connection = True

    def abort(self) -> None:
        """Reset the connection."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def stall(self) -> None:
        """Say nothing more, connection open."""
        self.ways.held.set()
        self.ways.released.wait(60)
        self.close_connection = True

    def refuse(self) -> None:
        self.answer({"error": {"code": 500, "message": self.ways.error_message}}, 500)

    def show_page(self) -> None:
        self.answer(HTML, kind="text/html")

    def not_json(self) -> None:
        self.answer(b"\x00\x01 this is no JSON", kind="application/json")


BEFORE_TEXT: dict[str | None, Callable[[Talk], None]] = {
    "refuse": Talk.refuse,
    "page": Talk.show_page,
    "not json": Talk.not_json,
    "silence": Talk.stall,
    "drop": Talk.cut,
}
IN_MID_STREAM: dict[str, Callable[[Talk], None]] = {
    "error": Talk.error_object,
    "garbage": Talk.garbage,
    "cut": Talk.cut,
    "abort": Talk.abort,
    "stall": Talk.stall,
}


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def wait_until(moment: float) -> None:
    """The pace of the fake; never used to wait for something to happen."""
    time.sleep(max(0.0, moment - time.perf_counter()))
