"""Arguments that several commands take, and their types."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, _ArgumentGroup

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


def request_arguments(parser: ArgumentParser, *, prompt: str, output: str) -> None:
    """Declare the request shape and the goals; the texts say what holds without them."""
    how = parser.add_argument_group("your request and your goals")
    how.add_argument("--prompt-tokens", type=positive_int, metavar="N", help=prompt)
    how.add_argument("--output-tokens", type=positive_int, metavar="N", help=output)
    how.add_argument(
        "--wait-goal", type=positive_float, metavar="SECONDS", help="first token (default 2)"
    )
    how.add_argument(
        "--stream-goal", type=positive_float, metavar="TOK/S", help="speed (default 20)"
    )


def fail_on_argument(group: _ArgumentGroup) -> None:
    """Declare what makes a report a failure."""
    group.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="WORD",
        help="exit 1 if the slow phase or a cause is this (repeatable; 'any' for all)",
    )


def timeout_argument(group: _ArgumentGroup) -> None:
    """Declare how long a server may stay silent."""
    group.add_argument(
        "--timeout",
        type=positive_float,
        default=300.0,
        metavar="SECONDS",
        help="longest silence of the server, model load included (default 300)",
    )


def question_arguments(parser: ArgumentParser) -> None:
    """Declare what can be asked beyond the run (read by `terminal.questions.asked_of`)."""
    asks = parser.add_argument_group("what if, and here or elsewhere")
    asks.add_argument(
        "--what-if",
        action="append",
        default=[],
        metavar="CHANGES",
        help="price changes together, such as prompt=0.5,cache=on,quant=q4_k_m (repeatable)",
    )
    for name, metavar, text in (
        ("--remote-ttft", "SECONDS", "first token of another server"),
        ("--remote-tps", "TOK/S", "its stream"),
        ("--remote-ttft-per-1k", "SECONDS", "what each 1,000 prompt tokens add there"),
        ("--price-in", "PRICE", "of a million tokens in, there"),
        ("--price-out", "PRICE", "of a million tokens out, there"),
        ("--local-watts", "WATTS", "what this machine draws for its work"),
        ("--price-kwh", "PRICE", "of a kilowatt-hour here"),
    ):
        asks.add_argument(name, type=positive_float, metavar=metavar, help=text)
