"""How closely the simulator keeps its plan: delay of every paced write, with starts spread or not.

    python benchmarks/simulator_precision.py [--streams 64] [--tokens 100]

Prompts take about 200 ms, steps 20 ms. Starts are spread over one step, or all at once. The reader
is a bare epoll loop in this process; delays are those that the simulator itself noted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEP_S = 0.02
SETTLE_S = 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=100)
    args = parser.parse_args()
    for spread in (True, False):
        load = os.getloadavg()[0]
        delays_ms = measured_ms(args.streams, args.tokens, spread=spread)
        if not delays_ms:
            sys.exit("no writes were noted")
        early = sum(delay < 0 for delay in delays_ms)
        marks = [
            delays_ms[min(int(q * len(delays_ms)), len(delays_ms) - 1)] for q in (0.5, 0.99, 1)
        ]
        print(
            f"{args.streams} streams, starts {'spread' if spread else 'at once'}: "
            f"write - plan p50 {marks[0]:.3f} ms, p99 {marks[1]:.3f} ms, max {marks[2]:.3f} ms, "
            f"{early} early of {len(delays_ms)}; host load {load:.2f}"
        )


def measured_ms(streams: int, tokens: int, *, spread: bool) -> list[float]:
    """Delays of all writes of text after their plan, ascending."""
    with tempfile.TemporaryDirectory() as folder:
        truth = Path(folder) / "truth.jsonl"
        server, port = started(streams, truth)
        try:
            read_streams(port, streams, tokens, spread_s=STEP_S if spread else 0.0)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=10)
        lines = truth.read_text().splitlines()
    writes = [write for line in lines for write in json.loads(line)["writes"] if write["tokens"]]
    return sorted((write["actual_ns"] - write["planned_ns"]) / 1e6 for write in writes)


def started(streams: int, truth: Path) -> tuple[subprocess.Popen[str], int]:
    """A simulator and its port."""
    words = ["simulate", "--prefill-tps", "700", "--decode-tps", str(1 / STEP_S), "--port", "0"]
    words += ["--slots", str(streams), "--truth", str(truth)]
    server = subprocess.Popen(
        [sys.executable, "-m", "twospeed", *words], stdout=subprocess.PIPE, text=True
    )
    line = server.stdout.readline() if server.stdout else ""
    found = re.search(r":(\d+)/v1", line)
    if found is None:
        sys.exit(f"the simulator did not start: {line!r}")
    return server, int(found[1])


def request(number: int, tokens: int) -> bytes:
    """A request whose prompt no other one shares."""
    text = f"{number} " + " ".join(f"story{number}" for _ in range(60))
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "stream": True}
    data = json.dumps(body).encode()
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%b"
        % (
            len(data),
            data,
        )
    )


def read_streams(port: int, streams: int, tokens: int, *, spread_s: float) -> None:
    """Send all requests and read until every stream has ended."""
    selector = selectors.DefaultSelector()
    socks = [socket.create_connection(("127.0.0.1", port)) for _ in range(streams)]
    bodies = [request(number, tokens) for number in range(streams)]
    time.sleep(SETTLE_S)
    begin = time.monotonic()
    for number, (sock, body) in enumerate(zip(socks, bodies, strict=True)):
        while time.monotonic() < begin + spread_s * number / streams:
            pass
        sock.sendall(body)
        sock.setblocking(False)  # noqa: FBT003
        selector.register(sock, selectors.EVENT_READ)
    left = streams
    while left:
        for key, _ in selector.select(30):
            data = key.fileobj.recv(65536)
            if not data or b"[DONE]" in data:
                selector.unregister(key.fileobj)
                left -= 1
    for sock in socks:
        sock.close()


if __name__ == "__main__":
    main()
