"""What happened before prefill, request by request: queue and what no part explains."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from msgspec import Struct

from twospeed.records.request_record import APART, Origin, RequestRecord
from twospeed.records.run import Run

SHOWS_QUEUE_BY_HEADERS = frozenset({"llama-server"})
"""Runtimes that send the headers of a stream when a slot is free.

Source: llama.cpp tools/server/server-context.cpp; an idle server answers within 2 to 27 ms.
"""
HEADERS_OF_IDLE_S = 0.05


class Queue(Struct, frozen=True, kw_only=True):
    """Seconds waited for a slot, and who says so; both None where it cannot be seen."""

    seconds: float | None = None
    origin: Origin | None = None


def observe_queue(run: Run) -> Queue:
    """Median time that a request waited for a slot."""
    records = [r for r in run.records if r.error is None and r.step not in APART]
    told = [r.server.queue_s for r in records if r.server and r.server.queue_s is not None]
    if told:
        return Queue(seconds=median(told), origin="server")
    if run.source.runtime in SHOWS_QUEUE_BY_HEADERS:
        seen = _known(_queue_by_headers(record, run.round_trip_s) for record in records)
        if seen:
            return Queue(seconds=median(seen), origin="client")
    return Queue()


def _queue_by_headers(record: RequestRecord, round_trip_s: float | None) -> float | None:
    """Headers time minus round trip, never more than what the server's prefill leaves of the TTFT.

    Without the bound a proxy that holds the headers back would look like a queue.
    """
    client = record.client
    if client.headers_s is None or client.ttft_s is None or len(record.arrivals) < 2:
        return None
    queue_s = client.headers_s - (round_trip_s or 0.0)
    if record.server is not None and record.server.prefill_s is not None:
        queue_s = min(queue_s, client.ttft_s - record.server.prefill_s)
    return queue_s if queue_s > HEADERS_OF_IDLE_S else 0.0


def unexplained_seconds(run: Run) -> float | None:
    """Median of TTFT - prefill - round trip - queue - load, where both clocks saw the request.

    Slightly negative values are possible: the parts are measured apart.
    """
    if run.ignore_timings or run.round_trip_s is None:
        return None
    left = _known(_unexplained(run, record) for record in run.records if record.error is None)
    return median(left) if left else None


def _unexplained(run: Run, record: RequestRecord) -> float | None:
    server, ttft_s = record.server, record.client.ttft_s
    if ttft_s is None or server is None or server.prefill_s is None or record.step in APART:
        return None
    before_s = before_prefill_s(run, record) or 0.0
    return ttft_s - server.prefill_s - before_s - (run.round_trip_s or 0.0)


def before_prefill_s(run: Run, record: RequestRecord) -> float | None:
    """Seconds of one request in load and queue; None where neither can be seen."""
    load_s = record.server.load_s if record.server else None
    queue_s = record.server.queue_s if record.server else None
    if queue_s is None and run.source.runtime in SHOWS_QUEUE_BY_HEADERS:
        queue_s = _queue_by_headers(record, run.round_trip_s)
    if load_s is None and queue_s is None:
        return None
    return (load_s or 0.0) + (queue_s or 0.0)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


class Reasoning(Struct, frozen=True, kw_only=True):
    """How much of the output is hidden reasoning."""

    share: float | None = None
    """Share of the output tokens (0 … 1); 0.0 only when it is known that none arrived."""
    answer_seen: bool = True
    """False when reasoning arrived and no answer ever did: the share is then unknown."""


def observe_reasoning(records: Iterable[RequestRecord]) -> Reasoning:
    """Median share of reasoning in the output, from the server's counts, else from arrived text."""
    usable = [r for r in records if r.error is None and r.step not in APART]
    thinking = [r for r in usable if any(a.kind == "reasoning" for a in r.arrivals)]
    if thinking and all(_answer_chars(record) == 0 for record in thinking):
        return Reasoning(answer_seen=False)
    # An output that ended before the answer began says nothing about the share.
    whole = [r for r in usable if not thinking or _answer_chars(r)]
    told = _known(_share_told(record) for record in whole)
    if told:
        return Reasoning(share=median(told))
    seen = _known(_share_seen(record) for record in whole)
    return Reasoning(share=median(seen) if seen else None)


def _share_told(record: RequestRecord) -> float | None:
    reasoning, output = record.counts.reasoning_tokens, record.counts.output_tokens
    if reasoning is None or not output:
        return None
    # A runtime that counts no reasoning although reasoning text arrived does not count it at all.
    if reasoning == 0 and any(a.kind == "reasoning" for a in record.arrivals):
        return None
    return min(reasoning / output, 1.0)


def _share_seen(record: RequestRecord) -> float | None:
    total = sum(arrival.chars for arrival in record.arrivals)
    return 1.0 - _answer_chars(record) / total if total else None


def _answer_chars(record: RequestRecord) -> int:
    return sum(arrival.chars for arrival in record.arrivals if arrival.kind != "reasoning")
