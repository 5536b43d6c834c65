"""What one record says about each phase, by the server's clock and by ours, kept apart."""

from __future__ import annotations

from typing import NamedTuple

from twospeed.records.request_record import RequestRecord

ENDED_BY_A_TOKEN = frozenset(
    {"stop", "eos", "eos_token", "eosFound", "end_turn", "tool_calls", "tool_use", "completed"}
)
"""Finish reasons after which the last sampled token was an end mark and had no text."""

SHORTEST_S = 1e-9
"""Less than the unit of every clock is no measurement, and its rate would have no bounds."""
MOST_HELD_BACK_FRAC = 0.5
"""A wait that is mostly decode of the first event says little about prefill."""
CHUNKED_TOKENS = 1.5
"""From so many tokens per event on, events hold several."""
LONE_CHARS_FRAC = 0.6
"""A first event with less of the usual text per event holds only the token that prefill gave."""
LATE_HEADERS_S = 0.1
LATE_HEADERS_FRAC = 0.05


class PrefillTime(NamedTuple):
    """Seconds that the uncached part of a prompt took."""

    s: float
    uncached_tokens: int
    cached_tokens: int


class DecodeTime(NamedTuple):
    """Seconds that a number of decode steps took."""

    s: float
    steps: float


def prompt_parts(record: RequestRecord) -> tuple[int, int] | None:
    """Uncached and cached prompt tokens; None when the cached part is not known.

    A runtime that hides the cached part is taken at 0 for a prompt that we made unique; a prompt
    that may have been seen before (a repeat, a user's own) stays unknown.
    """
    prompt, cached = record.counts.prompt_tokens, record.counts.cached_prompt_tokens
    covered = record.server.prefill_tokens if record.server else None
    if covered is not None:
        return covered, max(prompt - covered, 0) if prompt is not None else cached or 0
    if prompt is None:
        return None
    if cached is None:
        unique = record.repeats is None and record.step in ("warmup", "curve")
        return (prompt, 0) if unique else None
    return max(prompt - cached, 0), min(cached, prompt)


def cached_is_hidden(record: RequestRecord) -> bool:
    """Whether neither a count nor the tokens that were timed tell the cached part."""
    covered = record.server.prefill_tokens if record.server else None
    return covered is None and record.counts.cached_prompt_tokens is None


def server_prefill(record: RequestRecord) -> PrefillTime | None:
    """Prefill by the runtime's own clock."""
    parts = prompt_parts(record)
    seconds = record.server.prefill_s if record.server else None
    if seconds is None or seconds < SHORTEST_S or parts is None or parts[0] <= 0:
        return None
    return PrefillTime(seconds, *parts)


def client_prefill(
    record: RequestRecord, round_trip_s: float | None, *, ignore_timings: bool = False
) -> PrefillTime | None:
    """Prefill by arrival: TTFT - round trip - (tokens in the first text event - 1) · ITL.

    None when the first text did not follow prefill at once: several events in the first read, a
    late start (queue, model load), or reasoning that was hidden.

    Args:
        record: any request.
        round_trip_s: of a trivial request; unknown counts as part of the prefill overhead.
        ignore_timings: do not consult the server's clock about queue and load either.
    """
    ttft_s, parts = record.client.ttft_s, prompt_parts(record)
    if ttft_s is None or parts is None or parts[0] <= 0 or record.error is not None:
        return None
    if record.client.ttft_is_upper_bound or hidden_output_tokens(record):
        return None
    if _started_late(record, round_trip_s or 0.0, ignore_timings=ignore_timings):
        return None
    waited_s, held_back_s = ttft_s - (round_trip_s or 0.0), _held_back_s(record)
    seconds = waited_s - held_back_s
    if seconds < SHORTEST_S or held_back_s > MOST_HELD_BACK_FRAC * waited_s:
        return None
    return PrefillTime(seconds, *parts)


def server_decode(record: RequestRecord) -> DecodeTime | None:
    """Decode by the runtime's own clock."""
    server = record.server
    if server is None or server.decode_s is None or not server.decode_steps:
        return None
    return (
        DecodeTime(server.decode_s, server.decode_steps) if server.decode_s >= SHORTEST_S else None
    )


def client_decode(record: RequestRecord) -> DecodeTime | None:
    """Decode by arrival, from the first read with text to the last sign of a token.

    Where the events themselves tell the count, nothing is estimated. Elsewhere, with n tokens in E
    text events, an event holds n/E, so from the first read (k events) to the last
    text there are n - k·n/E steps; n - 1 when each token came alone. When an end mark was sampled
    last, one token had no text: it is counted up to the finish event.
    """
    arrivals, output = record.arrivals, record.counts.output_tokens
    if not arrivals or output is None or record.error is not None:
        return None
    if (told := _told_decode(record)) is not None:
        return told
    tokens = output - hidden_output_tokens(record)
    finish_s, end_s = record.client.finish_s, arrivals[-1].at_s
    mark = record.finish_reason in ENDED_BY_A_TOKEN
    with_text = tokens - 1 if mark else tokens
    steps = with_text - _tokens_in_first_read(record, with_text)
    if steps <= 0:
        return None
    if mark and finish_s is not None and finish_s >= end_s:
        steps, end_s = steps + 1, finish_s
    seconds = end_s - arrivals[0].at_s
    return DecodeTime(seconds, steps) if seconds >= SHORTEST_S else None


def _told_decode(record: RequestRecord) -> DecodeTime | None:
    """Decode between the first and the last text where the events tell how many tokens they end."""
    first, last = _told_in_first_read(record), record.arrivals[-1].output_tokens
    if first is None or last is None or last <= first:
        return None
    seconds = record.arrivals[-1].at_s - record.arrivals[0].at_s
    return DecodeTime(seconds, last - first) if seconds >= SHORTEST_S else None


def _told_in_first_read(record: RequestRecord) -> int | None:
    """Tokens generated up to the end of the first read with text, where its events tell."""
    return record.arrivals[_events_in_first_read(record) - 1].output_tokens


def hidden_output_tokens(record: RequestRecord) -> int:
    """Reasoning tokens that were generated before the first text and never shown."""
    shown = any(arrival.kind == "reasoning" for arrival in record.arrivals)
    return 0 if shown else record.counts.reasoning_tokens or 0


def _events_in_first_read(record: RequestRecord) -> int:
    together = 1
    while together < len(record.arrivals) and record.arrivals[together].coalesced:
        together += 1
    return together


def _tokens_in_first_read(record: RequestRecord, tokens: int) -> float:
    """Tokens that the first read with text held, by its share of the events.

    Prefill gives one token; a server that sends several at a time may send that one at once or wait
    for the next ones. The amount of text in the first event tells which.
    """
    arrivals, together = record.arrivals, _events_in_first_read(record)
    per_event = tokens / len(arrivals)
    chars_per_event = sum(arrival.chars for arrival in arrivals) / len(arrivals)
    if per_event >= CHUNKED_TOKENS and arrivals[0].chars < LONE_CHARS_FRAC * chars_per_event:
        return 1.0 + (together - 1) * per_event
    # More events than tokens (text cut into pieces): the first still needed its whole token.
    return max(together * per_event, 1.0)


def _held_back_s(record: RequestRecord) -> float:
    """Time that the first text waited for later tokens of its own event."""
    decode, output = client_decode(record), record.counts.output_tokens
    if decode is None or output is None:
        return 0.0
    told = _told_in_first_read(record)
    tokens = _tokens_in_first_read(record, output) if told is None else told
    return max(tokens - 1.0, 0.0) * decode.s / decode.steps


def _started_late(record: RequestRecord, round_trip_s: float, *, ignore_timings: bool) -> bool:
    """Whether a queue or a model load shows.

    llama-server sends its headers when a slot starts; others at once or with the first text, which
    shows nothing (seen with llama.cpp b11549, vLLM 0.32 and transformers 5.24).
    """
    client, server = record.client, record.server
    ttft_s = client.ttft_s or 0.0
    if client.headers_s is not None:
        wait = client.headers_s - round_trip_s
        with_text = client.headers_s > (1 - LATE_HEADERS_FRAC) * ttft_s
        if wait > max(LATE_HEADERS_S, LATE_HEADERS_FRAC * ttft_s) and not with_text:
            return True
    if server is None or ignore_timings:
        return False
    return (server.queue_s or 0.0) + (server.load_s or 0.0) > LATE_HEADERS_FRAC * ttft_s
