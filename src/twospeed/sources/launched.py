"""A model server started from the user's own command line, and ended with the measurement.

`{port}` in the line stands for a free port of this machine. The server gets a process group of its
own: the terminal's Ctrl-C does not reach it, and whatever it starts ends with it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from twospeed.records.errors import EndpointError, UsageError
from twospeed.sources.process_group import own_group

PORT = "{port}"
READY_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 5.0
TICK_S = 0.1
CONNECT_S = 0.5
TAIL_BYTES = 4096
TAIL_LINES = 3


class LaunchedServer:
    """`with LaunchedServer('llama-server -m x.gguf --port {port}').start() as server: …`.

    Args:
        line: command line as typed in a shell, without its operators; holds `{port}`.

    Raises:
        UsageError: the line is empty, badly quoted or has no `{port}`.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.words = words_of(line)
        self.url: str | None = None
        """Where it listens, once ready."""
        self._process: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None

    @property
    def pid(self) -> int | None:
        """The process that was started."""
        return None if self._process is None else self._process.pid

    def start(
        self,
        *,
        timeout_s: float = READY_TIMEOUT_S,
        waiting: Callable[[float], None] | None = None,
    ) -> Self:
        """Start it and return once something listens at its port.

        Args:
            timeout_s: longest wait for that.
            waiting: called several times a second with the seconds waited so far.

        Raises:
            EndpointError: it cannot be started, ended at once, or never listened.
        """
        if self._process is not None:
            return self
        port = free_port()
        try:
            self._process = self._spawn([word.replace(PORT, str(port)) for word in self.words])
            self._wait_for(port, timeout_s, waiting)
        except BaseException:
            self.stop()
            raise
        self.url = f"http://127.0.0.1:{port}"
        return self

    def stop(self) -> None:
        """End it and all that it started within five seconds; safe to call twice."""
        process, self._process, self.url = self._process, None, None
        if process is not None:
            _signal_group(process, insist=False)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=STOP_TIMEOUT_S)
            _signal_group(process, insist=True)
            process.wait()
        if self._log is not None:
            self._log.unlink(missing_ok=True)
            self._log = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _spawn(self, words: list[str]) -> subprocess.Popen[bytes]:
        descriptor, name = tempfile.mkstemp(prefix="twospeed-server-", suffix=".log")
        self._log = Path(name)
        with open(descriptor, "wb") as log:  # noqa: PTH123 (a descriptor, not a path)
            try:
                return subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **own_group()
                )
            except OSError as error:
                raise EndpointError(
                    f"Cannot start {words[0]}: {error.strerror or error}.",
                    hint="Give its whole path, or check that it is installed.",
                ) from error

    def _wait_for(
        self, port: int, timeout_s: float, waiting: Callable[[float], None] | None
    ) -> None:
        began_s = time.monotonic()
        while not _listens(port):
            waited_s = time.monotonic() - began_s
            if self._process is not None and self._process.poll() is not None:
                raise self._failure(f"it ended with exit code {self._process.returncode}")
            if waited_s > timeout_s:
                raise self._failure(f"nothing listened at its port after {timeout_s:g} s")
            if waiting is not None:
                waiting(waited_s)
            time.sleep(TICK_S)

    def _failure(self, what: str) -> EndpointError:
        tail = self.log_tail()
        hint = f"Its last words: {tail}" if tail else "It printed nothing."
        return EndpointError(f"The server of --command failed: {what}.", hint=hint)

    def log_tail(self) -> str:
        """The last lines of what it printed, in one line."""
        if self._log is None:
            return ""
        with self._log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = log.read().decode("utf-8", "replace").splitlines()
        return " | ".join([line.strip() for line in lines if line.strip()][-TAIL_LINES:])


def words_of(line: str) -> list[str]:
    """The words of a command line.

    Raises:
        UsageError: it cannot be run.
    """
    try:
        words = shlex.split(line, posix=sys.platform != "win32")
    except ValueError as error:
        raise UsageError(f"--command {line!r}: {error}.") from error
    if not any(PORT in word for word in words):
        raise UsageError(
            f"--command {line!r} has no {PORT}: twospeed chooses the port.",
            hint="For example: 'llama-server -m model.gguf --port {port}'.",
        )
    return words


def free_port() -> int:
    """A TCP port of this machine at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=CONNECT_S).close()
    except OSError:
        return False
    return True


def _signal_group(process: subprocess.Popen[bytes], *, insist: bool) -> None:
    """Ask or force the group to end; one that is gone is no news."""
    if sys.platform == "win32":
        process.kill() if insist else process.terminate()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL if insist else signal.SIGTERM)
