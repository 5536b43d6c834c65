"""The stopwatch's lines for a terminal, none longer than 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from twospeed.report.bars import in_ascii
from twospeed.report.numbers import percent
from twospeed.report.plain import plain
from twospeed.report.timing import FEWEST, OwnPart, Spread, TimedRequest, Timing

WIDTH = 80
UNKNOWN = "-"
BOUND = "<"
"""Before a TTFT that is only an upper bound."""
_BOLD, _RED, _YELLOW = "1", "31", "33"

_COLUMNS = "{:>5} {:>9} {:>9} {:>7} {:>12} {:>11} {:>9}"
HEADING = _COLUMNS.format("#", "prompt", "cached", "output", "TTFT", "ITL", "tok/s")


def render_row(row: TimedRequest, *, colour: bool = False, ascii_only: bool = False) -> str:
    """The line of one request, as it is printed when it is complete.

    Args:
        row: the request.
        colour: with ANSI colours.
        ascii_only: for output encodings other than UTF-8.
    """
    if row.error is not None:
        start = f"{row.number:>5}  failed: "
        message = plain(row.error.message, longest=WIDTH - len(start))
        line = _styled(start + message, _RED, colour=colour)
    else:
        bound = BOUND if row.ttft_is_upper_bound else ""
        cells = _COLUMNS.format(
            row.number,
            _count(row.prompt_tokens),
            _count(row.cached_prompt_tokens),
            _count(row.output_tokens),
            bound + duration(row.ttft_s),
            duration(row.itl_s),
            _rate(row.decode_tps),
        )
        line = cells + _note(row)
    return _in_ascii(line) if ascii_only else line


def render_heading(*, colour: bool = False) -> str:
    """The line above the requests."""
    return _styled(HEADING, _BOLD, colour=colour)


def render_summary(timing: Timing, *, colour: bool = False, ascii_only: bool = False) -> str:
    """What follows the requests: warnings, spreads, what they leave out, and our own cost.

    Args:
        timing: the document.
        colour: with ANSI colours.
        ascii_only: for output encodings other than UTF-8.
    """
    lines = [
        *_warnings(timing, colour=colour),
        "",
        *_spreads(timing, colour=colour),
        "",
        *_left_out(timing),
        *_wrapped(_cost(timing.own, _clock_of(timing.requests))),
        *_wrapped(_conditions(timing)),
        *_wrapped(_source(timing)),
    ]
    text = "\n".join(lines) + "\n"
    return _in_ascii(text) if ascii_only else text


def duration(value_s: float | None) -> str:
    """A duration as a stopwatch shows it: `0.412 ms`, `201.3 ms`, `12.04 s`."""
    if value_s is None:
        return UNKNOWN
    if value_s >= 9.99995:
        return f"{value_s:.2f} s"
    decimals = 1 if abs(value_s) >= 0.00995 else 3
    return f"{value_s * 1e3:,.{decimals}f} ms"


def _count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _rate(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.1f}"


def _note(row: TimedRequest) -> str:
    return f"  retried {row.retries}x" if row.retries else ""


def _spreads(timing: Timing, *, colour: bool) -> list[str]:
    summary = timing.summary
    heading = f"{'':<17}{'n':>10} {'mean':>12} {'p50':>12} {'p90':>12} {'p99':>12}"
    return [
        _styled(heading, _BOLD, colour=colour),
        _spread_line("TTFT", summary.ttft_s),
        _spread_line("ITL", summary.itl_s),
        _spread_line("event gap", summary.event_gap_s),
        _spread_line("prefill tok/s", summary.prefill_tps, rates=True),
        _spread_line("decode tok/s", summary.decode_tps, rates=True),
    ]


def _spread_line(name: str, spread: Spread, *, rates: bool = False) -> str:
    show = _rate if rates else duration
    values = (spread.mean, spread.p50, spread.p90, spread.p99)
    return f"  {name:<15}{spread.n:>10,} " + " ".join(f"{show(value):>12}" for value in values)


def _left_out(timing: Timing) -> list[str]:
    summary, lines = timing.summary, []
    failed = sum(row.error is not None for row in timing.requests)
    if failed:
        lines.append(f"{failed} of {len(timing.requests)} requests failed and are left out.")
    retries = sum(row.retries for row in timing.requests)
    if retries:
        lines.append(f"{retries} clocks were restarted: the server had closed the connection.")
    if summary.ttft_s.left_out:
        lines.append(
            f"{summary.ttft_s.left_out} TTFT marked {BOUND} are upper bounds (several tokens in the"
            " first read) and left out."
        )
    if summary.event_gap_s.left_out:
        gaps = summary.event_gap_s.n + summary.event_gap_s.left_out
        share = percent(summary.event_gap_s.left_out / gaps)
        lines.append(
            f"{summary.event_gap_s.left_out:,} gaps ({share}) end in a read of several events and"
            " are left out."
        )
    if summary.ttft_s.n and not summary.prefill_tps.n:
        lines.append("No prefill speed: the server tells no clock, and ours also counts waiting.")
    if max(summary.ttft_s.n, summary.itl_s.n) < FEWEST[0.99]:
        lines.append(f"p90 needs {FEWEST[0.9]} values, p99 needs {FEWEST[0.99]}.")
    return [part for line in lines for part in _wrapped(line)]


def _clock_of(rows: Sequence[TimedRequest]) -> str:
    clocks = {row.clock for row in rows if row.error is None}
    return " and ".join(sorted(clocks)) or "no"


def _cost(own: OwnPart, clock: str) -> str:
    parts = [f"Clock: {clock} stamps"]
    if own.cpu_s_per_token is not None:
        parts.append(f"{own.cpu_s_per_token * 1e6:.0f} µs of our own a token")
    if own.loop_lag_s is not None:
        parts.append(f"{duration(own.loop_lag_s)} late at times")
    if own.peak_bytes is not None:
        parts.append(f"{own.peak_bytes / 1e6:.0f} MB")
    return ", ".join(parts) + "."


def _conditions(timing: Timing) -> str:
    conditions = timing.conditions
    parts = [
        f"{name} {percent(share)}"
        for name, share in (
            ("other programs", conditions.host_load),
            ("stolen", conditions.steal),
            ("waiting for a processor", conditions.cpu_pressure),
        )
        if share is not None
    ]
    return f"This machine: {', '.join(parts)}." if parts else ""


def _source(timing: Timing) -> str:
    source = timing.source
    server = " ".join(plain(word) for word in (source.runtime, source.runtime_version) if word)
    parts = (plain(source.model, longest=60), server, plain(source.where, longest=60))
    return "Source: " + ", ".join(part for part in parts if part) + "."


def _warnings(timing: Timing, *, colour: bool) -> list[str]:
    said = list(timing.conditions.warnings)
    if not said:
        return []
    if not timing.conditions.trusted:
        said.insert(0, "Do not rely on these numbers yet:")
    lines = [part for line in said for part in _wrapped(plain(line, longest=400))]
    return ["", *(_styled(line, _YELLOW, colour=colour) for line in lines)]


def _in_ascii(text: str) -> str:
    return in_ascii(text).replace("µ", "u")


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH - 2, initial_indent="  ", subsequent_indent="    ")


def _styled(text: str, style: str, *, colour: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if colour else text
