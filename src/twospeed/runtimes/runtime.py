"""What twospeed needs to know of a runtime, and the answers of an endpoint it is recognised by.

A runtime is one module with one subclass of Runtime; `registry.py` finds it. The base class
speaks to any OpenAI-compatible endpoint, so a module holds only what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from twospeed.records.request_record import ServerSigns, ServerTimes, TokenCounts
from twospeed.records.run import RuntimeFacts
from twospeed.runtimes.fields import objects, text
from twospeed.runtimes.usage import token_counts
from twospeed.wire.reading import StreamReading

Certainty = Literal[0, 1, 2, 3]
"""0 not this one; 1 compatible with it; 2 several signs; 3 it names itself."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One cheap, harmless request that identifies a runtime or shows a fact."""

    path: str
    method: Literal["GET", "POST"] = "GET"
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; `status` is None when nothing did."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""
    json: Any = None
    """Decoded body, None when it is not JSON."""


Answers = Mapping[str, Answer]
"""Answers by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A request for text, free of any dialect."""

    model: str | None
    prompt: str
    output_tokens: int
    earlier: tuple[tuple[str, str], ...] = ()
    """Turns before the prompt: what the user said, and what was answered."""
    stream: bool = True
    exact_length: bool = True
    """Ask the runtime to ignore the end of text where it can, so that lengths are as wanted."""
    salt: str | None = None
    """A value that separates this prompt from all cached ones, for runtimes that take one."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Request fields that the user set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A generation request as bytes-to-be."""

    path: str
    body: Mapping[str, Any]
    dialect: str
    """Name of the wire module that reads the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How one setting is spelled for a runtime; None where it has no such spelling.

    `{value}` stands for the value (replace it as text: requests hold other braces). A spelling
    without it is a switch, written in the direction that speeds things up: flash attention on,
    prompt cache on, model kept loaded, reasoning off.

    The names are shared by all runtimes: n_ctx, n_batch, n_ubatch, threads, gpu_layers,
    flash_attn, kv_type_k, kv_type_v, cache_prompt, parallel_slots, cache_ram_mib, keep_loaded,
    prefix_cache, max_output_tokens, reasoning.
    """

    flag: str | None = None
    """On the command line that starts the runtime, or a whole command where one is needed."""
    env: str | None = None
    """`NAME=value` in the environment of the runtime."""
    request: str | None = None
    """Member of the JSON body of a request."""


COUNT_IN_EVERY_EVENT: Mapping[str, Any] = {"include_usage": True, "continuous_usage_stats": True}
"""Stream options of runtimes that count in each event, of which one may hold several tokens, or a
token that is no text yet."""


def served_models(answers: Answers) -> list[Mapping[str, Any]]:
    """Entries of `/v1/models`, which nearly every runtime has; empty without a good answer."""
    return objects(good_json(answers, "/v1/models"), "data")


def model_entry(answers: Answers, model: str | None) -> Mapping[str, Any] | None:
    """The entry of `model`; the only entry where the runtime knows it by another name."""
    entries = served_models(answers)
    only = entries[0] if len(entries) == 1 else None
    return next((entry for entry in entries if entry.get("id") == model), only)


def good_json(answers: Answers, path: str) -> object:
    """JSON of the answer from `path`; None unless its status was 200."""
    answer = answers.get(path)
    return answer.json if answer is not None and answer.status == 200 else None


def server_header(answers: Answers) -> str:
    """The first `Server` header among the answers, in lower case; empty where none was sent."""
    headers = (answer.headers.get("server") for answer in answers.values())
    return next((header.lower() for header in headers if header), "")


class Runtime:
    """Any OpenAI-compatible endpoint, and the base of all others.

    A runtime module overrides what differs. Every method is total: answers and readings are
    those of a stranger, and what they do not say in the expected type is unknown.

    Attributes:
        id: short name, kept in files.
        name: as its makers write it.
        ports: where it listens unless told otherwise.
        identify: GET requests whose answers tell whether it is this one.
        settings: how each setting is spelled, by shared name (see Setting).
        reports_cached: True when it always tells cached tokens, False when it never does, None
            when that depends on its version or flags.
        zero_cached_is_known: False when "0 cached tokens" is a constant of its code.
    """

    id: ClassVar[str] = "openai"
    name: ClassVar[str] = "OpenAI-compatible"
    ports: ClassVar[tuple[int, ...]] = ()
    identify: ClassVar[tuple[Ask, ...]] = (Ask("/v1/models"),)
    stream_options: ClassVar[Mapping[str, Any]] = {"include_usage": True}
    """Without it most runtimes tell no token counts in a stream."""
    settings: ClassVar[Mapping[str, Setting]] = {
        "max_output_tokens": Setting(request='"max_tokens": {value}'),
    }
    reports_cached: ClassVar[bool | None] = None
    zero_cached_is_known: ClassVar[bool] = True

    def recognise(self, answers: Answers) -> Certainty:
        """Whether the endpoint that gave `answers` is this runtime."""
        return 1 if served_models(answers) else 0

    def version(self, answers: Answers) -> str | None:  # noqa: ARG002 - the protocol of all
        """Version as the endpoint writes it; None where it does not show."""
        return None

    def models(self, answers: Answers) -> list[str]:
        """Names to ask for, loaded models first."""
        names = [text(entry, "id") for entry in served_models(answers)]
        return [name for name in names if name]

    def fact_asks(self, model: str | None) -> tuple[Ask, ...]:  # noqa: ARG002
        """Cheap requests, beyond those of `identify`, whose answers hold facts about `model`."""
        return ()

    def facts(self, answers: Answers, model: str | None) -> RuntimeFacts:  # noqa: ARG002
        """What the runtime says about itself, from the answers to both kinds of asks."""
        return RuntimeFacts(reports_cached_tokens=self.reports_cached)

    def call(self, g: Generation) -> Call:
        """The request for text in the dialect that tells most about its phases."""
        body = {
            **openai_chat_body(g),
            **({"stream_options": self.stream_options} if g.stream else {}),
            **(self.length_fields(g) if g.exact_length else {}),
            **self.request_fields(g),
            **g.extra,
        }
        return Call(path="/v1/chat/completions", body=body, dialect="openai_chat")

    def length_fields(self, g: Generation) -> Mapping[str, Any]:  # noqa: ARG002
        """Fields that keep the answer from ending early, sent only for an exact length."""
        return {}

    def request_fields(self, g: Generation) -> Mapping[str, Any]:  # noqa: ARG002
        """Further fields that only this runtime takes."""
        return {}

    def interpret(
        self,
        reading: StreamReading,
        g: Generation,  # noqa: ARG002 - for runtimes whose meaning depends on the request
    ) -> tuple[TokenCounts, ServerTimes | None]:
        """What the response says about tokens and phases, in this runtime's meaning.

        Returns:
            Counts, and the runtime's own times; None where it tells none.
        """
        counts = self.counts(reading)
        return counts, self.server_times(reading, counts)

    def counts(self, reading: StreamReading) -> TokenCounts:
        """Tokens of the request; what the response does not say is None."""
        return token_counts(reading.usage, zero_cached_is_known=self.zero_cached_is_known)

    def server_times(
        self,
        reading: StreamReading,  # noqa: ARG002
        counts: TokenCounts,  # noqa: ARG002
    ) -> ServerTimes | None:
        """The runtime's own times of the request; None where it tells none."""
        return None

    def signs(self, reading: StreamReading) -> ServerSigns | None:  # noqa: ARG002
        """What the response shows beside counts and times; None where that is nothing."""
        return None

    def tokenize(self, model: str | None, prompt: str) -> Ask | None:  # noqa: ARG002
        """The request that counts the tokens of a text; None where there is none."""
        return None

    def token_count(self, answer: Answer) -> int | None:  # noqa: ARG002
        """Tokens according to the answer to `tokenize`."""
        return None

    def activity_ask(self) -> Ask | None:
        """The request that shows how many requests are in progress; None where none does."""
        return None

    def activity(self, answer: Answer) -> int | None:  # noqa: ARG002
        """Requests in progress, ours included; None where the answer does not show it."""
        return None


def messages(g: Generation) -> list[dict[str, str]]:
    """The conversation as nearly every runtime takes it."""
    turns = [
        {"role": role, "content": said}
        for turn in g.earlier
        for role, said in zip(("user", "assistant"), turn, strict=True)
    ]
    return [*turns, {"role": "user", "content": g.prompt}]


def openai_chat_body(g: Generation) -> dict[str, Any]:
    """The fields that every OpenAI-compatible endpoint takes."""
    body: dict[str, Any] = {
        "messages": messages(g),
        "max_tokens": g.output_tokens,
        "temperature": 0,
        "stream": g.stream,
    }
    if g.model is not None:
        body["model"] = g.model
    return body
