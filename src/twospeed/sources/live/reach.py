"""How an endpoint is reached: what the user says about the way there."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from twospeed.records.errors import UsageError
from twospeed.sources.live.headers import Header
from twospeed.sources.live.proxy import Proxy, proxy_for
from twospeed.sources.live.target import Target
from twospeed.sources.live.trust import Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The way to an endpoint, and what goes along with every request; as it is, the plain one."""

    unix_socket: str | None = None
    """Path of a socket in the file system to connect to, whatever the host."""
    proxy: str | None = field(default=None, repr=False)
    """Proxy for every target; empty for none; None for the environment's."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables that name proxies; none of the process's own unless the caller hands them over."""
    headers: tuple[Header, ...] = field(default=(), repr=False)
    trust: Trust = field(default_factory=Trust)

    def __post_init__(self) -> None:
        """Refuse ways that contradict each other, or that this system does not have.

        Raises:
            UsageError: says which.
        """
        if self.unix_socket is None:
            return
        if self.proxy:
            raise UsageError("A unix socket is not reached through a proxy: give one of the two.")
        if not hasattr(socket, "AF_UNIX"):
            raise UsageError("Python knows no unix sockets on this system.")

    def proxy_before(self, target: Target) -> Proxy | None:
        """The proxy that stands before a target; None to reach it directly.

        Raises:
            UsageError: the proxy that would be used is none that can be.
        """
        if self.unix_socket is not None:
            return None
        return proxy_for(target, named=self.proxy, environment=self.environment)
