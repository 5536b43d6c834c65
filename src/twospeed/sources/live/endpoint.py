"""A running model server, and measured requests to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import msgspec

from twospeed.records.errors import EndpointError, UsageError
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.records.run import RuntimeFacts, Source, SourceKind
from twospeed.runtimes.registry import all_runtimes, runtime_by_id
from twospeed.runtimes.runtime import Answer, Ask, Generation, Runtime
from twospeed.sources.live.channel import Access, Channel
from twospeed.sources.live.clock import Clock
from twospeed.sources.live.connection import OnText
from twospeed.sources.live.identification import (
    Identity,
    OnLoading,
    ask_all,
    chosen_model,
    identify,
)
from twospeed.sources.live.garbage import collection_held
from twospeed.sources.live.measurement import now_utc, record_of
from twospeed.sources.live.prepared import Prepared, prepared
from twospeed.sources.live.prompts import Prompt, PromptWriter
from twospeed.sources.live.receiver import StampedBy
from twospeed.sources.live.sizing import PromptSizer
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Limits

ASK_S = 2.0
TOKENIZE_S = 10.0
SETTLE_S = 0.1
ROUND_TRIPS = 5


class Endpoint:
    """One model on one running server.

    Make one with `Endpoint.open`, use it as an async context manager or call `close`.

    Attributes:
        target: its base address.
        runtime: the module that gives its answers their meaning.
        runtime_version: as it tells, else None.
        models: what it lists, loaded ones first.
        model: the one that is measured; None when the server names none.
        facts: what it says about itself.
        loading_s: seconds that it spent loading while it was opened; None when it was ready.
    """

    def __init__(
        self,
        access: Access,
        channel: Channel,
        identity: Identity,
        *,
        model: str | None,
        limits: Limits,
        extra: Mapping[str, Any],
        seed: int | None,
    ) -> None:
        self.target = access.target
        self.runtime = identity.runtime
        self.runtime_version = identity.runtime.version(identity.answers)
        self.models = list(identity.runtime.models(identity.answers))
        self.model = chosen_model(access.target, model, self.models)
        self.facts = RuntimeFacts()
        self.loading_s = identity.loading_s
        self._access = access
        self._answers = identity.answers
        self._limits = limits
        self._extra = extra
        self._sizer = PromptSizer(PromptWriter(seed), identity.runtime, self.model)
        self._prompts: dict[int, Prompt] = {}
        self._idle = [channel]
        self._under_way = 0
        self._recording = asyncio.Lock()
        self._shows_activity = True

    @classmethod
    async def open(
        cls,
        url: str | Target,
        *,
        model: str | None = None,
        api_key: str | None = None,
        runtime_id: str | None = None,
        limits: Limits | None = None,
        load_wait_s: float = 300.0,
        on_loading: OnLoading | None = None,
        extra: Mapping[str, Any] | None = None,
        seed: int | None = None,
        clock: Clock | None = None,
        stamped_by: StampedBy | None = None,
        context: ssl.SSLContext | None = None,
    ) -> Self:
        """Find out what answers at an address, and prepare to measure it.

        Args:
            url: base address, as a person types it.
            model: model to measure; None for the loaded or first one.
            api_key: bearer token.
            runtime_id: what the server is; None to recognise it.
            limits: longest durations of each stage; None for generous ones.
            load_wait_s: longest wait for a server that is loading its model, in seconds.
            on_loading: told of that wait.
            extra: request fields that the user sets.
            seed: makes the prompts repeatable; None for new ones each time.
            clock: source of every stamp; None for this machine's.
            stamped_by: "user" to do without the kernel's stamps; None for the best there is.
            context: trust for https; None for this machine's own.

        Raises:
            UsageError: the address, key or runtime name is impossible.
            EndpointError: nothing usable answers there.
        """
        target = url if isinstance(url, Target) else Target.parse(url)
        runtime = None if runtime_id is None else _named_runtime(runtime_id)
        access = Access.to(
            target, api_key=api_key, clock=clock, context=context, stamped_by=stamped_by
        )
        channel = Channel(access)
        try:
            identity = await identify(
                channel, runtime=runtime, load_wait_s=load_wait_s, on_loading=on_loading
            )
            endpoint = cls(
                access,
                channel,
                identity,
                model=model,
                limits=limits or Limits(),
                extra=extra or {},
                seed=seed,
            )
            await endpoint.refresh_facts()
        except BaseException:
            channel.close()
            raise
        return endpoint

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every idle connection."""
        for channel in self._idle:
            channel.close()
        self._idle.clear()

    def source(self, kind: SourceKind = "live") -> Source:
        """What a run made from this endpoint names as its source."""
        return Source(
            kind=kind,
            where=self.target.url,
            runtime=self.runtime.id,
            runtime_version=self.runtime_version,
            model=self.model,
            local=self.target.is_loopback,
        )

    async def refresh_facts(self) -> RuntimeFacts:
        """Ask again what the runtime says about itself; some only tell once a model is loaded."""
        channel = self.take_channel()
        try:
            fresh = await ask_all(channel, self.runtime.fact_asks(self.model))
        except EndpointError:
            fresh = {}
        finally:
            self._idle.append(channel)
        self._answers.update({path: a for path, a in fresh.items() if a.status is not None})
        self.facts = self.runtime.facts(self._answers, self.model)
        return self.facts

    async def measure(
        self,
        probe: Probe,
        number: int,
        *,
        prompt: str | None = None,
        stream: bool = True,
        on_text: OnText | None = None,
    ) -> RequestRecord:
        """Send one request and record it by phase.

        A failure does not raise: it is the record's `error`, beside whatever arrived.

        Args:
            probe: wanted lengths; with `repeats` the very text of that earlier request is sent.
            number: its number within the run, from 1.
            prompt: the user's own text instead of a written one.
            stream: ask for a stream; without one only the end can be seen from here.
            on_text: told of every read after text began; must return at once.

        Raises:
            KeyError: `probe.repeats` names a request that was not measured here.
        """
        channel = self.take_channel()
        try:
            sent = await self._prompt_for(probe, prompt, channel)
            self._prompts[number] = sent
            request = self._prepared(sent, probe, stream=stream)
            record = await self.send_alone(request, number, channel, on_text=on_text)
        finally:
            self.give_back(channel)
        if probe.repeats is None and record.counts.prompt_tokens and not record.error:
            self._sizer.learn(sent, record.counts.prompt_tokens)
        return record

    async def prepare(
        self, probe: Probe, *, prompt: str | None = None, stream: bool = True
    ) -> Prepared:
        """Write and encode a request that is sent later, by `send` or `send_alone`.

        Args:
            probe: wanted lengths.
            prompt: the user's own text instead of a written one.
            stream: ask for a stream.
        """
        channel = self.take_channel()
        try:
            written = await self._prompt_for(probe, prompt, channel)
        finally:
            self.give_back(channel)
        return self._prepared(written, probe, stream=stream)

    async def _prompt_for(self, probe: Probe, given: str | None, channel: Channel) -> Prompt:
        """An earlier prompt, the user's own, or a new one."""
        if probe.repeats is not None:
            return self._prompts[probe.repeats]
        if given is not None:
            return Prompt.given(given)

        async def ask(question: Ask) -> Answer:
            return (await channel.ask(question, Limits.short(TOKENIZE_S)))[0]

        return await self._sizer.prompt_of(probe.prompt_tokens, ask)

    def _prepared(self, prompt: Prompt, probe: Probe, *, stream: bool) -> Prepared:
        generation = Generation(
            model=self.model,
            prompt=prompt.text,
            output_tokens=probe.output_tokens,
            stream=stream,
            salt=prompt.salt,
            extra=self._extra,
        )
        return prepared(
            self._access,
            self.runtime,
            generation,
            probe=probe,
            prompt=prompt,
            limits=self._limits,
        )

    async def send_alone(
        self,
        request: Prepared,
        number: int,
        channel: Channel,
        *,
        on_text: OnText | None = None,
    ) -> RequestRecord:
        """Send a request, and ask the server before and after it what else it is doing."""
        before = await self.other_requests(channel)
        record = await self.send(request, number, channel, on_text=on_text)
        after = None if record.error else await self.other_requests(channel)
        if after:
            # A runtime may show our own request for an instant after its last byte.
            await asyncio.sleep(SETTLE_S)
            after = await self.other_requests(channel)
        seen = [others for others in (before, after) if others is not None]
        return msgspec.structs.replace(record, other_requests=max(seen, default=None))

    async def send(
        self,
        request: Prepared,
        number: int,
        channel: Channel,
        *,
        on_text: OnText | None = None,
    ) -> RequestRecord:
        """Send a request beside others: nothing but it goes over the wire.

        Args:
            request: from `prepare`.
            number: its number within the run, from 1.
            channel: from `take_channel`; one request at a time.
            on_text: told of every read after text began; must return at once.
        """
        started_at = now_utc()
        self._under_way += 1
        try:
            with collection_held():
                exchange = await channel.exchange(
                    request.request, request.limits, on_text, request.dialect
                )
        finally:
            self._under_way -= 1
        # Streams that end together are read one after the other, and others go on in between.
        async with self._recording:
            return record_of(
                exchange,
                number=number,
                probe=request.probe,
                runtime=self.runtime,
                generation=request.generation,
                dialect=request.dialect,
                target=self.target,
                started_at=started_at,
            )

    async def other_requests(self, channel: Channel) -> int | None:
        """Requests inside the server that are not ours; None where it does not show them."""
        question = self.runtime.activity_ask()
        if question is None or not self._shows_activity:
            return None
        answer, _ = await channel.ask(question, Limits.short(ASK_S))
        seen = self.runtime.activity(answer)
        # Told not to ask (llama-server without --slots or --metrics): do not ask again.
        self._shows_activity = seen is not None or answer.status is None
        return None if seen is None else max(0, seen - self._under_way)

    def take_channel(self) -> Channel:
        """An idle channel, or a new one for a request beside others."""
        return self._idle.pop() if self._idle else Channel(self._access)

    def give_back(self, channel: Channel) -> None:
        """Keep a channel for the next request."""
        self._idle.append(channel)

    async def round_trip_s(self) -> float | None:
        """Fastest round trip of a trivial request over a warm connection, in seconds.

        Returns:
            The minimum of five, or None when the server answered none of them.
        """
        paths = {ask.path for ask in self.runtime.identify if ask.method == "GET"}
        sizes = {p: len(a.body) for p, a in self._answers.items() if p in paths and a.status == 200}
        path = min(sizes, key=lambda path: sizes[path], default="/v1/models")
        request = self._access.request(path, method="GET")
        times_s = []
        channel = self.take_channel()
        try:
            for _ in range(ROUND_TRIPS):
                exchange = await channel.exchange(request, Limits.short(ASK_S))
                if exchange.failure is None and exchange.sent_ns is not None:
                    end_ns = exchange.reader.end_ns
                    times_s += [] if end_ns is None else [(end_ns - exchange.sent_ns) / 1e9]
        finally:
            self.give_back(channel)
        return min(times_s, default=None)


def _named_runtime(runtime_id: str) -> Runtime:
    """The runtime that the user named.

    Raises:
        UsageError: there is none of that name.
    """
    runtime = runtime_by_id(runtime_id)
    if runtime is None:
        known = ", ".join(runtime.id for runtime in all_runtimes())
        raise UsageError(f"No runtime is called {runtime_id!r}.", hint=f"Use one of: {known}.")
    return runtime
