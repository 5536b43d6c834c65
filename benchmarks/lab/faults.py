"""What the lab does to a machine, to a server or to the way between: one thing at a time."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from scenario import engine

from twospeed.sources.engine.engine import Engine
from twospeed.sources.engine.model import fetch_model

Message = dict[str, str]
HOG = "while True: pass"
LONGEST_REQUEST_S = 180


@contextlib.contextmanager
def hogs(number: int) -> Iterator[None]:
    """Other programs that keep so many processors busy."""
    children = [subprocess.Popen([sys.executable, "-c", HOG]) for _ in range(number)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def chat(url: str, messages: list[Message], tokens: int, **more: object) -> dict[str, Any]:
    """One answer, not streamed."""
    body = {"messages": messages, "max_tokens": tokens, "ignore_eos": True, **more}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=LONGEST_REQUEST_S) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def words(count: int, seed: int) -> str:
    """Plain words, the same for a seed and unlike those of another."""
    step = 7 + seed
    return " ".join(f"river{(number * step + seed) % 997}" for number in range(count // 4))


def turns(
    url: str,
    seed: int,
    *,
    number: int,
    tokens: int = 400,
    answer_tokens: int = 24,
    head: Callable[[int], str] | None = None,
    between: Callable[[int], None] | None = None,
    **more: object,
) -> None:
    """A conversation that grows.

    Args:
        url: the server.
        seed: of its words.
        number: of turns.
        tokens: of the first message, about.
        answer_tokens: of each answer.
        head: what stands before the first message at each turn.
        between: done after each turn.
        more: members of each request.
    """
    messages: list[Message] = [{"role": "user", "content": words(tokens, seed)}]
    for turn in range(number):
        sent = list(messages)
        if head is not None:
            sent[0] = {**sent[0], "content": f"{head(turn)} {sent[0]['content']}"}
        answer = chat(url, sent, answer_tokens, **more)["choices"][0]["message"]["content"]
        messages += [
            {"role": "assistant", "content": answer or "yes"},
            {"role": "user", "content": words(40, seed + turn + 50)},
        ]
        if between is not None:
            between(turn)


@contextlib.contextmanager
def other_client(url: str, *, prompt_tokens: int, answer_tokens: int) -> Iterator[None]:
    """Someone who asks again and again while the block runs."""
    over = threading.Event()

    def ask() -> None:
        seed = 1000
        while not over.is_set():
            seed += 1
            message = {"role": "user", "content": words(prompt_tokens, seed)}
            with contextlib.suppress(OSError, ValueError):
                chat(url, [message], answer_tokens, cache_prompt=False)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    time.sleep(0.2)
    try:
        yield
    finally:
        over.set()
        thread.join(LONGEST_REQUEST_S)


@contextlib.contextmanager
def squeezed(*pairs: str, room_bytes: int = 60 * 2**20) -> Iterator[Engine]:
    """An engine with hardly room for its weights: it must read them from storage over and over.

    A memory group of the kernel (version 1) holds it from before it loads a private copy of the
    model, so that the pages count as its own; after the load the limit is lowered.

    Args:
        pairs: settings of the engine.
        room_bytes: left for pages of the model beside what cannot be dropped.

    Raises:
        OSError: no such group can be made here (it takes root and Linux).
    """
    home = _MEMORY_GROUPS / own_memory_group().lstrip("/") / "cgroup.procs"
    group = _MEMORY_GROUPS / f"twospeed-lab-{os.getpid()}"
    group.mkdir()
    try:
        with tempfile.TemporaryDirectory() as folder:
            model = _private_copy(Path(folder))
            (group / "cgroup.procs").write_text(str(os.getpid()))
            with engine(*pairs, model=model) as running:
                home.write_text(str(os.getpid()))
                kept_bytes = _counted(group / "memory.stat")["rss"]
                (group / "memory.limit_in_bytes").write_text(str(kept_bytes + room_bytes))
                yield running
    finally:
        home.write_text(str(os.getpid()))
        _removed(group)


_MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")


def own_memory_group() -> str:
    """The memory group of this process."""
    lines = Path("/proc/self/cgroup").read_text("ascii").splitlines()
    return next(line.split(":", 2)[2] for line in lines if ":memory:" in line)


def _private_copy(folder: Path) -> Path:
    """The model as a file of its own of which nothing is in memory."""
    path = folder / "model.gguf"
    shutil.copyfile(fetch_model(), path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


def _counted(path: Path) -> dict[str, int]:
    words = (line.split() for line in path.read_text("ascii").splitlines())
    return {name: int(count) for name, count in words}


def _removed(group: Path, *, tries: int = 20) -> None:
    """Remove a group, which takes a moment after its last process ended."""
    for _ in range(tries):
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.2)


NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/a; uwsgi_temp_path {folder}/b; scgi_temp_path {folder}/c;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {server}; proxy_http_version 1.1; proxy_set_header Host $proxy_host;
      proxy_ignore_headers X-Accel-Buffering; gzip on; gzip_types text/event-stream;
    }}
  }}
}}
"""
"""It compresses what browsers ask for compressed, and holds it back until a buffer is full."""


@contextlib.contextmanager
def nginx(server: str) -> Iterator[str]:
    """A real nginx before a server; yields its URL.

    Raises:
        SystemExit: it is not installed.
    """
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        raise SystemExit("nginx is not installed (Debian, Ubuntu: apt install nginx-light)")
    with tempfile.TemporaryDirectory() as folder:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        path = Path(folder) / "nginx.conf"
        path.write_text(NGINX.format(folder=folder, port=port, server=server), "utf-8")
        words = [program, "-c", str(path), "-p", folder, "-e", f"{folder}/error.log"]
        running = subprocess.Popen(words)
        try:
            _await_port(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()
            running.wait()


def _await_port(port: int, *, within_s: float = 10.0) -> None:
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.5):
            return
        time.sleep(0.05)


class Way:
    """A way to a server that holds bytes back: each piece for a time, or many at once.

    Args:
        port: of the server on this machine.
        delay_s: every piece arrives so much later.
        batch_s: what came within so long is released together.
    """

    def __init__(self, port: int, *, delay_s: float = 0.0, batch_s: float = 0.0) -> None:
        self._port = port
        self._delay_s = delay_s
        self._batch_s = batch_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._over = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        """Both directions of one connection until either ends."""
        server = socket.create_connection(("127.0.0.1", self._port))
        for sock in (client, server):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        other = {client: server, server: client}
        due: list[tuple[float, socket.socket, bytes]] = []
        with selectors.DefaultSelector() as selector, client, server:
            selector.register(client, selectors.EVENT_READ)
            selector.register(server, selectors.EVENT_READ)
            open_until = float("inf")
            while time.monotonic() < open_until and not self._over.is_set():
                for key, _ in selector.select(0.005 if due else 0.1):
                    sock: socket.socket = key.fileobj  # type: ignore[assignment]
                    try:
                        data = sock.recv(65536)
                    except OSError:
                        data = b""
                    if not data:
                        selector.unregister(sock)
                        open_until = time.monotonic() + self._delay_s + self._batch_s + 0.05
                        continue
                    due.append((self._release_s(sock is server), other[sock], data))
                due = _released(due)

    def _release_s(self, from_server: bool) -> float:
        now_s = time.monotonic()
        if from_server and self._batch_s:
            return (now_s // self._batch_s + 1) * self._batch_s
        return now_s + self._delay_s


def _released(
    due: list[tuple[float, socket.socket, bytes]],
) -> list[tuple[float, socket.socket, bytes]]:
    """Send what is due; what is left."""
    now_s = time.monotonic()
    left = []
    for release_s, sock, data in due:
        if release_s > now_s:
            left.append((release_s, sock, data))
        else:
            with contextlib.suppress(OSError):
                sock.sendall(data)
    return left
