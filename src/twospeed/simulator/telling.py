"""An answer that is being told on a connection, and its truth afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from twospeed.simulator.arrival import Arrival
from twospeed.simulator.connection import Connection
from twospeed.simulator.exchange import Write
from twospeed.simulator.simulation import Stream
from twospeed.simulator.truth import BEHIND_NS, Ended, RequestTruth, WriteTruth


@dataclass(slots=True, eq=False)
class Telling:
    """The state of one answer."""

    connection: Connection
    stream: Stream
    arrival: Arrival
    writes: Iterator[Write] | None = None
    """None until there is a slot."""
    pending: Write | None = None
    wire: bytes = b""
    """The pending write as it goes on the wire."""
    actual_ns: int = 0
    """When the pending write was handed over."""
    truth: list[WriteTruth] = field(default_factory=list)
    over: bool = False


def told_truth(telling: Telling, dialect: str, ended: Ended, now_ns: int) -> RequestTruth:
    """What happened to a request for text.

    Args:
        telling: its answer, ended.
        dialect: that it was told in.
        ended: how.
        now_ns: the moment.
    """
    job, arrival, writes = telling.stream.job, telling.arrival, telling.truth
    late_ns = [write.actual_ns - write.planned_ns for write in writes if write.tokens]
    return RequestTruth(
        request=job.number,
        path=telling.stream.path,
        dialect=dialect,
        status=200,
        ended=ended,
        stream=job.asked.stream,
        faults=tuple(sorted(job.faults)),
        slot=job.slot.number if job.slot else None,
        kernel_receive_ns=arrival.kernel_ns,
        read_ns=arrival.read_ns,
        arrival_ns=job.arrival_ns,
        realtime_minus_monotonic_ns=arrival.offset_ns,
        queue_end_ns=job.queue_end_ns,
        prefill_start_ns=job.prefill_start_ns,
        prefill_end_ns=job.prefill_end_ns,
        end_ns=writes[-1].actual_ns if writes and ended == "complete" else now_ns,
        prompt_tokens=job.prompt_tokens,
        cached_prompt_tokens=job.cached_tokens,
        output_tokens=sum(write.tokens for write in writes),
        reasoning_tokens=sum(write.tokens for write in writes if write.kind == "reasoning"),
        writes=writes,
        late_writes=sum(late > BEHIND_NS for late in late_ns),
        worst_late_ns=max(late_ns, default=0),
    )
