"""HTTP proxies: which one stands before an endpoint, and what it asks for.

The environment counts as for curl: lower case before upper case, http_proxy in lower case only (a
web server hands HTTP_PROXY to its scripts from a request header), and NO_PROXY. A loopback address
is always reached directly. A proxy that the user names on the command line is used in any case.

Source: curl(1), sections ENVIRONMENT, --proxy and --noproxy; RFC 9110 section 11.7.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import unquote_to_bytes, urlsplit

from twospeed.records.errors import UsageError
from twospeed.sources.live.target import Target, bracketed

DEFAULT_PORT = 1080
"""As for curl."""
OPTION = "--proxy"
VARIABLES = {
    "http": ("http_proxy", "all_proxy", "ALL_PROXY"),
    "https": ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
}
EXCEPTIONS = ("no_proxy", "NO_PROXY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One HTTP proxy."""

    host: str
    port: int
    named_by: str
    """Option or variable that named it, for messages."""
    authorization: str | None = field(default=None, repr=False)
    """Value of the Proxy-Authorization header; None without user name and password."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Texts that no message may show."""

    @classmethod
    def parse(cls, text: str, named_by: str) -> Self:
        """Read the address of a proxy: host:port, or http://user:password@host:port.

        Args:
            text: as a person writes it.
            named_by: option or variable that holds it; messages show this and never the text.

        Raises:
            UsageError: it is no address, or no HTTP proxy.
        """
        form = "It looks like http://host:port or http://user:password@host:port."
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
        except ValueError:
            raise UsageError(f"{named_by} is not the address of a proxy.", hint=form) from None
        if parts.scheme != "http":
            raise UsageError(
                f"{named_by} names a proxy of the kind {parts.scheme}://; only http:// is spoken.",
                hint="Give an HTTP proxy, or leave it out with --proxy ''.",
            )
        who, _, where = parts.netloc.rpartition("@")
        try:
            port = "" if _has_port(where) else f":{DEFAULT_PORT}"
            target = Target.parse(f"http://{where}{port}")
        except UsageError:
            raise UsageError(f"{named_by} is not the address of a proxy.", hint=form) from None
        return cls(
            host=target.host,
            port=target.port,
            named_by=named_by,
            authorization=_basic(who) if who else None,
            secrets=_secrets(who) if who else (),
        )

    @property
    def url(self) -> str:
        """Its address for messages, without user name and password."""
        return f"http://{bracketed(self.host)}:{self.port}"


def proxy_for(target: Target, *, named: str | None, environment: Mapping[str, str]) -> Proxy | None:
    """The proxy that stands before a target; None to reach it directly.

    Args:
        target: the endpoint.
        named: what the user named on the command line; empty for no proxy, None for the
            environment's.
        environment: variables.

    Raises:
        UsageError: the proxy that would be used is none that can be.
    """
    if named is not None:
        return Proxy.parse(named, OPTION) if named else None
    if target.is_loopback:
        return None
    variable = next((name for name in VARIABLES[target.scheme] if environment.get(name)), None)
    if variable is None:
        return None
    exceptions = next((environment[name] for name in EXCEPTIONS if environment.get(name)), "")
    if is_excepted(target.host, exceptions):
        return None
    return Proxy.parse(environment[variable], variable)


def is_excepted(host: str, exceptions: str) -> bool:
    """Whether a host is reached without a proxy.

    Args:
        host: name or address, IPv6 without brackets.
        exceptions: value of NO_PROXY: names (with all below them), addresses and networks, divided
            by commas or spaces; a single asterisk stands for every host.
    """
    entries = [entry for entry in re.split(r"[,\s]+", exceptions) if entry]
    if entries == ["*"]:
        return True
    host = host.lower().rstrip(".")
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        return any(_holds(entry, address) for entry in entries)
    names = [entry.lower().strip(".") for entry in entries]
    return any(host == name or host.endswith(f".{name}") for name in names if name)


def _holds(entry: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an entry is this address, or a network that holds it."""
    try:
        return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return False


def _has_port(where: str) -> bool:
    return re.search(r":\d*$", where.rpartition("]")[2]) is not None


def _basic(who: str) -> str:
    """Credentials as RFC 7617 puts them into a header."""
    user, _, password = who.partition(":")
    pair = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
    return f"Basic {base64.b64encode(pair).decode('ascii')}"


def _secrets(who: str) -> tuple[str, ...]:
    written = who.partition(":")[2]
    plain = unquote_to_bytes(written).decode("utf-8", "replace")
    return (written, plain, _basic(who).partition(" ")[2])
