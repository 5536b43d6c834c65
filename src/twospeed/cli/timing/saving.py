"""The file of --save: every record of a timing as it is made, to be reported again later."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from twospeed import __version__
from twospeed.records.request_record import RequestRecord
from twospeed.records.run import Goals, RuntimeFacts, Source, Workload
from twospeed.records.run_file import RunWriter


class Saving:
    """Writes records; does nothing without a file.

    Args:
        path: of --save, or None.

    Raises:
        InputError: the file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._writer = RunWriter(path) if path is not None else None
        self._begun = False
        self._source = Source(kind="live", where="")
        self._facts = RuntimeFacts()
        self._made_at = ""

    def open(self, source: Source, facts: RuntimeFacts, made_at: str) -> None:
        """Say what is timed; the file stays as it was until the first record."""
        self._source, self._facts, self._made_at = source, facts, made_at

    def add(self, record: RequestRecord) -> None:
        """Keep one record; the first one tells how long the prompts are."""
        if self._writer is None:
            return
        if not self._begun:
            self._begin(self._writer, record)
        self._writer.add(record)

    def _begin(self, writer: RunWriter, record: RequestRecord) -> None:
        wanted = record.probe
        self._begun = True
        writer.begin(
            source=self._source,
            workload=Workload(
                prompt_tokens=record.counts.prompt_tokens
                or (wanted.prompt_tokens if wanted else 1),
                output_tokens=wanted.output_tokens if wanted else 1,
                origin="flag",
            ),
            goals=Goals(),
            made_at=self._made_at,
            twospeed_version=__version__,
        )
        writer.add(self._facts)

    def complete(self) -> None:
        """All records are there."""
        if self._writer is not None and self._begun:
            self._writer.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._writer is not None:
            self._writer.close()
