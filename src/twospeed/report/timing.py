"""What the bare stopwatch says, schema `twospeed.timing/1` (`schema/timing-1.json`).

Every key is always present; unknown is null. Changes are additive only. Failed requests have a row
and stay out of the summary. Kept out of it too, and counted in `left_out`: a TTFT whose read held
several text events (an upper bound), and gaps that end in such a read.

Percentiles interpolate linearly between the nearest two values (Hyndman and Fan's type 7, NumPy's
default). p90 needs 10 values and p99 needs 100: below, nothing lies beyond it, and it is null.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from twospeed.fits.observations import request_speeds
from twospeed.fits.phases import client_decode
from twospeed.records.json_text import encoded
from twospeed.records.request_record import Origin, RequestError, RequestRecord, TextArrival
from twospeed.records.run import Conditions, Source
from twospeed.report.build import source_part
from twospeed.report.document import RequestRow, SourcePart

SCHEMA: Literal["twospeed.timing/1"] = "twospeed.timing/1"
FEWEST = {0.5: 1, 0.9: 10, 0.99: 100}
"""So many values a percentile needs."""

INTERRUPTED = "stopped early: only the requests that were complete until then"
GAVE_UP = "so many requests failed in a row that the rest was not sent"


class TimedRequest(RequestRow, frozen=True, kw_only=True):
    """One request: its row as in a report, and what the stopwatch saw besides.

    Decode is by our own clock where the tokens could be counted, else by the server's word; prefill
    by the server's word, else by our clock if no other request of ours was under way.
    """

    number: int
    first_answer_s: float | None
    """First answer or tool text, reasoning excluded."""
    itl_s: float | None
    """By our own clock only."""
    connect_s: float | None
    """Opening the connection before the clock started, all parts; None on a reused one."""
    dns_s: float | None
    tcp_s: float | None
    tls_s: float | None
    events: int
    """Events that carried text."""
    coalesced_events: int
    """Of these, the ones that came in one read with an earlier one."""
    ttft_is_upper_bound: bool
    clock: Literal["kernel", "user"]
    prefill_origin: Origin | None
    decode_origin: Origin | None
    retries: int
    redirects: int
    finish_reason: str | None
    error: RequestError | None


class Spread(Struct, frozen=True, kw_only=True):
    """How one measure is spread over its values."""

    n: int
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    origin: Origin | None = None
    left_out: int = 0
    """Values that were only upper bounds."""


class TimingSummary(Struct, frozen=True, kw_only=True):
    """All requests that did not fail."""

    ttft_s: Spread
    itl_s: Spread
    event_gap_s: Spread
    prefill_tps: Spread
    decode_tps: Spread


class OwnPart(Struct, frozen=True, kw_only=True):
    """What measuring cost this process."""

    cpu_s: float
    cpu_s_per_token: float | None
    loop_lag_s: float | None
    """Lateness that 99 of 100 periodic calls of our own kept within (the largest of fewer)."""
    peak_bytes: int | None


class TimingConditions(Struct, frozen=True, kw_only=True):
    """Whether the numbers can be trusted."""

    host_load: float | None
    steal: float | None
    cpu_pressure: float | None
    other_requests: int | None
    trusted: bool
    warnings: tuple[str, ...]


class Timing(Struct, frozen=True, kw_only=True):
    """Everything that the stopwatch has to say."""

    schema: Literal["twospeed.timing/1"] = SCHEMA
    twospeed_version: str
    made_at: str
    source: SourcePart
    requests: tuple[TimedRequest, ...]
    summary: TimingSummary
    own: OwnPart
    conditions: TimingConditions
    complete: bool
    """False when not all requests were sent and recorded."""


class TimingSheet:
    """Takes records as they are made, and keeps a row and the gaps of each.

    Args:
        round_trip_s: of a trivial request, for prefill by our own clock; None when not known.
        alone: one request at a time, so that no queue of our own making counts as prefill.
    """

    def __init__(self, *, round_trip_s: float | None, alone: bool) -> None:
        self.rows: list[TimedRequest] = []
        self._round_trip_s = round_trip_s
        self._alone = alone
        self._gaps_s = array("d")
        self._gaps_left_out = 0

    def add(self, record: RequestRecord) -> TimedRequest:
        """Take one record and return its row."""
        row = _row(record, self._round_trip_s, alone=self._alone)
        self.rows.append(row)
        if record.error is None:
            gaps_s = exact_gaps_s(record.arrivals)
            self._gaps_s.extend(gaps_s)
            self._gaps_left_out += max(len(record.arrivals) - 1, 0) - len(gaps_s)
        return row

    def summary(self) -> TimingSummary:
        """All requests so far that did not fail."""
        good = [row for row in self.rows if row.error is None]
        exact = [row for row in good if not row.ttft_is_upper_bound]
        ttft_s = [row.ttft_s for row in exact if row.ttft_s is not None]
        return TimingSummary(
            ttft_s=spread(ttft_s, "client", left_out=len(good) - len(exact)),
            itl_s=spread([row.itl_s for row in good if row.itl_s is not None], "client"),
            event_gap_s=spread(self._gaps_s, "client", left_out=self._gaps_left_out),
            prefill_tps=_of_one_origin([(row.prefill_tps, row.prefill_origin) for row in good]),
            decode_tps=_of_one_origin([(row.decode_tps, row.decode_origin) for row in good]),
        )

    @property
    def output_tokens(self) -> int:
        """Tokens of all rows: as told, else the events that carried text."""
        return sum(row.output_tokens or row.events for row in self.rows)


def timing_of(
    sheet: TimingSheet,
    *,
    source: Source,
    made_at: str,
    twospeed_version: str,
    conditions: Conditions,
    own: OwnPart,
    complete: bool = True,
    gave_up: bool = False,
) -> Timing:
    """The document.

    Args:
        sheet: with all rows.
        source: what was measured.
        made_at: UTC, ISO 8601.
        twospeed_version: of this program.
        conditions: of the machine and of ourselves.
        own: what measuring cost.
        complete: all requests were sent and recorded.
        gave_up: too many requests failed in a row.
    """
    said = (GAVE_UP,) if gave_up else () if complete else (INTERRUPTED,)
    return Timing(
        twospeed_version=twospeed_version,
        made_at=made_at,
        source=source_part(source),
        requests=tuple(sheet.rows),
        summary=sheet.summary(),
        own=own,
        conditions=TimingConditions(
            host_load=conditions.host_load,
            steal=conditions.steal,
            cpu_pressure=conditions.cpu_pressure,
            other_requests=conditions.other_requests,
            trusted=conditions.trusted,
            warnings=(*conditions.warnings, *said),
        ),
        complete=complete,
    )


def to_json(timing: Timing) -> bytes:
    """The document as one JSON object; numbers that are not finite become null."""
    return encoded(timing)


def spread(
    values: Sequence[float] | array[float], origin: Origin | None, *, left_out: int = 0
) -> Spread:
    """Mean and percentiles of values; what too few of them do not show is None.

    Args:
        values: of one measure.
        origin: of all of them.
        left_out: values that were not exact.
    """
    if not len(values):
        return Spread(n=0, left_out=left_out)
    found = np.asarray(values, dtype=np.float64)
    at = {q: float(np.quantile(found, q)) for q, fewest in FEWEST.items() if found.size >= fewest}
    return Spread(
        n=int(found.size),
        mean=float(found.mean()),
        p50=at.get(0.5),
        p90=at.get(0.9),
        p99=at.get(0.99),
        origin=origin,
        left_out=left_out,
    )


def exact_gaps_s(arrivals: Sequence[TextArrival]) -> list[float]:
    """Gaps that end in an event which came alone in its read: only its stamp is its own.

    Args:
        arrivals: of one request, in their order.
    """
    gaps_s = []
    for before, here, after in zip(arrivals, arrivals[1:], [*arrivals[2:], None], strict=False):
        if not here.coalesced and (after is None or not after.coalesced):
            gaps_s.append(here.at_s - before.at_s)
    return gaps_s


def _of_one_origin(values: Sequence[tuple[float | None, Origin | None]]) -> Spread:
    """Spread of the values of the commonest origin; clocks are never mixed."""
    known = [(value, origin) for value, origin in values if value is not None]
    origins = [origin for _, origin in known]
    if not origins:
        return Spread(n=0)
    origin = max(origins, key=origins.count)
    return spread([value for value, its_origin in known if its_origin == origin], origin)


def _row(record: RequestRecord, round_trip_s: float | None, *, alone: bool) -> TimedRequest:
    speeds = request_speeds(record, round_trip_s=round_trip_s)
    ours = client_decode(record)
    prefill = speeds.prefill_origin == "server" or alone
    return TimedRequest(
        number=record.number,
        prompt_tokens=record.counts.prompt_tokens,
        cached_prompt_tokens=record.counts.cached_prompt_tokens,
        prefill_s=speeds.prefill_s if prefill else None,
        prefill_tps=speeds.prefill_tps if prefill else None,
        prefill_origin=speeds.prefill_origin if prefill else None,
        output_tokens=record.counts.output_tokens,
        decode_s=ours.s if ours else speeds.decode_s,
        decode_tps=ours.steps / ours.s if ours else speeds.decode_tps,
        decode_origin="client" if ours else speeds.decode_origin,
        load_s=speeds.load_s,
        queue_s=speeds.queue_s,
        ttft_s=speeds.ttft_s,
        total_s=speeds.total_s,
        line=record.line,
        first_answer_s=record.client.first_answer_s,
        itl_s=ours.s / ours.steps if ours else None,
        connect_s=record.client.connect_s,
        dns_s=record.client.dns_s,
        tcp_s=record.client.tcp_s,
        tls_s=record.client.tls_s,
        events=len(record.arrivals),
        coalesced_events=sum(arrival.coalesced for arrival in record.arrivals),
        ttft_is_upper_bound=record.client.ttft_is_upper_bound,
        clock=record.client.clock,
        retries=record.retries,
        redirects=record.redirects,
        finish_reason=record.finish_reason,
        error=record.error,
    )
