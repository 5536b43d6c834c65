"""The address of the simulator: this machine's own, and nothing else."""

from __future__ import annotations

import socket
import sys
from ipaddress import ip_address

from twospeed.records.errors import UsageError
from twospeed.simulator.loop import BACKLOG


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens on loopback.

    Args:
        host: `localhost` or an address of loopback.
        port: 0 for any that is free.

    Raises:
        UsageError: the address is not this machine's own, or is taken.
    """
    address = "127.0.0.1" if host == "localhost" else host.strip("[]")
    try:
        found = ip_address(address)
    except ValueError:
        found = None
    if found is None or not found.is_loopback:
        raise UsageError(
            f"--host {host}: the simulator only listens on this machine.",
            hint="Use 127.0.0.1, ::1 or localhost.",
        )
    listener = socket.socket(socket.AF_INET6 if found.version == 6 else socket.AF_INET)
    try:
        if not sys.platform.startswith("win"):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"Cannot listen on port {port} of {address}: {error.strerror}.",
            hint="Choose another one with --port; 0 takes any that is free.",
        ) from error
    listener.setblocking(False)  # noqa: FBT003
    return listener


def shown(listener: socket.socket) -> str:
    """Host and port as a URL has them."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def allow_many_connections() -> None:
    """Raise the number of descriptors as far as the system lets us without asking."""
    if sys.platform.startswith("win"):
        return
    import resource  # noqa: PLC0415 - not on every system

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
