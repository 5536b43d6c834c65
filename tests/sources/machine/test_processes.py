"""Which process serves, what it shows, and what of it must stay hidden."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from twospeed.sources.machine.processes import listener_pid, process_facts


@pytest.fixture
def server():
    """A process that listens, and says where."""
    code = (
        "import socket,sys; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen();"
        "print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, "--api-key", "s3cret", "--token=s3cret", "--port", "1"]
    env = {**os.environ, "HF_TOKEN": "s3cret"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env) as process:
        yield process, int(process.stdout.readline())
        process.stdin.close()


def test_the_process_behind_a_port(server):
    process, port = server
    assert listener_pid(port) == process.pid
    facts = process_facts(process.pid)
    assert facts.cwd == str(Path.cwd())
    assert facts.threads >= 1
    assert facts.rss_bytes > 1_000_000
    assert facts.cmdline[-5:] == ("--api-key", "***", "--token=***", "--port", "1")


def test_nobody_behind_a_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        assert listener_pid(sock.getsockname()[1]) is None, "bound, but not listening"


def test_a_process_that_is_gone():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert process_facts(process.pid) is None


def test_the_environment_is_never_read(server):
    process, _ = server
    assert "s3cret" not in repr(process_facts(process.pid))
