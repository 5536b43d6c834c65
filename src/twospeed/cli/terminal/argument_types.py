"""Types of arguments that several commands take."""

from __future__ import annotations

from argparse import ArgumentTypeError

MOST = 10**9
"""Larger numbers of tokens, requests or seconds are slips of the finger."""


def positive_int(text: str) -> int:
    """A whole number from 1 to a thousand million, for argparse."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 0 < value <= MOST:
        raise ArgumentTypeError(f"{text[:40]!r} is not a whole number from 1 to {MOST:,}")
    return value


def positive_float(text: str) -> float:
    """A number above zero and up to a thousand million, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= MOST:
        raise ArgumentTypeError(f"{text[:40]!r} is not a number above 0 and up to {MOST:,}")
    return value
