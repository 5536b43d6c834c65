"""What the socket, TLS and name service report, said in one line with a remedy."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from dataclasses import dataclass

from twospeed.records.errors import (
    ConnectFailed,
    EndpointError,
    ProtocolBroken,
    StreamBroken,
    TimedOut,
)
from twospeed.records.request_record import RequestError
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Stage
from twospeed.wire.reading import StreamError

TLS_ALERT = b"\x15\x03"


@dataclass(frozen=True, slots=True)
class Translation:
    """One kind of system error and its words."""

    error: type[OSError]
    numbers: frozenset[int]
    """Error numbers it is limited to; empty for all."""
    to: type[EndpointError]
    what: str
    hint: str


def _row(
    error: type[OSError], to: type[EndpointError], what: str, hint: str, *numbers: int
) -> Translation:
    return Translation(error, frozenset(numbers), to, what, hint)


# The first row that fits is used. {url}, {host} and {reason} are filled in.
TABLE = (
    _row(
        ConnectionRefusedError,
        ConnectFailed,
        "Nothing listens at {url}.",
        "Start the server or give another URL.",
    ),
    _row(
        socket.gaierror,
        ConnectFailed,
        "The name {host} is not known here.",
        "Check its spelling or give an address such as http://127.0.0.1:8080.",
    ),
    _row(
        ssl.SSLCertVerificationError,
        ConnectFailed,
        "The TLS certificate of {url} cannot be trusted: {reason}.",
        "Point SSL_CERT_FILE at the certificate of the authority that signed it.",
    ),
    _row(
        ssl.SSLError,
        ConnectFailed,
        "TLS with {url} failed: {reason}.",
        "If the server speaks plain HTTP, write http:// instead of https://.",
    ),
    _row(
        OSError,
        ConnectFailed,
        "{url} cannot be reached: {reason}.",
        "Check the network connection and the address.",
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.EADDRNOTAVAIL,
        errno.ENETDOWN,
    ),
    _row(
        ConnectionError,
        StreamBroken,
        "{url} broke off the connection.",
        "Look into the server's log: it may have crashed or run out of memory.",
    ),
    _row(
        OSError,
        StreamBroken,
        "The connection to {url} failed: {reason}.",
        "Try again; if it stays, look into the server's log.",
    ),
)


def translated(error: OSError, target: Target) -> EndpointError:
    """Say a system error in one line, with a remedy."""
    row = next(
        row
        for row in TABLE
        if isinstance(error, row.error) and (not row.numbers or error.errno in row.numbers)
    )
    reason = getattr(error, "verify_message", "") or error.strerror or str(error)
    words = {"url": target.url, "host": target.host, "reason": str(reason).rstrip(".")}
    return row.to(row.what.format(**words), hint=row.hint)


def connect_timed_out(target: Target, limit_s: float) -> TimedOut:
    """No connection within the limit."""
    return TimedOut(
        f"No connection to {target.url} within {limit_s:g} s.",
        hint="Check the address, the port and any firewall.",
    )


STAGE_WORDS: dict[Stage, tuple[str, str]] = {
    "headers": (
        "{url} took the request but did not answer within {s:.3g} s.",
        "It may be busy with other requests, or not a model server.",
    ),
    "first text": (
        "{url} answered but sent no text for {s:.3g} s.",
        "Measure with a shorter prompt, or allow more time.",
    ),
    "next text": (
        "The stream from {url} stalled: no text for {s:.3g} s.",
        "Look into the server's log, then measure again.",
    ),
    "whole answer": (
        "The answer of {url} was not complete within {s:.3g} s.",
        "Ask for fewer output tokens, or allow more time.",
    ),
}


def stage_timed_out(target: Target, stage: Stage, waited_s: float) -> TimedOut:
    """A stage of the exchange outlasted its limit."""
    what, hint = STAGE_WORDS[stage]
    return TimedOut(what.format(url=target.url, s=waited_s), hint=hint)


def closed_early(target: Target, *, bytes_seen: int) -> StreamBroken:
    """The other side closed before its response was complete."""
    hint = "Look into the server's log: it may have crashed or run out of memory."
    if not bytes_seen:
        return StreamBroken(f"{target.url} closed the connection without an answer.", hint=hint)
    return StreamBroken(
        f"{target.url} closed the connection in mid-answer, after {bytes_seen} bytes.", hint=hint
    )


def too_large(target: Target, limit_bytes: int) -> ProtocolBroken:
    """The response outgrew the bound."""
    return ProtocolBroken(
        f"{target.url} sent more than {limit_bytes / 2**20:.0f} MiB in one response.",
        hint="Check that this is a model server.",
    )


def not_http(target: Target, first_bytes: bytes, reason: str) -> ProtocolBroken:
    """The response is not HTTP."""
    if target.scheme == "http" and first_bytes.startswith(TLS_ALERT):
        return ProtocolBroken(
            f"{target.url} speaks TLS.", hint="Write https:// instead of http://."
        )
    return ProtocolBroken(
        f"{target.url} does not answer in HTTP: {reason.rstrip('.')}.",
        hint="Check that a model server listens on this port.",
    )


CONTEXT_EXCEEDED = re.compile(
    r"exceed_context_size|context[_ ](?:size|length|window)|exceeds? the (?:model's |available )?"
    r"(?:context|maximum)|prompt is too long|input (?:is )?too long|too many tokens",
    re.IGNORECASE,
)
LOADING = re.compile(r"\bloading\b|not (?:yet )?(?:loaded|ready)|warming up", re.IGNORECASE)

STATUS_HINTS = {
    401: "Pass the key with --api-key.",
    403: "Pass the key with --api-key.",
    404: "Check the URL and the model's name.",
    413: "Use a shorter prompt.",
    429: "The server limits requests: wait a moment, or stop other clients.",
    500: "Look into the server's log.",
    502: "A proxy answered in place of the server: give the server's own address.",
    503: "The server is busy or still loading its model: try again in a moment.",
    504: "A proxy answered in place of the server: give the server's own address.",
}


def status_hint(status: int | None) -> str:
    """What to do about an HTTP status, or an empty string."""
    return STATUS_HINTS.get(status or 0, "")


def recorded(failure: EndpointError | StreamError, target: Target) -> RequestError:
    """Make the entry of a request record; a prompt too long for the context is its own kind."""
    if isinstance(failure, EndpointError):
        return RequestError(
            kind=failure.kind, message=str(failure), http_status=failure.http_status
        )
    refused = failure.http_status is not None and failure.http_status >= 400
    if CONTEXT_EXCEEDED.search(failure.message) and failure.http_status in {None, 400, 413, 422}:
        hint = "Use a shorter prompt, or give the server a larger context."
        return _entry("context", failure, target, hint)
    if refused:
        return _entry("http", failure, target, status_hint(failure.http_status))
    return _entry(failure.kind, failure, target, "")


def _entry(kind: str, failure: StreamError, target: Target, hint: str) -> RequestError:
    status = "" if failure.http_status is None else f" (HTTP {failure.http_status})"
    message = f"{target.url}{status}: {failure.message.rstrip('.')}. {hint}".strip()
    return RequestError(kind=kind, message=message, http_status=failure.http_status)
