"""What was predicted and what came of it: a local file of JSON lines that nobody else reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from twospeed.records.errors import InputError
from twospeed.records.json_text import encoded

Held = Literal["yes", "no", "cannot tell"]
"""yes: the measured saving lies in the predicted range. no: its whole interval lies outside."""


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One prediction that was checked; seconds saved on one request of the workload."""

    made_at: str
    """UTC, ISO 8601."""
    twospeed_version: str
    cure: str
    predicted_low_s: float
    predicted_likely_s: float
    predicted_high_s: float
    measured_low_s: float | None = None
    measured_likely_s: float | None = None
    measured_high_s: float | None = None
    held: Held
    runtime: str | None = None
    model: str | None = None


class TrackRecord(Struct, frozen=True, kw_only=True):
    """How often the predictions of one change held on this machine."""

    cure: str
    checked: int
    held: int
    did_not_hold: int
    cannot_tell: int


def track_records(outcomes: Sequence[Outcome]) -> tuple[TrackRecord, ...]:
    """Outcomes counted by change, in the order of the names."""
    by_cure: dict[str, list[Held]] = {}
    for one in outcomes:
        by_cure.setdefault(one.cure, []).append(one.held)
    return tuple(
        TrackRecord(
            cure=cure,
            checked=len(held),
            held=held.count("yes"),
            did_not_hold=held.count("no"),
            cannot_tell=held.count("cannot tell"),
        )
        for cure, held in sorted(by_cure.items())
    )


def ledger_path(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Where the ledger lies, by the customs of the system for what a user would miss.

    Args:
        environment: names and values, as `os.environ`.
        platform: as `sys.platform`.
    """
    if platform == "win32":
        base = environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif platform == "darwin":
        base = environment.get("XDG_DATA_HOME") or Path.home() / "Library" / "Application Support"
    else:
        base = environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "twospeed" / "ledger.jsonl"


def append_outcome(path: Path, outcome: Outcome) -> None:
    """Write one line at the end; the file is readable by its owner only.

    Raises:
        InputError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(path, "ab", opener=_owner_only) as file:
            file.write(encoded(outcome) + b"\n")
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or error}.") from error


def read_outcomes(path: Path) -> tuple[Outcome, ...]:
    """All outcomes, oldest first; none where there is no file. Lines that are cut are passed over.

    Raises:
        InputError: it cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    return tuple(found for line in lines if (found := _outcome(line)) is not None)


def _outcome(line: bytes) -> Outcome | None:
    try:
        return msgspec.json.decode(line, type=Outcome)
    except (msgspec.DecodeError, RecursionError):
        return None


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
