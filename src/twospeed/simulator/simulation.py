"""The simulated server without its sockets: requests in, replies or jobs out."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import twospeed.simulator.dialects as dialects_room
from twospeed.simulator import asking
from twospeed.simulator.answers import answer_pieces, reasoning_pieces
from twospeed.simulator.bench import Bench
from twospeed.simulator.cache import CacheMode, PromptCache
from twospeed.simulator.dialect import Dialect, Facts, Moment, Voice
from twospeed.simulator.exchange import (
    BadFieldError,
    BadJsonError,
    RefusedError,
    Reply,
    Request,
    Write,
)
from twospeed.simulator.faults import STATUS_FAULTS, Fault, faults_of, faulty
from twospeed.simulator.framing import Framer, Head, head_bytes
from twospeed.simulator.hosts import host_of, is_loopback_name
from twospeed.simulator.job import Asked, Job
from twospeed.simulator.machine import Machine
from twospeed.simulator.schedule import Conduct, answer, greeting, greets_at_once

STARTING_S = 2.0
"""How long `503-then-ready` refuses where no load time is given."""
PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Sign in.</body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that a simulated server can be told."""

    machine: Machine
    speak: str = "openai"
    slots: int = 1
    cache: CacheMode | None = None
    """None for what the dialect's runtime does by itself."""
    load_s: float = 0.0
    unload_after_s: float | None = None
    n_ctx: int = 32_768
    answer_tokens: int = 128
    reasoning_tokens: int = 0
    report_cached: bool = False
    report_times: bool = False
    gpu_frac: float = 1.0
    tokens_per_chunk: int = 1
    seed: int = 0
    """Of the jitter."""
    faults: tuple[Fault, ...] = ()
    stall_s: float = 30.0
    allowed_hosts: frozenset[str] = frozenset()
    """Names besides those of loopback under which it may be asked."""


@dataclass(slots=True, kw_only=True)
class Stream:
    """A job and how its answer is told."""

    job: Job
    voice: Voice
    framer: Framer
    path: str
    closes: bool
    """The connection ends with the answer."""


def dialect_names() -> tuple[str, ...]:
    """Every dialect that can be spoken."""
    found = (module.name for module in pkgutil.iter_modules(dialects_room.__path__))
    return tuple(sorted(name.replace("_", "-") for name in found))


def dialect_type(name: str) -> type[Dialect]:
    """The dialect with a name.

    Raises:
        KeyError: there is none.
    """
    if name not in dialect_names():
        raise KeyError(name)
    module = importlib.import_module(f"{dialects_room.__name__}.{name.replace('-', '_')}")
    found: type[Dialect] = module.DIALECT
    return found


class Simulation:
    """One simulated server.

    Args:
        settings: what it is like.
        started_ns: monotonic clock at its start.
        wall_s: gives the wall clock, in seconds since 1970.
    """

    def __init__(self, settings: Settings, *, started_ns: int, wall_s: Callable[[], int]) -> None:
        self.settings = settings
        kind = dialect_type(settings.speak)
        mode = settings.cache or ("on" if kind.reuses else "off")
        self.facts = Facts(
            model=kind.model,
            n_ctx=settings.n_ctx,
            slots=settings.slots,
            answer_tokens=settings.answer_tokens,
            reasoning_tokens=settings.reasoning_tokens,
            report_cached=settings.report_cached,
            report_times=settings.report_times,
            gpu_frac=settings.gpu_frac,
            cache_on=mode != "off",
        )
        self.dialect = kind(self.facts)
        cache = PromptCache(settings.slots, mode, kind.block_tokens)
        lazily = not self._has_fault("503-then-ready")
        self.bench = Bench(
            settings.machine,
            cache,
            load_s=settings.load_s if lazily else 0.0,
            unload_after_s=settings.unload_after_s,
        )
        self._conduct = Conduct(
            machine=settings.machine,
            tokens_per_chunk=settings.tokens_per_chunk,
            seed=settings.seed,
            head_at=kind.head_at,
            decoding=self.bench.decoding,
        )
        starting_s = 0.0 if lazily else settings.load_s or STARTING_S
        self._ready_ns = started_ns + round(1e9 * starting_s)
        self._wall_s = wall_s
        self.requests = 0

    def handle(self, request: Request, arrival_ns: int, now_ns: int) -> Reply | Stream:
        """Answer a request, or take it up as a job.

        Args:
            request: as it came.
            arrival_ns: when its last byte came.
            now_ns: the moment.
        """
        form = self._form(request)
        if form is not None:
            self.requests += 1
        faults = faults_of(self.settings.faults, None if form is None else self.requests)
        try:
            refused = self._refused(request, form, faults, now_ns)
            if refused is not None:
                return refused
            if form is None:
                moment = Moment(now_ns=now_ns, now_s=self._wall_s(), bench=self.bench)
                return self.dialect.answer(request, moment) or self.dialect.not_found()
            asked = self.dialect.asked(form, asking.json_object(request.body))
        except BadJsonError as error:
            return self.dialect.bad_json(str(error))
        except BadFieldError as error:
            return self.dialect.bad_field(error)
        except RefusedError as error:
            return error.reply
        return self._stream(request, asked, faults, arrival_ns)

    def is_for_text(self, request: Request) -> bool:
        """Whether a request asks for text, well or badly."""
        return self._form(request) is not None

    def greeting(self, stream: Stream, now_ns: int) -> Write | None:
        """What is sent before the job has a slot; None where nothing is."""
        if not greets_at_once(stream.job, self.dialect.head_at):
            return None
        return greeting(stream.job, stream.voice, now_ns)

    def writes(self, stream: Stream) -> Iterator[Write]:
        """Every further write of a job that has its slot."""
        planned = answer(stream.job, stream.voice, self._conduct)
        return faulty(planned, stream.job, stream.voice, self.settings.stall_s)

    def closes_after(self, request: Request, reply: Reply) -> bool:
        """Whether the connection ends with a reply."""
        ends = self.dialect.http_version == "1.0" or not reply.sized
        return ends or request.wants_close or self._has_fault("silent-close", "http10")

    def head(self, request: Request, status: int, content_type: str, *more: str) -> Head:
        """Makes the head of an answer to a request."""
        version = "1.0" if self._has_fault("http10") else self.dialect.http_version
        origin = _loopback_origin(request.headers)
        now_s = self._wall_s()

        def made(length: int | None) -> bytes:
            ends = "" if version == "1.0" else "Transfer-Encoding: chunked"
            body_line = ends if length is None else f"Content-Length: {length}"
            lines = self.dialect.head_lines(
                content_type,
                body_line,
                closing=request.wants_close or version == "1.0",
                origin=origin,
                now_s=now_s,
            )
            return head_bytes(version, status, [*lines, *more])

        return made

    def _form(self, request: Request) -> str | None:
        """The form of a request for text; None for any other."""
        return self.dialect.forms.get(request.path) if request.method == "POST" else None

    def _refused(
        self, request: Request, form: str | None, faults: frozenset[str], now_ns: int
    ) -> Reply | None:
        """The reply to a request that is refused whatever it asks for."""
        refused = self._stranger(request)
        if refused is not None:
            return refused
        if self._is_starting(faults, now_ns):
            return self.dialect.loading()
        if "401" in faults and not self.dialect.is_open(request.path):
            return self.dialect.refusal(401, "Invalid API Key")
        if form is None:
            return None
        if "html" in faults:
            return Reply(body=PAGE, content_type="text/html; charset=utf-8")
        status = next((status for name, status in STATUS_FAULTS.items() if name in faults), None)
        return None if status is None else self.dialect.refusal(status, f"simulated {status}")

    def _stranger(self, request: Request) -> Reply | None:
        """The reply to a request that does not come from this machine's own programs."""
        host = host_of(request.headers.get("host", ""))
        if "host" not in request.headers and not request.http10:
            return self.dialect.refusal(400, "a Host header is required")
        if host and not is_loopback_name(host) and host not in self.settings.allowed_hosts:
            return self.dialect.refusal(403, f"not served under the name {host}")
        return _preflight(request) if request.method == "OPTIONS" else None

    def _is_starting(self, faults: frozenset[str], now_ns: int) -> bool:
        if "503-then-ready" not in faults:
            return False
        counted = any(f.name == "503-then-ready" and f.requests for f in self.settings.faults)
        return counted or now_ns < self._ready_ns

    def _stream(
        self, request: Request, asked: Asked, faults: frozenset[str], arrival_ns: int
    ) -> Stream:
        """Make a job and join the queue."""
        job = Job(
            number=self.requests,
            asked=asked,
            arrival_ns=arrival_ns,
            made_s=self._wall_s(),
            faults=faults,
        )
        # Only the first sentence is sure to hold something to split.
        seed = 0 if "split-utf8" in faults else sum(asked.prompt[-8:])
        job.reasoning = reasoning_pieces(seed, asked.reasoning_tokens)
        job.answer = answer_pieces(seed, asked.output_tokens - asked.reasoning_tokens)
        voice = self.dialect.voice(job, counts="no-usage" not in faults)
        content_type = voice.content_type if asked.stream else self._json_type()
        framer, closes = self._framing(request, job, content_type)
        self.bench.arrive(job)
        return Stream(job=job, voice=voice, framer=framer, path=request.path, closes=closes)

    def _framing(self, request: Request, job: Job, content_type: str) -> tuple[Framer, bool]:
        faults = job.faults
        http10 = self.dialect.http_version == "1.0" or self._has_fault("http10")
        gzip = "gzip" in faults
        more = ("Content-Encoding: gzip",) if gzip else ()
        head = self.head(request, 200, content_type, *more)
        framer = Framer(head, chunked=not http10, gzip=gzip, crlf="crlf" in faults)
        ends = self.dialect.closes_after_stream and job.asked.stream
        closes = http10 or request.wants_close or ends or "silent-close" in faults
        return framer, closes

    def _json_type(self) -> str:
        return self.dialect.refusal(400, "").content_type

    def _has_fault(self, *names: str) -> bool:
        return any(fault.name in names for fault in self.settings.faults)


def _loopback_origin(headers: Mapping[str, str]) -> str:
    """The origin of a page that is served from this machine; empty for any other."""
    origin = headers.get("origin", "")
    scheme, _, rest = origin.partition("://")
    return origin if scheme in {"http", "https"} and is_loopback_name(host_of(rest)) else ""


def _preflight(request: Request) -> Reply:
    """What a browser wants to know before a page may ask."""
    if not _loopback_origin(request.headers):
        return Reply(status=204, content_type="text/plain")
    return Reply(
        status=204,
        content_type="text/plain",
        headers=("Access-Control-Allow-Methods: *", "Access-Control-Allow-Headers: *"),
    )
