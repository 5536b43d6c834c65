"""The run while it is being measured: complete enough to report at any moment."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from twospeed import __version__
from twospeed.records.request_record import RequestRecord
from twospeed.records.run import (
    Blind,
    Conditions,
    Goals,
    MachineFacts,
    MachineProbe,
    ModelHeader,
    Run,
    RuntimeFacts,
    Source,
    Workload,
)
from twospeed.records.run_file import RunWriter
from twospeed.runtimes.registry import settings_of


class Book:
    """Keeps what is known so far, and writes each part to the file of --save as it becomes known.

    Args:
        workload: the request shape that is asked about.
        goals: what counts as slow.
        save: file to keep, or None.
        ignore_timings: leave the server's own clocks unused.

    Raises:
        InputError: the file cannot be written.
    """

    def __init__(
        self, workload: Workload, goals: Goals, *, save: Path | None, ignore_timings: bool
    ) -> None:
        self._writer = RunWriter(save) if save is not None else None
        self.run = Run(
            source=Source(kind="live", where=""),
            workload=workload,
            goals=goals,
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            twospeed_version=__version__,
            ignore_timings=ignore_timings,
            complete=False,
        )

    def open(self, source: Source, facts: RuntimeFacts) -> None:
        """Say what is measured; the file stays as it was until then."""
        settings = settings_of(source.runtime)
        self.run = replace(self.run, source=source, facts=facts, settings=settings)
        if self._writer is None:
            return
        self._writer.begin(
            source=source,
            workload=self.run.workload,
            goals=self.run.goals,
            made_at=self.run.made_at,
            twospeed_version=self.run.twospeed_version,
            ignore_timings=self.run.ignore_timings,
        )
        self._writer.add(facts)
        self._writer.settings(settings)

    def round_trip(self, seconds: float | None) -> None:
        """Take up the fastest round trip of a trivial request."""
        self.run = replace(self.run, round_trip_s=seconds)
        if self._writer:
            self._writer.round_trip(seconds)

    def loading(self, seconds: float | None) -> None:
        """Take up how long the server was loading while we waited; None when it was ready."""
        self.run = replace(self.run, loading_s=seconds)
        if self._writer and seconds is not None:
            self._writer.loading(seconds)

    def add(
        self,
        thing: RequestRecord
        | MachineProbe
        | MachineFacts
        | ModelHeader
        | Conditions
        | Blind
        | RuntimeFacts,
    ) -> None:
        """Take up one thing that became known."""
        run = self.run
        match thing:
            case RequestRecord():
                self.run = replace(run, records=(*run.records, thing))
            case Blind():
                self.run = replace(run, unknown=(*run.unknown, thing))
            case MachineProbe():
                self.run = replace(run, probe=thing)
            case MachineFacts():
                self.run = replace(run, machine=thing)
            case ModelHeader():
                self.run = replace(run, header=thing)
            case Conditions():
                self.run = replace(run, conditions=thing)
            case RuntimeFacts():
                self.run = replace(run, facts=thing)
        if self._writer:
            self._writer.add(thing)

    def complete(self) -> None:
        """Mark the run as whole; one that was interrupted never comes here."""
        self.run = replace(self.run, complete=True)
        if self._writer:
            self._writer.end()

    def close(self) -> None:
        """Close the file of --save, whatever became of the run."""
        if self._writer:
            self._writer.close()
