"""The portable file of a run: JSON lines that survive being cut at any byte.

The first line names the schema and what was asked; each further line is one thing that became
known, `{"type": ..., "value": ...}`, written and flushed at once, so that an interrupted
measurement is still readable. A file without its "end" line is a partial run. Later versions add
line types and fields only; a change that old readers would misread raises the version, and gets a
migration here.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

import msgspec
from msgspec import Struct

from twospeed.records.errors import InputError
from twospeed.records.json_text import encoded
from twospeed.records.request_record import RequestRecord, Seconds
from twospeed.records.run import (
    BenchmarkPoint,
    Blind,
    Conditions,
    Goals,
    LoadSummary,
    MachineFacts,
    MachineProbe,
    ModelHeader,
    Run,
    RuntimeFacts,
    Setting,
    Source,
    Workload,
)

VERSION = 1
LINE_LIMIT_BYTES = 64 * 1024 * 1024

Migration = Callable[[dict[str, Any]], dict[str, Any]]
"""Turns one decoded line of version n into the same line of version n + 1."""

MIGRATIONS: Mapping[int, Migration] = {}
"""By the version that each one starts from. Version 1 is the first, so there are none yet."""

Thing = (
    RequestRecord
    | RuntimeFacts
    | MachineProbe
    | MachineFacts
    | ModelHeader
    | Conditions
    | Blind
    | BenchmarkPoint
    | LoadSummary
)


class _Spelled(Struct, frozen=True):
    """How the runtime spells its settings: one object, so that later versions may add to it."""

    settings: dict[str, Setting]


_TYPE_OF: dict[type[Struct], str] = {
    RequestRecord: "request",
    RuntimeFacts: "facts",
    MachineProbe: "probe",
    MachineFacts: "machine",
    ModelHeader: "header",
    Conditions: "conditions",
    Blind: "unknown",
    BenchmarkPoint: "point",
    LoadSummary: "summary",
}
_VALUE_OF: dict[str, Any] = {name: kind for kind, name in _TYPE_OF.items()} | {
    "round_trip": Seconds | None,
    "loading": Seconds | None,
    "settings": _Spelled,
    "end": Any,
}
_FIELD_OF = {
    name: name for name in ("facts", "probe", "machine", "header", "conditions", "summary")
} | {
    "round_trip": "round_trip_s",
    "loading": "loading_s",
}
_OURS = re.compile(rb'\s*\{\s*"schema"\s*:\s*"twospeed\.records/(\d{1,9})"')


class _Head(Struct, frozen=True, kw_only=True):
    """First line of the file."""

    schema: str
    source: Source
    workload: Workload
    goals: Goals
    made_at: str
    twospeed_version: str
    ignore_timings: bool = False


class _Line(Struct, frozen=True):
    """Any further line."""

    type: str
    value: msgspec.Raw = msgspec.Raw(b"null")


def looks_like_run(head: bytes) -> bool:
    """Whether these first bytes of a file open a twospeed record file of any version."""
    return _OURS.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


class RunWriter:
    """Keeps a run in a file while it is made, readable by its owner only.

    The file is opened at once, so that a wrong path fails before anything is measured, and
    emptied by `begin`, so that a failure in between leaves an older run as it was.

    Args:
        path: a new file, an empty one, or an earlier record file, which is replaced.

    Raises:
        InputError: the path cannot be written or holds something else; choose another.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self._file = _open_for_writing(self.path)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def begin(
        self,
        *,
        source: Source,
        workload: Workload,
        goals: Goals,
        made_at: str,
        twospeed_version: str,
        ignore_timings: bool = False,
    ) -> None:
        """Empty the file and write what is asked and of whom; `made_at` is UTC, ISO 8601."""
        try:
            self._file.truncate(0)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self._append(
            _Head(
                schema=f"twospeed.records/{VERSION}",
                source=source,
                workload=workload,
                goals=goals,
                made_at=made_at,
                twospeed_version=twospeed_version,
                ignore_timings=ignore_timings,
            )
        )

    def add(self, thing: Thing) -> None:
        """Append one thing that became known.

        Requests, unknowns and points pile up; of everything else the last counts.
        """
        self._append({"type": _TYPE_OF[type(thing)], "value": thing})

    def round_trip(self, seconds: float | None) -> None:
        """Append the fastest round trip of a trivial request, in seconds."""
        self._append({"type": "round_trip", "value": seconds})

    def loading(self, seconds: float) -> None:
        """Append how long the server was loading its model while we waited, in seconds."""
        self._append({"type": "loading", "value": seconds})

    def settings(self, spelled: Mapping[str, Setting]) -> None:
        """Append how the runtime spells its settings."""
        self._append({"type": "settings", "value": _Spelled(dict(spelled))})

    def end(self) -> None:
        """Mark the run as complete."""
        self._append({"type": "end"})

    def close(self) -> None:
        """Close the file; without `end` before it, the run reads as partial."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, line: object) -> None:
        try:
            self._file.write(encoded(line) + b"\n")
            self._file.flush()
        except OSError as error:
            raise _unwritable(self.path, error) from error


def write_run(path: Path | str, run: Run) -> None:
    """Keep a whole run in a file (see `RunWriter`)."""
    with RunWriter(path) as writer:
        writer.begin(
            source=run.source,
            workload=run.workload,
            goals=run.goals,
            made_at=run.made_at,
            twospeed_version=run.twospeed_version,
            ignore_timings=run.ignore_timings,
        )
        writer.round_trip(run.round_trip_s)
        if run.loading_s is not None:
            writer.loading(run.loading_s)
        if run.settings:
            writer.settings(run.settings)
        known = (run.facts, run.probe, run.machine, run.header, run.conditions, run.summary)
        for thing in (*known, *run.records, *run.unknown, *run.points):
            if thing is not None:
                writer.add(thing)
        if run.complete:
            writer.end()


def read_run(path: Path | str, *, migrations: Mapping[int, Migration] = MIGRATIONS) -> Run:
    """The run that a record file holds; `complete` is False where the file was cut.

    Line types and fields that this version does not know are passed over.

    Raises:
        InputError: not a record file, damaged, or written by a newer twospeed.
    """
    try:
        with Path(path).open("rb") as file:
            return read_run_from(file, where=str(path), migrations=migrations)
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


def read_run_from(
    file: BinaryIO, *, where: str, migrations: Mapping[int, Migration] = MIGRATIONS
) -> Run:
    """As `read_run`, from an open binary file; `where` names it in messages."""
    first = _bounded_line(file, where, 1).removeprefix(b"\xef\xbb\xbf")
    version = _version(first, where)
    head = _decoded(_migrated(first, version, migrations, where, 1), _Head, where, 1)
    found: dict[str, list[Any]] = {kind: [] for kind in _VALUE_OF}
    for kind, value in _further_lines(file, version, migrations, where):
        found.setdefault(kind, []).append(value)
    last = {field: found[kind][-1] for kind, field in _FIELD_OF.items() if found[kind]}
    spelled = found["settings"][-1].settings if found["settings"] else {}
    return Run(
        source=head.source,
        workload=head.workload,
        goals=head.goals,
        made_at=head.made_at,
        twospeed_version=head.twospeed_version,
        ignore_timings=head.ignore_timings,
        records=tuple(found["request"]),
        unknown=tuple(found["unknown"]),
        points=tuple(found["point"]),
        settings=spelled,
        complete=bool(found["end"]),
        **last,
    )


def _further_lines(
    file: BinaryIO, version: int, migrations: Mapping[int, Migration], where: str
) -> Iterator[tuple[str, Any]]:
    number = 2
    while data := _bounded_line(file, where, number):
        try:
            if data.strip():
                yield _read_line(data, version, migrations, where, number)
        except InputError:
            if data.endswith(b"\n"):
                raise
            return  # cut in the middle of its last line
        number += 1


def _read_line(
    data: bytes, version: int, migrations: Mapping[int, Migration], where: str, number: int
) -> tuple[str, Any]:
    data = _migrated(data, version, migrations, where, number)
    line: _Line = _decoded(data, _Line, where, number)
    if line.type not in _VALUE_OF:
        return line.type, None
    return line.type, _decoded(bytes(line.value), _VALUE_OF[line.type], where, number)


def _version(first: bytes, where: str) -> int:
    if not first.strip():
        raise InputError(f"{where} is empty: no record file.")
    match = _OURS.match(first)
    if match is None:
        raise InputError(
            f"{where} is not a twospeed record file.",
            hint='Its first line should begin with {"schema":"twospeed.records/…"}.',
        )
    version = int(match[1])
    if version > VERSION:
        raise InputError(
            f"{where} was written by a newer twospeed (twospeed.records/{version}; this one reads "
            f"up to {VERSION}).",
            hint="Upgrade twospeed to read it.",
        )
    return version


def _migrated(
    data: bytes, version: int, migrations: Mapping[int, Migration], where: str, number: int
) -> bytes:
    if version == VERSION:
        return data
    line = _decoded(data, dict[str, Any], where, number)
    for step in range(version, VERSION):
        if step not in migrations:
            raise InputError(f"{where} has the unknown version twospeed.records/{version}.")
        line = migrations[step](line)
    return msgspec.json.encode(line)


def _bounded_line(file: BinaryIO, where: str, number: int) -> bytes:
    data = file.readline(LINE_LIMIT_BYTES + 1)
    if len(data) > LINE_LIMIT_BYTES:
        raise InputError(
            f"Line {number} of {where} is longer than {LINE_LIMIT_BYTES >> 20} MiB: "
            "not a twospeed record file."
        )
    return data


def _decoded(data: bytes, kind: object, where: str, number: int) -> Any:  # noqa: ANN401 (kind)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"Line {number} of {where} is damaged: {error}.") from error


def _open_for_writing(path: Path) -> BinaryIO:
    try:
        return open(path, "xb", opener=_owner_only)
    except FileExistsError:
        return _reopened(path)


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _reopened(path: Path) -> BinaryIO:
    """Open what is already there, unless something else than a record file would be lost."""
    if not stat.S_ISREG(path.stat().st_mode):  # before opening: a pipe would block
        raise InputError(f"{path} is not a regular file.", hint="Choose another path.")
    file = path.open("r+b")
    head = file.read(256)
    if head and not looks_like_run(head):
        file.close()
        raise InputError(
            f"{path} exists and is not a twospeed record file: not overwritten.",
            hint="Choose another path or remove it.",
        )
    file.seek(0)
    path.chmod(0o600)
    return file


def _unwritable(path: Path, error: OSError) -> InputError:
    what = f"Cannot write {path}: {error.strerror or error}."
    return InputError(what, hint="Choose another path.")
