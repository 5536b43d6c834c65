"""What really happened to each request, as one JSON line when it has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from twospeed.records.errors import InputError
from twospeed.simulator.arrival import Arrival
from twospeed.simulator.exchange import Write

Ended = Literal["complete", "refused", "reset", "client closed", "stopped"]
BEHIND_NS = 1_000_000
"""A write that is later than this fell behind."""


class WriteTruth(msgspec.Struct, frozen=True, kw_only=True):
    """One write; stamps in nanoseconds of the monotonic clock."""

    kind: str
    """`head`, `role`, `progress`, `ping`, `reasoning`, `text`, `finish`, `whole`, …"""
    planned_ns: int
    actual_ns: int
    """Read immediately before the bytes were handed to the kernel."""
    tokens: int
    bytes: int


class RequestTruth(msgspec.Struct, frozen=True, kw_only=True):
    """One request; a stamp (nanoseconds, monotonic) is null where its stage was not reached."""

    request: int
    path: str
    dialect: str
    status: int
    ended: Ended
    stream: bool
    faults: tuple[str, ...]
    slot: int | None
    kernel_receive_ns: int | None
    """The kernel's stamp of the last byte of the request; null where it gives none."""
    read_ns: int
    """The simulator's own clock right after it read that byte."""
    arrival_ns: int
    """The one of the two that the plan starts from."""
    realtime_minus_monotonic_ns: int
    """Add it to a stamp to get nanoseconds since 1970; sampled when the request came."""
    queue_end_ns: int | None
    prefill_start_ns: int | None
    """After waiting for the model to load."""
    prefill_end_ns: int | None
    end_ns: int
    """The last write, or the moment at which the request was given up."""
    prompt_tokens: int | None
    """Null when the request was refused before its prompt was counted."""
    cached_prompt_tokens: int | None
    output_tokens: int
    """That were written."""
    reasoning_tokens: int
    writes: list[WriteTruth]
    late_writes: int
    """Those of text that were later than planned by more than a millisecond."""
    worst_late_ns: int


def truth_of(write: Write, actual_ns: int, size_bytes: int) -> WriteTruth:
    """What happened to a write.

    Args:
        write: as planned.
        actual_ns: when it was handed over.
        size_bytes: on the wire.
    """
    return WriteTruth(
        kind=write.kind,
        planned_ns=write.at_ns,
        actual_ns=actual_ns,
        tokens=write.tokens,
        bytes=size_bytes,
    )


def refused_truth(
    *, number: int, dialect: str, path: str, status: int, arrival: Arrival, now_ns: int
) -> RequestTruth:
    """What happened to a request for text that was answered at once, with an error.

    Args:
        number: of the request.
        dialect: that it was answered in.
        path: that it was sent to.
        status: of the answer.
        arrival: of its last byte.
        now_ns: when it was answered.
    """
    return RequestTruth(
        request=number,
        path=path,
        dialect=dialect,
        status=status,
        ended="refused",
        stream=False,
        faults=(),
        slot=None,
        kernel_receive_ns=arrival.kernel_ns,
        read_ns=arrival.read_ns,
        arrival_ns=arrival.best_ns,
        realtime_minus_monotonic_ns=arrival.offset_ns,
        queue_end_ns=None,
        prefill_start_ns=None,
        prefill_end_ns=None,
        end_ns=now_ns,
        prompt_tokens=None,
        cached_prompt_tokens=None,
        output_tokens=0,
        reasoning_tokens=0,
        writes=[],
        late_writes=0,
        worst_late_ns=0,
    )


class TruthFile:
    """Appends one line per request.

    Args:
        path: the file; it is begun anew.

    Raises:
        InputError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.touch(mode=0o600)
            self._file = path.open("wb")
        except OSError as error:
            raise InputError(f"Cannot write {path}: {error.strerror}.") from error
        self._encoder = msgspec.json.Encoder()

    def add(self, truth: RequestTruth) -> None:
        """Write one line."""
        self._file.write(self._encoder.encode(truth) + b"\n")
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        self._file.close()
