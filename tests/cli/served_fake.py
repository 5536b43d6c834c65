"""The fake runtime as a program of its own, for commands that start servers."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def serving(step_s: float) -> str:
    """A command line that serves the fake runtime at the port it is told."""
    code = "\n".join(
        [
            "import sys, threading",
            f"sys.path.insert(0, {str(Path(__file__).parent)!r})",
            "import fake_runtime",
            "from http.server import ThreadingHTTPServer",
            f"ways = fake_runtime.FakeRuntime(step_s={step_s})",
            "class Talk(fake_runtime.Talk): pass",
            "Talk.ways = ways",
            "server = ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Talk)",
            "server.daemon_threads = True",
            "server.serve_forever()",
        ]
    )
    return shlex.join([sys.executable, "-c", code, "{port}"])
