"""What was read out of a text: the common product of every log format."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import asdict, replace

from twospeed.records.request_record import RequestRecord
from twospeed.records.run import BenchmarkPoint, LoadSummary, MachineFacts, RuntimeFacts


@dataclass(slots=True)
class Content:
    """What one text told.

    Numbers of records are given when the run is made; a format leaves them at their order.
    """

    runtime: str | None = None
    """Identifier of the runtime module, where the text names or betrays it."""
    runtime_version: str | None = None
    model: str | None = None
    records: list[RequestRecord] = field(default_factory=list)
    points: list[BenchmarkPoint] = field(default_factory=list)
    facts: RuntimeFacts = field(default_factory=RuntimeFacts)
    machine: MachineFacts | None = None
    summary: LoadSummary | None = None
    end_to_end: int = 0
    """Requests of which only the whole time is told, so that their phases cannot be parted."""
    unread: int = 0
    """Lines that look like timings and were not understood."""
    too_large: bool = False
    """It begins as a document of JSON that is too long to be read as one."""

    def learn(self, **known: object) -> None:
        """Take up facts of the runtime by the names of RuntimeFacts; None teaches nothing."""
        self.facts = replace(self.facts, **{k: v for k, v in known.items() if v is not None})

    def join(self, other: Content) -> None:
        """Take up what another text of the same paste told; what is known already stays."""
        self.runtime = self.runtime or other.runtime
        self.runtime_version = self.runtime_version or other.runtime_version
        self.model = self.model or other.model
        self.records += other.records
        self.points += other.points
        known = {k: v for k, v in asdict(self.facts).items() if v is not None}
        self.facts = replace(other.facts, **known)
        self.machine = self.machine or other.machine
        self.summary = self.summary or other.summary
        self.end_to_end += other.end_to_end
        self.unread += other.unread
        self.too_large = self.too_large or other.too_large
