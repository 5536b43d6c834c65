"""Which process serves a port, what a process shows of itself, and what descends from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil

from twospeed.sources.machine.command_line import without_secrets

# Listeners that only pass connections on: the server's own process is somewhere else.
FORWARDERS = (
    "docker-proxy",
    "rootlessport",
    "com.docker",
    "vpnkit",
    "wslrelay",
    "ssh",
    "slirp4netns",
    "pasta",
    "gvproxy",
)

Gone = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """What a process shows of itself; None where this user may not look."""

    pid: int
    name: str | None = None
    cmdline: tuple[str, ...] | None = None
    """Words of its command line, keys and tokens blanked."""
    cwd: str | None = None
    threads: int | None = None
    rss_bytes: int | None = None


def listener_pid(port: int) -> int | None:
    """Which process of this machine listens on a TCP port.

    Args:
        port: TCP port number.

    Returns:
        Its process id; None when there is none, this user may not see it, or the listener only
        forwards to another machine or container.
    """
    found = next(_listening_pids(port), None)
    if found is None:
        return None
    facts = process_facts(found)
    name = (facts.name or "").lower() if facts else ""
    return None if name.startswith(FORWARDERS) else found


def process_facts(pid: int) -> ProcessFacts | None:
    """What a process shows of itself.

    Args:
        pid: process id.

    Returns:
        Facts, None where not allowed; None altogether when the process is gone.
    """
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None
    memory = asked(process, "memory_info")
    cmdline = asked(process, "cmdline")
    return ProcessFacts(
        pid=pid,
        name=asked(process, "name"),
        cmdline=None if cmdline is None else without_secrets(cmdline),
        cwd=asked(process, "cwd"),
        threads=asked(process, "num_threads"),
        rss_bytes=None if memory is None else memory.rss,
    )


def asked(process: psutil.Process, what: str) -> Any:  # noqa: ANN401  (whatever psutil has)
    """One fact of a process, None where it cannot be had."""
    try:
        return getattr(process, what)()
    except (*Gone, OSError):
        return None


def tree_of(roots: Iterable[int | None]) -> list[psutil.Process]:
    """Processes and all their descendants, each once; what is gone or hidden is left out."""
    found: dict[int, psutil.Process] = {}
    for pid in roots:
        if pid is None:
            continue
        try:
            process = psutil.Process(pid)
            found |= {p.pid: p for p in (process, *process.children(recursive=True))}
        except Gone:
            continue
    return list(found.values())


def _listens(connection: Any, port: int) -> bool:  # noqa: ANN401
    at = connection.laddr
    return connection.status == psutil.CONN_LISTEN and bool(at) and at.port == port


def _listening_pids(port: int) -> Iterator[int]:
    """Processes that listen on a port; each is looked at alone where the table is not shown."""
    try:
        table = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:  # macOS
        for process in psutil.process_iter():
            if any(_listens(c, port) for c in asked(process, "net_connections") or ()):
                yield process.pid
    else:
        yield from (c.pid for c in table if c.pid and _listens(c, port))
