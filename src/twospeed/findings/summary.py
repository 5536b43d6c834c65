"""What sums over many requests tell: how long they waited, how fast they ran, who stood in line.

The sums hold no single request, so a wait can be parted into queue and prefill only roughly: by
the rate at which all prompts together were read, or by the shape of its distribution.
"""

from __future__ import annotations

from msgspec import Struct

from twospeed.findings.finding import SlowPhase
from twospeed.records.run import Goals, LoadSummary

LINE_FRAC = 0.5
"""A line of waiting requests that is at least this part of the running ones is a queue."""
LONG_LINE = 10
"""So many waiting requests are a line, however many run."""
FULL_PCT = 98.0
"""A KV cache this full has no room for the next token of every request."""
READING_FRAC = 0.25
"""Prefill takes at most this part of a wait that is called a queue."""
RAMP = 1.7
"""99th percentile / median of a wait that grew from request to request, as a line does.

Requests that all start at once and are served one after the other wait evenly between nothing and
the longest, which is twice the median.
"""


class LoadView(Struct, frozen=True, kw_only=True):
    """The two judged numbers of a load, and what stands behind a slow one."""

    ttft_s: float | None = None
    stream_tps: float | None = None
    """Of one request."""
    queued: bool = False
    crowded: bool = False
    """Requests were pushed out, or the KV cache was full."""
    phase: SlowPhase = "unknown"


def view_load(summary: LoadSummary | None, goals: Goals) -> LoadView | None:
    """The judgement of a summary against the goals; None without one."""
    if summary is None:
        return None
    ttft_s = _seconds(_first(summary.median_ttft_ms, summary.mean_ttft_ms))
    tps = _stream_tps(summary)
    slow_wait = ttft_s is not None and ttft_s > goals.wait_s
    queued = _stands_in_line(summary) or (slow_wait and _waits_more_than_it_reads(summary))
    crowded = bool(summary.preemptions) or (_is_full(summary) and bool(_waiting(summary)))
    view = LoadView(ttft_s=ttft_s, stream_tps=tps, queued=queued, crowded=crowded)
    return LoadView(
        ttft_s=ttft_s,
        stream_tps=tps,
        queued=queued,
        crowded=crowded,
        phase=_phase(view, slow_wait=slow_wait, goals=goals),
    )


def _phase(view: LoadView, *, slow_wait: bool, goals: Goals) -> SlowPhase:
    if view.crowded:
        return "decode"
    if view.queued:
        return "queue"
    if view.stream_tps is not None and view.stream_tps < goals.stream_tps:
        return "decode"
    if slow_wait or view.ttft_s is None or view.stream_tps is None:
        return "unknown"
    return "none"


def _stands_in_line(summary: LoadSummary) -> bool:
    waiting = _waiting(summary)
    if summary.running_max is None:
        return waiting >= LONG_LINE
    return waiting > 1 and waiting >= LINE_FRAC * summary.running_max


def _waits_more_than_it_reads(summary: LoadSummary) -> bool:
    """By the time that all prompts took together, else by the shape of the waits."""
    ttft_s = _seconds(_first(summary.mean_ttft_ms, summary.median_ttft_ms))
    if ttft_s and summary.duration_s and summary.completed:
        return summary.duration_s / summary.completed < READING_FRAC * ttft_s
    p99, median = summary.p99_ttft_ms, _first(summary.median_ttft_ms, summary.mean_ttft_ms)
    return bool(p99 and median and p99 > RAMP * median)


def _waiting(summary: LoadSummary) -> int:
    return max(summary.waiting_max or 0, summary.queue_max or 0)


def _is_full(summary: LoadSummary) -> bool:
    return (summary.kv_cache_usage_max_pct or 0.0) >= FULL_PCT


def _stream_tps(summary: LoadSummary) -> float | None:
    per_token_ms = _first(summary.mean_tpot_ms, _first(summary.mean_itl_ms, summary.median_itl_ms))
    if per_token_ms:
        return 1000.0 / per_token_ms
    if summary.generation_tps_max and summary.running_max:
        return summary.generation_tps_max / summary.running_max
    return None


def _first(one: float | None, other: float | None) -> float | None:
    return other if one is None else one


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000.0
