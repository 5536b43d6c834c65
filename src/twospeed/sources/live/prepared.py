"""A request for text that is ready to be sent: nothing is written or encoded once clocks run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from twospeed.records.request_record import Probe
from twospeed.runtimes.runtime import Generation, Runtime
from twospeed.sources.live.channel import Access
from twospeed.sources.live.prompts import Prompt
from twospeed.sources.live.time_limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One request for text, written and encoded."""

    probe: Probe
    request: bytes
    """Head and body as they go out."""
    generation: Generation
    """What was asked, without the text of the prompt: one copy of it in `request` is enough."""
    dialect: str
    limits: Limits


def prepared(
    access: Access,
    runtime: Runtime,
    generation: Generation,
    *,
    probe: Probe,
    prompt: Prompt,
    limits: Limits,
) -> Prepared:
    """Encode a request for text.

    Args:
        access: to the endpoint.
        runtime: gives the request its form.
        generation: the request, free of any form.
        probe: what is wanted.
        prompt: its text, for the limits.
        limits: of any request.
    """
    call = runtime.call(generation)
    longest_tokens = max(probe.prompt_tokens, prompt.words)
    return Prepared(
        probe=probe,
        request=access.request(call.path, body=call.body),
        generation=replace(generation, prompt=""),
        dialect=call.dialect,
        limits=limits.for_request(longest_tokens, probe.output_tokens),
    )
