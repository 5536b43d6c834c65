"""Servers from a command line: started, found, ended with all they started, quoted in errors."""

from __future__ import annotations

import shlex
import sys
import urllib.request

import psutil
import pytest

from twospeed.records.errors import EndpointError, UsageError
from twospeed.sources.launched import LaunchedServer, words_of

SERVE = "python -m http.server {port} --bind 127.0.0.1"


def line(*code: str) -> str:
    return shlex.join([sys.executable, "-c", "\n".join(code), "{port}"])


def serving() -> str:
    return line(
        "import http.server, subprocess, sys",
        "subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'],",
        "                 stdin=subprocess.PIPE)",
        "port = int(sys.argv[1])",
        "http.server.HTTPServer(('127.0.0.1', port),",
        "                       http.server.SimpleHTTPRequestHandler).serve_forever()",
    )


def test_a_server_is_reachable_and_ends_with_its_children():
    with LaunchedServer(serving()).start() as server:
        assert urllib.request.urlopen(server.url).status == 200
        family = psutil.Process(server.pid)
        family = [family, *family.children(recursive=True)]
        assert len(family) >= 2
        assert server.start() is server
    _, alive = psutil.wait_procs(family, timeout=5)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
    assert server.url is None
    server.stop()


def test_one_that_ends_is_quoted():
    server = LaunchedServer(line("import sys", "print('loading')", "sys.exit('no such model')"))
    with pytest.raises(EndpointError, match="exit code 1") as caught:
        server.start()
    assert "no such model" in caught.value.hint
    assert server.pid is None


def test_one_that_never_listens_is_given_up():
    waited = []
    server = LaunchedServer(line("input() if False else __import__('time').sleep(60)"))
    with pytest.raises(EndpointError, match="nothing listened") as caught:
        server.start(timeout_s=0.3, waiting=waited.append)
    assert caught.value.hint == "It printed nothing."
    assert waited == sorted(waited)


def test_one_that_does_not_exist():
    with pytest.raises(EndpointError, match="Cannot start no-such-server-here"):
        LaunchedServer("no-such-server-here --port {port}").start()


@pytest.mark.parametrize("typed", ["", "llama-server --port 8080", "server 'open {port}"])
def test_lines_that_cannot_be_run(typed: str):
    with pytest.raises(UsageError, match="--command"):
        words_of(typed)


def test_the_port_may_stand_inside_a_word():
    assert words_of(SERVE)[3] == "{port}"
    assert words_of("serve --listen=127.0.0.1:{port}")[1].endswith("{port}")
