"""Numbers as a person reads them: two to three digits that mean something."""

from __future__ import annotations

from twospeed.fits.interval import Interval

UNKNOWN = "not known"


def seconds(value: float | None) -> str:
    """Seconds with a unit: `45 ms`, `0.32 s`, `5.1 s`, `42 s`, `3 min 20 s`."""
    if value is None:
        return UNKNOWN
    size = abs(value)
    if size >= 119.5:
        minutes, rest = divmod(round(size), 60)
        return f"{'-' if value < 0 else ''}{minutes:,} min {rest:02d} s"
    if size >= 9.95:
        return f"{value:.0f} s"
    if size >= 0.995:
        return f"{value:.1f} s"
    if size >= 0.0995:
        return f"{value:.2f} s"
    return f"{value * 1e3:.0f} ms" if size >= 0.0005 else "0 s"


def seconds_range(interval: Interval) -> str:
    """Both ends of an interval in one unit: `4.1 to 5.0 s`."""
    low, high = seconds(interval.low), seconds(interval.high)
    low_number, _, low_unit = low.rpartition(" ")
    if low == high:
        return low
    short = low_unit == high.rpartition(" ")[2] and "min" not in low + high
    return f"{low_number if short else low} to {high}"


def rate(value: float | None, *, beside: float | None = None) -> str:
    """Tokens per second without the unit: `5.1`, `92`, `1,240`.

    Args:
        value: tokens per second.
        beside: a number that it is compared with: another digit is shown where both would read the
            same and are not.
    """
    if value is None:
        return UNKNOWN
    decimals = 1 if abs(value) < 9.95 else 0
    for extra in range(3):
        text = f"{value:,.{decimals + extra}f}"
        if beside is None or value == beside or text != f"{beside:,.{decimals + extra}f}":
            return text
    return text


def rate_with_unit(value: float | None, *, beside: float | None = None) -> str:
    """As `rate`, with its unit where there is a number: `5.1 tok/s`."""
    text = rate(value, beside=beside)
    return text if value is None else f"{text} tok/s"


def goal(value: float) -> str:
    """A goal as the user wrote it: `20`, `2.5`."""
    return f"{value:,.6g}"


def percent(share: float | None) -> str:
    """A share as percent: `37 %`."""
    return UNKNOWN if share is None else f"{share * 100:.0f} %"


def tokens(count: float | None) -> str:
    """A number of tokens: `2,000`; from 10,000 on rounded to three digits."""
    if count is None:
        return UNKNOWN
    whole = round(count)
    if abs(whole) >= 10_000:
        digits = len(str(abs(whole))) - 3
        whole = round(whole, -digits)
    return f"{whole:,}"
