"""Redirects: the same request once more at the same place, and never anywhere else.

A POST stays a POST, also for 301 and 302. Browsers made a GET of it, and RFC 9110 (15.4.2) lets a
client do either; here the body is the question, and a server that moves a route or adds a slash
means the same question. The key goes to no other scheme, host or port.
"""

from __future__ import annotations

from urllib.parse import SplitResult, quote, urljoin, urlsplit

from twospeed.records.errors import UsageError
from twospeed.sources.live import failures
from twospeed.sources.live.target import Target
from twospeed.wire.http_response import ResponseReader

STATUSES = frozenset({301, 302, 307, 308})
MOST_REDIRECTS = 3
"""In a row."""


def led_on(request: bytes, reader: ResponseReader, target: Target) -> bytes | None:
    """The request as its answer wants it sent once more; None when that is no redirect.

    Args:
        request: as it went out.
        reader: its complete answer.
        target: the endpoint.

    Raises:
        HttpRefused: the redirect leads to another scheme, host or port, which the message names.
    """
    location = reader.headers.get("location", "")
    if reader.status not in STATUSES or not location:
        return None
    method, asked, rest = request.split(b" ", 2)
    origin = f"{target.scheme}://{target.authority}"
    try:
        parts = urlsplit(urljoin(urljoin(origin, asked.decode("ascii")), location))
        path = _on_the_wire(parts)
        where = parts.netloc.rpartition("@")[2]
        new = Target.parse(f"{parts.scheme}://{where}{path.partition('?')[0]}")
    except (ValueError, UsageError):
        raise failures.redirected(target, reader.status, None) from None
    if (new.scheme, new.authority) != (target.scheme, target.authority):
        raise failures.redirected(target, reader.status, new)
    through_proxy = asked.startswith(b"http://")
    return b" ".join([method, f"{origin if through_proxy else ''}{path}".encode("ascii"), rest])


def _on_the_wire(parts: SplitResult) -> str:
    """Path and query as they go into a request line."""
    path = parts.path or "/"
    return quote(
        f"{path}?{parts.query}" if parts.query else path,
        safe="/%:@!$&'()*+,;=~?[]",
        encoding="latin-1",
        errors="replace",
    )
