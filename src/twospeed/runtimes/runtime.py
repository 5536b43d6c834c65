"""What twospeed needs to know of a runtime, and the answers of an endpoint it is recognised by.

A runtime is one module with one subclass of Runtime; `registry.py` finds it. The base class
speaks to any OpenAI-compatible endpoint, so a module holds only what differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from twospeed.records.request_record import ServerTimes, TokenCounts
from twospeed.records.run import RuntimeFacts
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
    stream: bool = True
    exact_length: bool = True
    """Ask the runtime to ignore the end of text where it can, so that lengths come out as wanted."""
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
    """How one setting is spelled for a runtime; None where it has no such spelling."""

    flag: str | None = None
    env: str | None = None
    request: str | None = None
