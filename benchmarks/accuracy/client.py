"""What is asked of a client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stream import Stream

PROMPT_TOKENS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a client is to do."""

    url: str
    streams: int
    requests: int
    tokens: int
    folder: Path
    """For whatever it writes; `client.log` there is what it prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """How to run one, and how to read what it told."""

    command: Callable[[Task], list[str]]
    read: Callable[[Task], list[Stream]]
    tool: str | None = None
    """To be installed first."""
    pairs: bool = False
    """Its requests can be told apart by the order in which they were sent."""
    tls: bool = False
