"""One exchange made into a request record."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from msgspec.structs import replace

from twospeed.records.errors import EndpointError
from twospeed.records.request_record import (
    ClientTimes,
    Probe,
    RequestError,
    RequestRecord,
    ServerTimes,
    TextArrival,
    TokenCounts,
)
from twospeed.runtimes.runtime import Generation, Runtime
from twospeed.sources.live.connection import Exchange
from twospeed.sources.live.failures import recorded
from twospeed.sources.live.target import Target
from twospeed.wire.dialects import reading_of
from twospeed.wire.reading import StreamReading, TextEvent

OnAnswer = Callable[[str], None]

BELIEVED = 2
"""A runtime may overrun the length that was asked for, hardly by more than this factor."""


def now_utc() -> str:
    """The present moment as a record keeps it: UTC, ISO 8601."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")


def record_of(
    exchange: Exchange,
    *,
    number: int,
    probe: Probe,
    runtime: Runtime,
    generation: Generation,
    dialect: str,
    target: Target,
    started_at: str,
    on_answer: OnAnswer | None = None,
) -> RequestRecord:
    """Make the record of one request; a failed one keeps what had arrived.

    Args:
        exchange: what was sent and what came back.
        number: its number within the run, from 1.
        probe: what was wanted.
        runtime: gives the answer its meaning.
        generation: the request free of dialect.
        dialect: in which it was asked.
        target: the endpoint, for messages.
        started_at: UTC, ISO 8601.
        on_answer: told of the text of the answer, which no record holds.
    """
    reading, error = _read(exchange, dialect, target)
    if on_answer is not None:
        on_answer("".join(event.text for event in reading.text if event.kind == "answer"))
    counts, server = _meaning(runtime, reading, generation)
    return RequestRecord(
        number=number,
        step=probe.step,
        probe=probe,
        started_at=started_at,
        dialect=dialect,
        model=reading.model or generation.model,
        counts=counts,
        client=_client_times(exchange, reading),
        server=server,
        signs=runtime.signs(reading),
        arrivals=_arrivals(reading.text, exchange.sent_ns or 0),
        finish_reason=reading.finish_reason,
        repeats=probe.repeats,
        change=probe.change,
        retries=exchange.retries,
        redirects=exchange.redirects,
        error=error,
    )


def _read(
    exchange: Exchange, dialect: str, target: Target
) -> tuple[StreamReading, RequestError | None]:
    """Parse what arrived; the failure of the exchange outranks what parsing finds."""
    failure = exchange.failure
    error = None if failure is None else recorded(failure, target)
    if exchange.reader.status is None:
        return StreamReading(), error
    try:
        begun = exchange.reading or reading_of(dialect, exchange.reader)
        reading = begun.finish()
    except EndpointError as broken:
        return StreamReading(), error or recorded(broken, target)
    if error is None and reading.error is not None:
        error = recorded(reading.error, target)
    return reading, error


def _meaning(
    runtime: Runtime, reading: StreamReading, generation: Generation
) -> tuple[TokenCounts, ServerTimes | None]:
    if reading.usage is None and reading.timings is None and not reading.text:
        return TokenCounts(), None
    counts, server = runtime.interpret(reading, generation)
    if _is_beyond_belief(counts, reading, generation):
        counts = replace(counts, output_tokens=None, reasoning_tokens=None)
    return counts, server


def _is_beyond_belief(counts: TokenCounts, reading: StreamReading, generation: Generation) -> bool:
    """Whether more output was counted than was asked for, and the events do not bear it out."""
    output, asked = counts.output_tokens, generation.output_tokens
    if output is None or not reading.text or output <= BELIEVED * asked:
        return False
    chars = sum(len(event.text) for event in reading.text)
    return output > chars and output > BELIEVED * len(reading.text)


def _client_times(exchange: Exchange, reading: StreamReading) -> ClientTimes:
    sent_ns = exchange.sent_ns
    set_up = _set_up_times(exchange)
    if sent_ns is None:
        return set_up

    def since(at_ns: int | None) -> float | None:
        # An early refusal arrives before the last request byte was handed over.
        return None if at_ns is None else max(at_ns - sent_ns, 0) / 1e9

    text = reading.text
    answer = next((event for event in text if event.kind != "reasoning"), None)
    return replace(
        set_up,
        headers_s=since(exchange.reader.headers_ns),
        ttft_s=since(text[0].at_ns if text else None),
        ttft_is_upper_bound=reading.whole or (len(text) > 1 and text[1].read == text[0].read),
        first_answer_s=since(answer.at_ns if answer else None),
        last_text_s=since(text[-1].at_ns if text else None),
        finish_s=since(reading.finish_ns),
        end_s=since(exchange.reader.end_ns),
    )


def _set_up_times(exchange: Exchange) -> ClientTimes:
    """The clock, and what passed before it started."""
    times = exchange.set_up
    if times is None:
        return ClientTimes(clock=exchange.clock)
    return ClientTimes(
        clock=exchange.clock,
        connect_s=times.total_s,
        dns_s=times.dns_s,
        tcp_s=times.tcp_s,
        tls_s=times.tls_s,
    )


def _arrivals(text: list[TextEvent], sent_ns: int) -> tuple[TextArrival, ...]:
    """Text events on the clock of the request; later ones of the same read are coalesced."""
    reads = [-1, *(event.read for event in text)]
    return tuple(
        TextArrival(
            at_s=max(event.at_ns - sent_ns, 0) / 1e9,
            kind=event.kind,
            chars=len(event.text),
            coalesced=event.read == before,
            output_tokens=event.output_tokens,
        )
        for before, event in zip(reads, text, strict=False)
    )
