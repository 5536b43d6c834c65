"""Our own client, and the least one that is possible."""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from client import PROMPT_TOKENS, Client, Task
from machine import NotRun
from stream import Stream, from_stamps

KERNEL, USER = ("--clock", "kernel"), ("--clock", "user")
SPREAD = ("--start", "spread")
SILENCE_S = 30


def own_clients() -> dict[str, Client]:
    """By name."""
    return {
        "twospeed": timed(*KERNEL),
        "twospeed-spread": timed(*KERNEL, *SPREAD),
        "twospeed-user": timed(*USER),
        "twospeed-user-spread": timed(*USER, *SPREAD),
        "twospeed-tls": timed(*KERNEL, "-k", tls=True),
        "epoll": Client(command=epoll_command, read=read_epoll, pairs=True),
    }


def timed(*options: str, tls: bool = False) -> Client:
    """`twospeed time`, with options."""
    command = partial(twospeed_command, options)
    return Client(command=command, read=read_twospeed, pairs=True, tls=tls)


def twospeed_command(options: tuple[str, ...], task: Task) -> list[str]:
    words = [sys.executable, "-m", "twospeed", "time", task.url, *options, "--json"]
    words += ["--prompt-tokens", str(PROMPT_TOKENS), "--output-tokens", str(task.tokens)]
    words += ["--concurrency", str(task.streams), "--requests", str(task.requests)]
    return [*words, "-o", str(task.folder / "out.json"), "--save", str(task.folder / "run.jsonl")]


def read_twospeed(task: Task) -> list[Stream]:
    lines = map(json.loads, (task.folder / "run.jsonl").read_text().splitlines())
    records = [line["value"] for line in lines if line.get("type") == "request"]
    return [twospeed_stream(record) for record in records if "error" not in record]


def twospeed_stream(record: dict[str, Any]) -> Stream:
    stamps_s = [arrival[0] for arrival in record["arrivals"]]
    later = [arrival[3] for arrival in record["arrivals"]]  # not the first one of its read
    shared = [one or following for one, following in zip(later, [*later[1:], False], strict=True)]
    return from_stamps(record["number"], stamps_s, shared=shared)


def epoll_command(task: Task) -> list[str]:
    wanted = {"streams": task.streams, "requests": task.requests, "tokens": task.tokens}
    told = json.dumps({**wanted, "port": int(task.url.rpartition(":")[2])})
    return [sys.executable, str(Path(__file__).parent), "--read", told]


def read_epoll(task: Task) -> list[Stream]:
    told = json.loads((task.folder / "client.log").read_text())
    return [from_stamps(sent, [at / 1e9 for at in stamps], sent / 1e9) for sent, stamps in told]


class Reader:
    """A bare epoll loop of one thread: a request a connection, and a stamp after each read."""

    def __init__(self, *, port: int, streams: int, requests: int, tokens: int) -> None:
        self._address = ("127.0.0.1", port)
        self._streams = streams
        self._requests = self._left = requests
        self._tokens = tokens
        self._selector = selectors.DefaultSelector()
        self._sent_ns: dict[socket.socket, int] = {}
        self._stamps_ns: dict[socket.socket, list[int]] = {}
        self._done: list[tuple[int, list[int]]] = []

    def run(self) -> list[tuple[int, list[int]]]:
        """Send all and read until every stream has ended: when each was sent, and its stamps."""
        socks = [socket.create_connection(self._address) for _ in range(self._streams)]
        for sock in socks:
            self._selector.register(sock, selectors.EVENT_READ)
        for sock in socks:
            self._send(sock)
        while len(self._done) < self._requests:
            ready = self._selector.select(SILENCE_S)
            if not ready:
                raise NotRun("the simulator fell silent")
            for key, _ in ready:
                self._read(key.fileobj)  # type: ignore[arg-type]
        return self._done

    def _send(self, sock: socket.socket) -> None:
        if not self._left:
            return
        self._left -= 1
        text = f"{self._left} " + " ".join(f"story{self._left}" for _ in range(60))
        body = {"messages": [{"role": "user", "content": text}], "stream": True}
        data = json.dumps({**body, "max_tokens": self._tokens}).encode()
        head = (
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n"
        )
        self._stamps_ns[sock] = []
        self._sent_ns[sock] = time.monotonic_ns()
        sock.sendall(head % len(data) + data)

    def _read(self, sock: socket.socket) -> None:
        data = sock.recv(65536)
        now_ns = time.monotonic_ns()
        if not data:
            raise NotRun("the simulator closed a connection")
        texts = data.count(b'"content":"') - data.count(b'"content":""')
        self._stamps_ns[sock] += [now_ns] * texts
        if b"[DONE]" in data:
            self._done.append((self._sent_ns[sock], self._stamps_ns[sock]))
            self._send(sock)
