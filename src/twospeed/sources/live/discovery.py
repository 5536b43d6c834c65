"""Which runtimes are running on this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from twospeed.records.errors import EndpointError, UsageError
from twospeed.runtimes.registry import identify_asks, known_ports, recognise
from twospeed.sources.live.channel import Access, Channel
from twospeed.sources.live.identification import ask_all, chosen_model, is_loading
from twospeed.sources.live.target import Target

HOSTS = ("127.0.0.1", "::1")
ADDRESS_VARIABLES = ("OLLAMA_HOST", "OPENAI_BASE_URL", "OPENAI_API_BASE")
DEFAULT_OLLAMA_PORT = 11434
ASK_S = 0.3
"""Seconds for connecting, and for one question."""
IDENTIFY_S = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One runtime that answers on this machine."""

    url: str
    runtime_id: str
    model: str | None
    """The model it would use; None when it names none, or is still loading."""
    loading: bool = False


async def find_local(
    extra_ports: Iterable[int] = (), *, environment: Mapping[str, str] | None = None
) -> list[Found]:
    """Look at the usual ports of this machine, and at loopback addresses in the environment.

    Takes under a second, however little the listeners say.

    Args:
        extra_ports: ports to look at besides the known ones.
        environment: where OLLAMA_HOST and the like are read from; None for this process's own.

    Returns:
        One entry for each port that a runtime answers on, in the order of the ports looked at.
    """
    named = _named_targets(os.environ if environment is None else environment)
    ports = dict.fromkeys([*extra_ports, *known_ports()])
    targets = dict.fromkeys(
        [*named, *(Target("http", host, port) for port in ports for host in HOSTS)]
    )
    results = await asyncio.gather(*(_look_at(target) for target in targets))
    by_port: dict[int, Found] = {}
    for target, found in zip(targets, results, strict=True):
        if found is not None:
            by_port.setdefault(target.port, found)
    return list(by_port.values())


def _named_targets(environment: Mapping[str, str]) -> list[Target]:
    """Loopback addresses that other tools on this machine are set up to use."""
    targets = []
    for variable in ADDRESS_VARIABLES:
        text = environment.get(variable, "").strip()
        try:
            target = Target.parse(text) if text else None
        except UsageError:
            continue
        if target is not None and target.is_loopback:
            if variable == "OLLAMA_HOST" and target.port == 80 and ":80" not in text:
                target = Target(target.scheme, target.host, DEFAULT_OLLAMA_PORT, target.base_path)
            targets.append(target)
    return targets


async def _look_at(target: Target) -> Found | None:
    """What answers there, or None when it is no runtime or says nothing in time."""
    channel = Channel(Access.to(target))
    try:
        answers = await ask_all(channel, identify_asks(), each_s=ASK_S, all_s=IDENTIFY_S)
    except EndpointError:
        return None
    finally:
        channel.close()
    runtime = recognise(answers)
    if not runtime.recognise(answers):
        return None
    models = runtime.models(answers)
    return Found(
        url=target.url,
        runtime_id=runtime.id,
        model=chosen_model(target, None, models),
        loading=any(is_loading(answer) for answer in answers.values()),
    )
