"""Which timings enter the fits, and what each request shows for itself."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TypeVar

from msgspec import Struct

from twospeed.fits.phases import (
    DecodeTime,
    PrefillTime,
    cached_is_hidden,
    client_decode,
    client_prefill,
    hidden_output_tokens,
    prompt_parts,
    server_decode,
    server_prefill,
)
from twospeed.records.request_record import APART, Origin, RequestRecord

FEWEST_UNCACHED_TOKENS = 16
"""Fewer are a decode step that reads all weights for little: another regime than prefill."""
FEWEST_WINDOWS = 4
"""Fewer windows of one answer show no course."""
FEWEST_STEPS = 8
"""Fewer decode steps than this are drowned in the jitter of their first and last stamp."""


class PrefillPoint(Struct, frozen=True, kw_only=True):
    """One prefill timing that can be fitted."""

    prompt_tokens: int
    """Whole prompt, cached part included."""
    cached_tokens: int
    s: float
    origin: Origin
    record: int
    """Number of the request."""
    cached_is_assumed: bool = False
    """True when the runtime hides the cached part of a prompt that we made unique."""

    @property
    def uncached_tokens(self) -> int:
        """Tokens that were processed."""
        return self.prompt_tokens - self.cached_tokens


class DecodePoint(Struct, frozen=True, kw_only=True):
    """One decode timing that can be fitted."""

    depth_tokens: float
    """Prompt and half of the answer: the mean depth of its steps."""
    per_token_s: float
    steps: float
    origin: Origin
    record: int
    """Number of the request."""


class ClockDisagreement(Struct, frozen=True, kw_only=True):
    """Our clock against the server's, over the requests that both timed; None without any."""

    prefill_ratio: float | None = None
    """Median of client / server prefill time."""
    prefill_excess_s: float | None = None
    """Median of client - server prefill time: tells a fixed delay from a wrong clock."""
    prefill_pairs: int = 0
    decode_ratio: float | None = None
    """Median of client / server time per decode step."""
    decode_pairs: int = 0


class RequestSpeeds(Struct, frozen=True, kw_only=True):
    """Each phase of one request, from the server's clock or else from ours."""

    prefill_s: float | None = None
    prefill_tps: float | None = None
    """Uncached tokens per second; None when the cached part is not known."""
    prefill_origin: Origin | None = None
    decode_s: float | None = None
    decode_tps: float | None = None
    decode_origin: Origin | None = None
    queue_s: float | None = None
    """The server's word only."""
    load_s: float | None = None
    """The server's word only."""
    ttft_s: float | None = None
    """Our clock only."""
    total_s: float | None = None
    """Our clock where it ran, so that it goes with ttft_s; else the server's."""
    total_origin: Origin | None = None


def prefill_points(
    records: Sequence[RequestRecord],
    *,
    round_trip_s: float | None,
    ignore_timings: bool,
    fewest_tokens: int = FEWEST_UNCACHED_TOKENS,
    shared: bool = False,
) -> list[PrefillPoint]:
    """Prefill timings fit for fitting, all of one clock.

    Left out: warm-up, failed requests, requests of ours that shared the server with others (unless
    `shared`), and prompts of which fewer than `fewest_tokens` were new. The server's clock is
    taken unless `ignore_timings`, or unless it covers less than half of what ours does.
    """
    kept = usable(records, shared=shared)
    by_server = [
        _prefill_point(record, server_prefill(record), "server", fewest_tokens) for record in kept
    ]
    by_client = [
        _prefill_point(
            record,
            client_prefill(record, round_trip_s, ignore_timings=ignore_timings),
            "client",
            fewest_tokens,
        )
        for record in kept
    ]
    return _one_clock(by_server, by_client, ignore_timings=ignore_timings)


def decode_points(
    records: Sequence[RequestRecord], *, ignore_timings: bool, shared: bool = False
) -> list[DecodePoint]:
    """Decode timings of at least 8 steps, all of one clock, chosen as for `prefill_points`."""
    kept = usable(records, shared=shared)
    by_server = [_decode_point(record, server_decode(record), "server") for record in kept]
    by_client = [_decode_point(record, client_decode(record), "client") for record in kept]
    points = _one_clock(by_server, by_client, ignore_timings=ignore_timings)
    return points if ignore_timings else _with_windows(points, kept)


def clock_disagreement(
    records: Sequence[RequestRecord], round_trip_s: float | None
) -> ClockDisagreement:
    """How far our clock and the server's are apart, per phase, over clean requests."""
    clean = [record for record in records if _is_measured(record) and _is_alone(record)]
    prefills = [
        (ours.s, theirs.s)
        for record in clean
        if (ours := client_prefill(record, round_trip_s)) and (theirs := server_prefill(record))
    ]
    decodes = [
        (seen.s / seen.steps) / (told.s / told.steps)
        for record in clean
        if (seen := client_decode(record)) and (told := server_decode(record))
        if min(seen.steps, told.steps) >= FEWEST_STEPS
    ]
    return ClockDisagreement(
        prefill_ratio=median(ours / theirs for ours, theirs in prefills) if prefills else None,
        prefill_excess_s=median(ours - theirs for ours, theirs in prefills) if prefills else None,
        prefill_pairs=len(prefills),
        decode_ratio=median(decodes) if decodes else None,
        decode_pairs=len(decodes),
    )


def request_speeds(
    record: RequestRecord, *, round_trip_s: float | None = None, ignore_timings: bool = False
) -> RequestSpeeds:
    """What one request shows for itself; nothing is left out for being too short to fit."""
    server = None if ignore_timings else record.server
    prefill_s, prefill_tps, prefill_origin = _prefill_of(record, round_trip_s, ignore_timings)
    decode, decode_origin = _decode_of(record, ignore_timings)
    total_s, total_origin = _total_of(record, ignore_timings)
    return RequestSpeeds(
        prefill_s=prefill_s,
        prefill_tps=prefill_tps,
        prefill_origin=prefill_origin,
        decode_s=decode.s if decode else None,
        decode_tps=decode.steps / decode.s if decode else None,
        decode_origin=decode_origin,
        queue_s=server.queue_s if server else None,
        load_s=server.load_s if server else None,
        ttft_s=record.client.ttft_s,
        total_s=total_s,
        total_origin=total_origin,
    )


Point = TypeVar("Point", PrefillPoint, DecodePoint)


def _one_clock(
    by_server: list[Point | None], by_client: list[Point | None], *, ignore_timings: bool
) -> list[Point]:
    server = [point for point in by_server if point is not None and not ignore_timings]
    client = [point for point in by_client if point is not None]
    return server if len(server) * 2 >= len(client) else client


def usable(records: Sequence[RequestRecord], *, shared: bool = False) -> list[RequestRecord]:
    """Requests whose timings describe the workload.

    Of an experiment those that had the server for themselves, or with `shared` also the others.
    What a user lived through counts as it was.
    """
    return [
        record
        for record in records
        if _is_measured(record)
        if shared or record.step == "user" or _is_alone(record)
    ]


def _is_measured(record: RequestRecord) -> bool:
    return record.error is None and record.step not in APART


def _is_alone(record: RequestRecord) -> bool:
    return not record.other_requests


def _with_windows(points: list[DecodePoint], records: list[RequestRecord]) -> list[DecodePoint]:
    """Windows of an answer in the place of its whole, where a log tells decode as it went on."""
    windows = {r.number: _window_points(r) for r in records if r.signs is not None}
    return [one for point in points for one in windows.get(point.record) or [point]]


def _window_points(record: RequestRecord) -> list[DecodePoint]:
    prompt, before, points = _prompt_tokens(record), 0, []
    windows = record.signs.decode_windows if record.signs else ()
    if prompt is None or len(windows) < FEWEST_WINDOWS:
        return []
    for window in windows:
        points.append(
            DecodePoint(
                depth_tokens=prompt + (before + window.output_tokens) / 2,
                per_token_s=window.per_token_s,
                steps=max(window.output_tokens - before, 1),
                origin="server",
                record=record.number,
            )
        )
        before = window.output_tokens
    return points


def _prefill_point(
    record: RequestRecord, prefill: PrefillTime | None, origin: Origin, fewest_tokens: int
) -> PrefillPoint | None:
    if prefill is None or prefill.uncached_tokens < fewest_tokens:
        return None
    return PrefillPoint(
        prompt_tokens=prefill.uncached_tokens + prefill.cached_tokens,
        cached_tokens=prefill.cached_tokens,
        s=prefill.s,
        origin=origin,
        record=record.number,
        cached_is_assumed=cached_is_hidden(record),
    )


def _decode_point(
    record: RequestRecord, decode: DecodeTime | None, origin: Origin
) -> DecodePoint | None:
    prompt = _prompt_tokens(record)
    if decode is None or decode.steps < FEWEST_STEPS or prompt is None:
        return None
    output = record.counts.output_tokens or decode.steps + 1
    # Our clock saw only the steps after hidden reasoning, which deepened the context.
    hidden = hidden_output_tokens(record) if origin == "client" else 0
    return DecodePoint(
        depth_tokens=prompt + (output + hidden) / 2,
        per_token_s=decode.s / decode.steps,
        steps=decode.steps,
        origin=origin,
        record=record.number,
    )


def _prompt_tokens(record: RequestRecord) -> int | None:
    if record.counts.prompt_tokens is not None:
        return record.counts.prompt_tokens
    parts = prompt_parts(record)
    return sum(parts) if parts else None


def _prefill_of(
    record: RequestRecord, round_trip_s: float | None, ignore_timings: bool
) -> tuple[float | None, float | None, Origin | None]:
    prefill = None if ignore_timings else server_prefill(record)
    origin: Origin = "server"
    if prefill is None and not ignore_timings and record.server and record.server.prefill_s:
        return record.server.prefill_s, None, origin  # of an unknown part of the prompt
    if prefill is None:
        prefill = client_prefill(record, round_trip_s, ignore_timings=ignore_timings)
        origin = "client"
    if prefill is None:
        return None, None, None
    return prefill.s, prefill.uncached_tokens / prefill.s, origin


def _decode_of(
    record: RequestRecord, ignore_timings: bool
) -> tuple[DecodeTime | None, Origin | None]:
    if not ignore_timings and (told := server_decode(record)):
        return told, "server"
    seen = client_decode(record)
    return seen, "client" if seen else None


def _total_of(record: RequestRecord, ignore_timings: bool) -> tuple[float | None, Origin | None]:
    if record.client.end_s is not None:
        return record.client.end_s, "client"
    if record.server and record.server.total_s is not None and not ignore_timings:
        return record.server.total_s, "server"
    return None, None
