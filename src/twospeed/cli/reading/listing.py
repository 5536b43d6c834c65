"""One line for each request of a log."""

from __future__ import annotations

from twospeed.fits.observations import request_speeds
from twospeed.records.request_record import RequestRecord
from twospeed.records.run import Run
from twospeed.report.numbers import rate, seconds, tokens

COLUMNS = (
    ("line", 8),
    ("prompt", 8),
    ("cached", 8),
    ("prefill", 9),
    ("tok/s", 7),
    ("answer", 7),
    ("decode", 9),
    ("tok/s", 7),
)
HEADING = " ".join(f"{name:>{width}}" for name, width in COLUMNS)
UNKNOWN = "·"


def render_requests(run: Run) -> str:
    """All requests as lines of 80 columns, with a heading."""
    lines = [HEADING, *map(render_request, run.records)]
    return "\n".join(lines) + "\n"


def render_request(record: RequestRecord) -> str:
    """One request: where it stands, its tokens, both times and both speeds."""
    speeds = request_speeds(record)
    counts = record.counts
    cells = (
        str(record.line) if record.line else None,
        _count(counts.prompt_tokens),
        _count(counts.cached_prompt_tokens),
        None if speeds.prefill_s is None else seconds(speeds.prefill_s),
        None if speeds.prefill_tps is None else rate(speeds.prefill_tps),
        _count(counts.output_tokens),
        None if speeds.decode_s is None else seconds(speeds.decode_s),
        None if speeds.decode_tps is None else rate(speeds.decode_tps),
    )
    return " ".join(
        f"{text or UNKNOWN:>{width}}" for text, (_, width) in zip(cells, COLUMNS, strict=True)
    )


def _count(value: int | None) -> str | None:
    return None if value is None else tokens(value)
