"""Where requests go: the base address of one endpoint, read from what a person types."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, quote, urlsplit

from twospeed.records.errors import UsageError

EXAMPLE = "Give an address such as http://127.0.0.1:8080."

DEFAULT_PORTS = {"http": 80, "https": 443}

# People paste the address of a route; every runtime module brings its own paths.
ROUTES = re.compile(
    r"(?:/(?:v1|api(?:/v[01])?)?"
    r"(?:/(?:chat/completions|completions?|responses|messages|models|chat|generate|tags))?)/*$"
)

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (compared, never bound)


@dataclass(frozen=True, slots=True)
class Target:
    """The base address of one endpoint."""

    scheme: Literal["http", "https"]
    host: str
    """Name or address, IPv6 without brackets, perhaps with a zone: fe80::1%eth0."""
    port: int
    base_path: str = ""
    """What stands before every route, without a slash at its end."""

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read an address as a person types it.

        A bare port, ``:port`` or ``localhost:port`` means http on 127.0.0.1. Routes at the end
        (/v1, /v1/chat/completions, /api …) are cut off.

        Args:
            text: URL, host, host:port, or port.

        Raises:
            UsageError: the text is no http(s) address; the message says which part.
        """
        text = text.strip()
        if not text or re.search(r"[\s\x00-\x1f\x7f]", text):
            raise UsageError(f"{text!r} is not an address.", hint=EXAMPLE)
        parts = _split(text)
        scheme = parts.scheme.lower()
        if scheme not in DEFAULT_PORTS:
            raise UsageError(f"{scheme}:// is neither http:// nor https://.", hint=EXAMPLE)
        if parts.username is not None or parts.password is not None:
            raise UsageError(
                "An address with a user name or password in it is not accepted.",
                hint="Pass the key with --api-key.",
            )
        if parts.query or parts.fragment:
            raise UsageError(f"{text!r} has a part after ? or #.", hint=EXAMPLE)
        return cls(
            scheme="https" if scheme == "https" else "http",
            host=_host(parts, text),
            port=_port(parts, text) or DEFAULT_PORTS[scheme],
            base_path=quote(ROUTES.sub("", parts.path).rstrip("/"), safe="/%:@!$&'()*+,;=~"),
        )

    @property
    def authority(self) -> str:
        """Host and port as in a Host header: brackets around IPv6, no default port, no zone."""
        return self._with_port(self.bare_host)

    @property
    def bare_host(self) -> str:
        """The host without a zone, which has a meaning on this machine only."""
        return self.host.partition("%")[0]

    @property
    def host_and_port(self) -> str:
        """Both, also where the port is the usual one."""
        return f"{bracketed(self.bare_host)}:{self.port}"

    @property
    def url(self) -> str:
        """The base address for messages and reports."""
        return f"{self.scheme}://{self._with_port(self.host.replace('%', '%25'))}{self.base_path}"

    def _with_port(self, host: str) -> str:
        usual = self.port == DEFAULT_PORTS[self.scheme]
        return bracketed(host) if usual else f"{bracketed(host)}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the endpoint answers on this machine's loopback interface."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            return False
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return (mapped or address).is_loopback

    def path_of(self, route: str) -> str:
        """Request path of a route that starts with a slash."""
        return self.base_path + route


def bracketed(host: str) -> str:
    """A host as it stands in an address: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def _split(text: str) -> SplitResult:
    """Split a URL, or a bare port, host or host:port made into one."""
    bare = "://" not in text
    if bare:
        if text.isascii() and text.isdigit():
            text = f":{text}"
        if text.startswith(":") and not text.startswith("::"):
            text = f"127.0.0.1{text}"
        if text.count(":") > 1 and not text.startswith("["):
            text = f"[{text}]"
        text = f"http://{text}"
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not an address: {error}.", hint=EXAMPLE) from None
    if bare and parts.hostname == "localhost":
        parts = parts._replace(netloc=parts.netloc.lower().replace("localhost", "127.0.0.1", 1))
    return parts


def _host(parts: SplitResult, text: str) -> str:
    """Host name as it goes on the wire, or an address."""
    host = parts.hostname or ""
    host = ANY_ADDRESS.get(host, host)
    if ":" in host:
        host = host.replace("%25", "%", 1)  # RFC 6874; plain % is what people type
    with contextlib.suppress(ValueError):
        address = str(ipaddress.ip_address(host))
        if re.fullmatch(r"[0-9a-f.:]+(?:%[A-Za-z0-9._~-]+)?", address):
            return address
    try:
        name = host.encode("idna").decode("ascii")
    except UnicodeError:
        name = ""
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name) or re.fullmatch(r"[0-9.]+", name):
        raise UsageError(f"{text!r} names no host.", hint=EXAMPLE)
    return name


def _port(parts: SplitResult, text: str) -> int | None:
    """Port number, or None when none is given."""
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise UsageError(
            f"The port in {text!r} is not a number from 1 to 65535.", hint=EXAMPLE
        ) from None
    return port
