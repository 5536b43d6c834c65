"""A request for text that is ready to be sent: nothing is written or encoded once clocks run."""

from __future__ import annotations

from dataclasses import dataclass

from twospeed.records.request_record import Probe
from twospeed.runtimes.runtime import Generation
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
