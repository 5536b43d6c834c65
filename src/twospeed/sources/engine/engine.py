"""A real llama.cpp server, started for one measurement and ended with it.

It runs in a process of its own, so that its processor time, memory and crashes are not ours, and
nothing of llama.cpp is loaded here.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from twospeed.records.errors import EngineError
from twospeed.sources.engine.setting_values import Value
from twospeed.sources.engine.settings import Settings
from twospeed.sources.process_group import own_group

COMMAND = (sys.executable, "-P", "-m", "twospeed.sources.engine.child")
READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 5.0
TICK_S = 0.1
LOG_TAIL_BYTES = 64 * 1024

# "0.00.005.722 E llama_model_load: error loading model: …": time, level, function, text.
_LOG_LINE = re.compile(r"[\d.]+ (?P<level>[A-Z]) (?P<text>.*)")
# The innermost reason comes first, then one line per caller that passes it on.
_CAUSE = re.compile(
    r"gguf_init|error loading model: |llama_init_from_model: |out of memory|failed to allocate"
)
_ABORT = re.compile(r".*\b(?P<text>GGML_ASSERT.*)")


class Engine:
    """llama.cpp on a free local port: `with Engine(settings).start() as engine: …`.

    Args:
        settings: as `settings.with_defaults` returns them.
        command: the child process; replaceable in tests.
    """

    def __init__(self, settings: Mapping[str, Value], *, command: Sequence[str] = COMMAND) -> None:
        self.settings: Settings = dict(settings)
        self.url: str | None = None
        """Where it listens, once ready."""
        self.gpus: tuple[str, ...] | None = None
        """Graphics devices that it could use; None before ready."""
        self.log_path: Path | None = None
        """llama.cpp's log; removed by `stop` unless the engine failed."""
        self._command = tuple(command)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process whose time and memory are the engine's."""
        return None if self._process is None else self._process.pid

    @property
    def runs_on_processor(self) -> bool:
        """Whether the whole model is known to run on the processor."""
        return self.gpus == () or self.settings.get("gpu-layers") == 0

    def start(
        self,
        *,
        timeout_s: float = READY_TIMEOUT_S,
        waiting: Callable[[float], None] | None = None,
    ) -> Self:
        """Start the server and return once it answers; an engine that was started stays as it is.

        Args:
            timeout_s: longest wait for the model to load.
            waiting: called several times a second with the seconds waited so far.

        Raises:
            EngineError: xllamacpp is not installed, the model cannot be loaded, or time ran out.
        """
        if self._process is not None:
            return self
        if self._command == COMMAND and importlib.util.find_spec("xllamacpp") is None:
            raise EngineError(
                "The embedded engine is not installed.",
                hint="Run: pip install 'twospeed[engine]'.",
            )
        try:
            process = self._spawn()
            answer = self._answer(process, timeout_s, waiting)
        except BaseException:
            self._end(keep_log=self._process is not None)
            raise
        self.url = str(answer["address"])
        self.gpus = tuple(answer["gpus"])
        return self

    def _spawn(self) -> subprocess.Popen[bytes]:
        descriptor, name = tempfile.mkstemp(prefix="twospeed-engine-", suffix=".log")
        self.log_path = Path(name)
        with open(descriptor, "wb") as log:  # noqa: PTH123 (a descriptor, not a path)
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                **own_group(),
            )
        self._process = process
        order = {
            "settings": self.settings,
            "parent": os.getpid(),
            # Linux ends the child with the thread that started it, not only with the process.
            "die_with_parent": threading.current_thread() is threading.main_thread(),
        }
        with contextlib.suppress(BrokenPipeError):  # it has ended already: its log says why
            stdin = _stream(process.stdin)
            stdin.write(json.dumps(order).encode() + b"\n")
            stdin.flush()
        return process

    def _answer(
        self,
        process: subprocess.Popen[bytes],
        timeout_s: float,
        waiting: Callable[[float], None] | None,
    ) -> dict[str, Any]:
        """The child's line once it comes."""
        line = self._first_line(process, timeout_s, waiting)
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            answer = {"error": f"exit code {process.wait()}" if not line else repr(line[:200])}
        if "address" not in answer:
            raise self._failure(str(answer.get("error")))
        return answer

    def _first_line(
        self,
        process: subprocess.Popen[bytes],
        timeout_s: float,
        waiting: Callable[[float], None] | None,
    ) -> bytes:
        """The first line of output, or nothing when the process ended without one."""
        lines: queue.Queue[bytes] = queue.Queue()
        output = _stream(process.stdout)
        threading.Thread(target=lambda: lines.put(output.readline()), daemon=True).start()
        began = time.monotonic()
        while True:
            waited = time.monotonic() - began
            if waited > timeout_s:
                raise self._failure(f"it was not ready after {timeout_s:g} s")
            if waiting is not None:
                waiting(waited)
            with contextlib.suppress(queue.Empty):
                return lines.get(timeout=min(TICK_S, timeout_s))

    def _failure(self, otherwise: str) -> EngineError:
        reason = why_it_failed(self._log_tail()) or otherwise
        return EngineError(f"The embedded engine failed: {reason}.", hint=f"Log: {self.log_path}")

    def _log_tail(self) -> str:
        if self.log_path is None:
            return ""
        with self.log_path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            return log.read().decode("utf-8", "replace")

    def check(self) -> None:
        """Raise EngineError when the engine has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise self._failure(f"exit code {self._process.returncode}")

    def stop(self) -> None:
        """End the server within five seconds and remove its log; safe to call twice."""
        crashed = self._process is not None and self._process.poll() is not None
        self._end(keep_log=crashed)

    def _end(self, *, keep_log: bool) -> None:
        process, self._process = self._process, None
        if process is not None:
            _close(process, patience_s=0.0 if self.url is None else STOP_TIMEOUT_S)
        if self.log_path is not None and not keep_log:
            self.log_path.unlink(missing_ok=True)
            self.log_path = None
        self.url = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def why_it_failed(log: str) -> str | None:
    """The line of a llama.cpp log that names the reason, without time stamp and level.

    Args:
        log: the end of the log.

    Returns:
        A failed assertion, else the first line that looks like a cause, else the last error, else
        None.
    """
    lines = log.splitlines()
    aborts = [match["text"] for match in map(_ABORT.fullmatch, lines) if match]
    errors = [
        match["text"].strip(" .")
        for match in map(_LOG_LINE.fullmatch, lines)
        if match and match["level"] == "E"
    ]
    causes = [text for text in errors if _CAUSE.search(text)]
    return next(iter([*aborts, *causes[:1], *errors[-1:]]), None)


def _close(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Ask the child to end by closing its input; insist when it does not."""
    with contextlib.suppress(BrokenPipeError):
        _stream(process.stdin).close()
    try:
        process.wait(timeout=patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _stream(process.stdout).close()


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise EngineError("The embedded engine was started without its pipes.")
    return stream
