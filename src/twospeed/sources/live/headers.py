"""Header lines that the user adds to every request, or puts in place of ours."""

from __future__ import annotations

import re

from twospeed.records.errors import UsageError

NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE = re.compile(r"[\t\x20-\x7e]*")
FRAMING = {
    *("connection", "content-length", "expect", "te", "trailer", "transfer-encoding", "upgrade")
}
"""They say where a request ends and how it is answered, which is ours to know."""

SHORTEST_SECRET = 8
"""Longer than Bearer, Basic and the like."""
HARMLESS = {"accept", "accept-encoding", "accept-language", "content-type", "host", "user-agent"}

Header = tuple[str, str]
"""Name and value; an empty value leaves the header out."""


def headers_of(lines: list[str]) -> tuple[Header, ...]:
    """Read header lines as a person writes them for curl.

    Messages name a line by its number and never repeat it: it may hold a key.

    Args:
        lines: each "Name: value"; "Name:" leaves one of our own headers out.

    Raises:
        UsageError: a line is no header, or one that no request of ours can carry.

    Source: RFC 9110 sections 5.1 and 5.5.
    """
    return tuple(_header(line, f"--header number {n}") for n, line in enumerate(lines, 1))


def _header(line: str, which: str) -> Header:
    name, colon, value = line.partition(":")
    if not colon or not NAME.fullmatch(name):
        raise UsageError(f"{which} is not of the form 'Name: value'.")
    value = value.strip(" \t")
    if not VALUE.fullmatch(value):
        raise UsageError(f"{which} ({name}) holds characters that no header can carry.")
    if name.lower() in FRAMING:
        raise UsageError(f"{which} ({name}) is set by twospeed itself.", hint="Leave it out.")
    return name, value


def merged(own: list[Header], given: tuple[Header, ...]) -> list[Header]:
    """Our headers with the user's: a name that the user gives is the user's alone.

    Args:
        own: ours, in order.
        given: the user's; one without a value only removes ours.
    """
    names = {name.lower() for name, _ in given}
    kept = [(name, value) for name, value in own if name.lower() not in names]
    return kept + [(name, value) for name, value in given if value]


def secrets_in(headers: tuple[Header, ...]) -> tuple[str, ...]:
    """Texts that no message may show: values, and the words in them, of all telling headers."""
    values = [value for name, value in headers if name.lower() not in HARMLESS]
    texts = [*values, *(word for value in values for word in value.split())]
    return tuple(text for text in dict.fromkeys(texts) if len(text) >= SHORTEST_SECRET)
