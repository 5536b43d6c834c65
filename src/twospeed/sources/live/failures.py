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
    HttpRefused,
    ProtocolBroken,
    StreamBroken,
    TimedOut,
)
from twospeed.records.request_record import RequestError
from twospeed.sources.live.proxy import Proxy
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
    tls_reason: str
    """Part of OpenSSL's name of the reason that it is limited to; empty for all."""
    to: type[EndpointError]
    what: str
    hint: str

    def fits(self, error: OSError) -> bool:
        """Whether these are the words for an error."""
        reason = getattr(error, "reason", None) or ""
        return (
            isinstance(error, self.error)
            and (not self.numbers or error.errno in self.numbers)
            and self.tls_reason in str(reason)
        )


def _row(
    error: type[OSError],
    to: type[EndpointError],
    what: str,
    hint: str,
    *numbers: int,
    tls_reason: str = "",
) -> Translation:
    return Translation(error, frozenset(numbers), tls_reason, to, what, hint)


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
        "Give the certificate of the authority that signed it to --cacert (or in SSL_CERT_FILE),"
        " or do without the check: --insecure.",
    ),
    _row(
        ssl.SSLError,
        ConnectFailed,
        "{url} wants to see a client certificate.",
        "Pass one with --cert FILE, and its key with --key FILE.",
        tls_reason="CERTIFICATE_REQUIRED",
    ),
    _row(
        ssl.SSLError,
        ConnectFailed,
        "{url} refused our side of TLS: {reason}.",
        "Check the client certificate, if it wants one (--cert, --key).",
        tls_reason="_ALERT_",
    ),
    _row(
        ssl.SSLError,
        ConnectFailed,
        "TLS with {url} failed: {reason}.",
        "If the server speaks plain HTTP, write http:// instead of https://; if it wants a client"
        " certificate, pass --cert.",
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
    row = next(row for row in TABLE if row.fits(error))
    words = {"url": target.url, "host": target.host, "reason": _reason(error)}
    return row.to(row.what.format(**words), hint=row.hint)


def _reason(error: OSError) -> str:
    """What the system says, without a full stop and without OpenSSL's brackets."""
    reason = str(getattr(error, "verify_message", "") or error.strerror or error)
    return re.sub(r"^\[[^]]*\] | \(_ssl\.c:\d+\)", "", reason).rstrip(".")


def connect_timed_out(target: Target, limit_s: float, proxy: Proxy | None) -> TimedOut:
    """No connection within the limit."""
    through = "" if proxy is None else f" through the proxy {proxy.url} ({proxy.named_by})"
    return TimedOut(
        f"No connection to {target.url}{through} within {limit_s:g} s.",
        hint="Check the address, the port and any firewall.",
    )


def unix_socket_failed(error: OSError, path: str) -> ConnectFailed:
    """No connection to a socket in the file system."""
    if isinstance(error, FileNotFoundError):
        return ConnectFailed(
            f"There is no unix socket at {path}.", hint="Start the server or check the path."
        )
    if isinstance(error, ConnectionRefusedError):
        return ConnectFailed(
            f"Nothing listens at the unix socket {path}.", hint="Start the server again."
        )
    return ConnectFailed(
        f"The unix socket {path} cannot be used: {_reason(error)}.",
        hint="Check the path and its permissions.",
    )


WITHOUT_PROXY = "or do without it: --proxy ''."


def proxy_failed(error: OSError, proxy: Proxy) -> ConnectFailed:
    """No connection to the proxy itself."""
    what = f"The proxy {proxy.url} cannot be reached: {_reason(error)}."
    if isinstance(error, ConnectionRefusedError):
        what = f"Nothing listens at the proxy {proxy.url}."
    return ConnectFailed(what, hint=f"Check {proxy.named_by}, {WITHOUT_PROXY}")


def proxy_refused(proxy: Proxy, status: int, target: Target) -> ConnectFailed:
    """The proxy answered, but with a refusal."""
    if status == 407:
        wanted = "another" if proxy.authorization else "a"
        return ConnectFailed(
            f"The proxy {proxy.url} wants {wanted} user name and password (HTTP 407).",
            hint=f"Write them into {proxy.named_by}: http://user:password@host:port.",
            http_status=status,
        )
    return ConnectFailed(
        f"The proxy {proxy.url} opens no way to {target.host_and_port} (HTTP {status}).",
        hint=f"Ask whoever runs it, check {proxy.named_by}, {WITHOUT_PROXY}",
        http_status=status,
    )


def proxy_closed(proxy: Proxy) -> ConnectFailed:
    """The proxy hung up when it was asked for a tunnel."""
    return ConnectFailed(
        f"The proxy {proxy.url} closed the connection without an answer.",
        hint=f"Check {proxy.named_by}, {WITHOUT_PROXY}",
    )


def no_proxy(proxy: Proxy, reason: str) -> ProtocolBroken:
    """What should be a proxy does not behave like one."""
    return ProtocolBroken(
        f"{proxy.url} does not answer like an HTTP proxy: {reason.rstrip('.')}.",
        hint=f"Check {proxy.named_by}, {WITHOUT_PROXY}",
    )


def redirected(target: Target, status: int | None, to: Target | None) -> HttpRefused:
    """The endpoint sends its clients elsewhere, where no key of ours goes."""
    where = "an address that cannot be used" if to is None else to.url
    return HttpRefused(
        f"{target.url} redirects to {where} (HTTP {status}), where nothing was sent.",
        hint="" if to is None else f"If that is what you mean, give {to.url} as URL.",
        http_status=status,
    )


def redirected_too_often(target: Target, status: int | None, most: int) -> HttpRefused:
    """The endpoint sends its clients around."""
    return HttpRefused(
        f"{target.url} redirects more than {most} times.",
        hint="Check the path in the URL, and any proxy before the server.",
        http_status=status,
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
