"""A running model server, and measured requests to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self

from msgspec import structs

from twospeed.records.errors import EndpointError
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.records.run import RuntimeFacts, Source, SourceKind
from twospeed.runtimes.fields import whole
from twospeed.runtimes.runtime import Answer, Ask, Generation
from twospeed.sources.live.channel import Access, Channel
from twospeed.sources.live.clock import Clock
from twospeed.sources.live.identification import (
    Identity,
    OnLoading,
    ask_all,
    chosen_model,
    identify,
    named_runtime,
)
from twospeed.sources.live.prepared import Prepared
from twospeed.sources.live.prompts import Prompt, PromptWriter
from twospeed.sources.live.reach import Reach
from twospeed.sources.live.receiver import StampedBy
from twospeed.sources.live.round_trip import fastest_round_trip_s, lightest_path
from twospeed.sources.live.sender import Sender
from twospeed.sources.live.sizing import PromptSizer
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Limits
from twospeed.sources.live.transfer import OnText

TOKENIZE_S = 10.0
PROBABILITY_FIELDS = ("n_probs", "top_logprobs", "logprobs")
MOST_PROBABILITIES = 10_000


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
        sender: sends what `prepare` made.
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
        self._answer_texts: dict[int, str] = {}
        self._idle = [channel]
        self.sender = Sender(access, identity.runtime)

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
        reach: Reach | None = None,
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
            extra: request fields that the user adds to each request but the bare ones.
            seed: makes the prompts repeatable; None for new ones each time.
            clock: source of every stamp; None for this machine's.
            stamped_by: "user" to do without the kernel's stamps; None for the best there is.
            context: trust for https; None for what `reach` says.
            reach: proxy, unix socket, headers and trust; None for the plain way.

        Raises:
            UsageError: the address, key, proxy or runtime name is impossible.
            InputError: a certificate cannot be read.
            EndpointError: nothing usable answers there.
        """
        target = url if isinstance(url, Target) else Target.parse(url)
        runtime = None if runtime_id is None else named_runtime(runtime_id)
        access = Access.to(
            target,
            api_key=api_key,
            clock=clock,
            context=context,
            stamped_by=stamped_by,
            reach=reach,
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
            local=self._access.is_here,
        )

    @property
    def port_here(self) -> int | None:
        """Port of this machine that it listens at; None if it is elsewhere or has none."""
        return self._access.port_here

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
            probe: wanted lengths; with `repeats` the text of that earlier request is sent, changed
                as `change` says.
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
            record = await self.sender.send_alone(
                request,
                number,
                channel,
                on_text=on_text,
                on_answer=None if prompt else partial(self._answer_texts.__setitem__, number),
            )
        finally:
            self.give_back(channel)
        if probe.repeats is None and record.counts.prompt_tokens and not record.error:
            self._sizer.learn(sent, record.counts.prompt_tokens)
        return record

    async def prepare(
        self, probe: Probe, *, prompt: str | None = None, stream: bool = True
    ) -> Prepared:
        """Write and encode a request for the `sender`.

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
        if probe.repeats is not None and probe.change != "other":
            before = self._prompts[probe.repeats]
            return self._sizer.changed(
                before, self._answer_texts.get(probe.repeats, ""), probe.change
            )
        if given is not None:
            return Prompt.given(given)

        async def ask(question: Ask) -> Answer:
            return (await channel.ask(question, Limits.short(TOKENIZE_S)))[0]

        return await self._sizer.prompt_of(probe.prompt_tokens, ask)

    def _prepared(self, prompt: Prompt, probe: Probe, *, stream: bool) -> Prepared:
        generation = Generation(
            model=self.model,
            prompt=prompt.text,
            earlier=prompt.earlier,
            output_tokens=probe.output_tokens,
            stream=stream,
            salt=prompt.salt,
            extra={} if probe.step == "bare" else self._extra,
        )
        call = self.runtime.call(generation)
        longest_tokens = max(probe.prompt_tokens, prompt.words)
        return Prepared(
            probe=probe,
            request=self._access.request(call.path, body=call.body),
            generation=replace(generation, prompt="", earlier=()),
            dialect=call.dialect,
            limits=self._limits.for_request(
                longest_tokens, probe.output_tokens, probabilities=probabilities_in(self._extra)
            ),
        )

    async def measure_together(
        self, probes: Sequence[Probe], first_number: int
    ) -> list[RequestRecord]:
        """Send several requests at the same moment, each over a connection of its own.

        Args:
            probes: wanted lengths.
            first_number: number of the first of them within the run.
        """
        requests = [await self.prepare(probe) for probe in probes]
        channels = [self.take_channel() for _ in probes]
        try:
            await asyncio.gather(
                *(c.open(r.limits) for c, r in zip(channels, requests, strict=True))
            )
            records = await asyncio.gather(
                *(
                    self.sender.send(request, first_number + index, channel)
                    for index, (request, channel) in enumerate(zip(requests, channels, strict=True))
                )
            )
        finally:
            for channel in channels:
                self.give_back(channel)
        others = len(records) - 1
        return [structs.replace(record, other_requests=others) for record in records]

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
        channel = self.take_channel()
        try:
            path = lightest_path(self.runtime, self._answers)
            return await fastest_round_trip_s(channel, path)
        finally:
            self.give_back(channel)


def probabilities_in(fields: Mapping[str, Any]) -> int:
    """How many probabilities the user's fields ask for with each token."""
    return min(max(whole(fields, name) or 0 for name in PROBABILITY_FIELDS), MOST_PROBABILITIES)
