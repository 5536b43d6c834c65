"""Which names mean this machine; only under these does the simulator answer.

A web page can point a name of its own at 127.0.0.1 and then read what listens there (DNS
rebinding); the Host header gives it away.
"""

from __future__ import annotations

from ipaddress import ip_address


def host_of(authority: str) -> str:
    """The host of `host:port`, without brackets and in lower case."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.partition(":")[0].rstrip(".").lower()


def is_loopback_name(host: str) -> bool:
    """Whether a host is `localhost` or an address of loopback."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
