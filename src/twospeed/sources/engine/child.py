"""The process in which llama.cpp runs, apart from the one that measures it.

Run as `python -m twospeed.sources.engine.child`. Standard input: one line of JSON, the order; then
nothing, until its end says that the parent is gone. Standard output: one line of JSON, the address
or the failure. llama.cpp's log goes to standard error, which the parent made a file.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import threading
from types import ModuleType
from typing import Any

from twospeed.sources.engine.settings import apply

PR_SET_PDEATHSIG = 1
# A request in progress is given so long to reach the end of its batch.
CLEAN_END_S = 5.0


def main() -> int:
    """Start the server, say where it listens, stay until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when Ctrl-C ends the engine
    order = json.loads(sys.stdin.buffer.readline())
    reply = _take_stdout()
    if order["die_with_parent"]:
        _die_with_parent(order["parent"])
    watch = _ParentWatch()
    try:
        xllamacpp = importlib.import_module("xllamacpp")
        server = _start(order["settings"], xllamacpp)
    except (ImportError, AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        _say(reply, {"error": f"{type(error).__name__}: {error}"})
        return 1
    watch.ready = True
    _say(reply, {"address": server.listening_address, "gpus": _gpus(xllamacpp)})
    watch.wait()
    del server  # stops listening and frees the model
    watch.ended()
    return 0


def _start(settings: dict[str, Any], xllamacpp: ModuleType) -> Any:  # noqa: ANN401 (a C extension)
    params = xllamacpp.CommonParams()
    params.hostnames = ["127.0.0.1"]
    # Pages in the user's browser have no business here; llama.cpp would let any of them in.
    params.cors_origins = "http://127.0.0.1"
    params.cors_origins_explicit = True
    apply(settings, params, xllamacpp)
    return xllamacpp.Server(params)


def _gpus(xllamacpp: ModuleType) -> list[str]:
    """Names of the devices other than the processor that this llama.cpp can use."""
    kinds = xllamacpp.ggml_backend_dev_type
    gpus = {kind for kind in kinds if kind.name.endswith(("DEVICE_TYPE_GPU", "DEVICE_TYPE_IGPU"))}
    return [
        device["description"] for device in xllamacpp.get_device_info() if device["type"] in gpus
    ]


def _take_stdout() -> int:
    """Keep the answer line to ourselves: whatever llama.cpp prints goes to the log."""
    reply = os.dup(1)
    os.dup2(2, 1)
    return reply


def _say(reply: int, what: dict[str, object]) -> None:
    os.write(reply, json.dumps(what).encode() + b"\n")
    os.close(reply)


def _die_with_parent(parent: int) -> None:
    """Have Linux end this process with its parent, even when stuck inside llama.cpp."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was gone before the kernel knew our wish
        os._exit(1)


class _ParentWatch:
    """Waits for the end of standard input, which comes however the parent ends."""

    def __init__(self) -> None:
        self.ready = False
        """Set once there is a server to be ended in good order."""
        self._gone = threading.Event()
        self._ended = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while os.read(0, 4096):
            pass
        self._gone.set()
        if not self.ready or not self._ended.wait(CLEAN_END_S):
            os._exit(1)

    def wait(self) -> None:
        self._gone.wait()

    def ended(self) -> None:
        self._ended.set()


if __name__ == "__main__":
    sys.exit(main())
