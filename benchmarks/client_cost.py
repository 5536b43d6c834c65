"""What reading a stream costs the client: processor time per token, and memory.

    python benchmarks/client_cost.py [--streams 64] [--tokens 500] [--clock user] [--profile FILE]

A child process writes prepared chunks of about 300 bytes, one a token, at steps of 20 ms, over
loopback. Two more read all streams at once through `twospeed`: whole answers, and one token each.
The cost of a token is the difference of their processor times over the tokens between them,
parsing included; memory is the peak above what the process held before the streams began.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field

STEP_NS = 20_000_000
CHUNK_BYTES = 300
LONGEST_RUN_S = 120
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: keep-alive\r\n\r\n"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--clock", choices=("kernel", "user"), default="kernel")
    parser.add_argument("--start", choices=("together", "spread"), default="together")
    parser.add_argument("--profile", help="write the profile of the whole run there")
    parser.add_argument("--part", choices=("write", "read"), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part == "write":
        Writer().run()
    elif args.part == "read":
        print(json.dumps(read_streams(args)))
    else:
        compare(args)


def compare(args: argparse.Namespace) -> None:
    """Run the writer and both readers, and say what a token costs."""
    writer = subprocess.Popen([sys.executable, __file__, "--part", "write"], stdout=subprocess.PIPE)
    try:
        port = int(writer.stdout.readline()) if writer.stdout else 0
        short = reader_of(args, port, 1)
        whole = reader_of(args, port, args.tokens)
    finally:
        writer.kill()
        writer.wait()
    tokens = args.streams * (args.tokens - 1)
    cost_us = (whole["cpu_s"] - short["cpu_s"]) / tokens * 1e6
    print(
        f"{args.streams} streams of {args.tokens} tokens, {args.clock} clock, started {args.start}:"
        f" {cost_us:.1f} us of processor time per token,"
        f" peak {whole['peak_bytes'] / 1e6:.1f} MB above start-up "
        f"({whole['coalesced']} of {whole['events']} events coalesced, {whole['failed']} failed, "
        f"{whole['wall_s']:.1f} s); host load {os.getloadavg()[0]:.2f}"
    )


def reader_of(args: argparse.Namespace, port: int, tokens: int) -> dict[str, float]:
    """What one reading process measured about itself."""
    words = ["--part", "read", "--port", str(port), "--streams", str(args.streams)]
    words += ["--tokens", str(tokens), "--clock", args.clock, "--start", args.start]
    if args.profile and tokens > 1:
        words += ["--profile", args.profile]
    done = subprocess.run(
        [sys.executable, __file__, *words],
        stdout=subprocess.PIPE,
        check=True,
        timeout=LONGEST_RUN_S,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def read_streams(args: argparse.Namespace) -> dict[str, float]:
    """Read all streams at once and say what that took."""
    import asyncio  # noqa: PLC0415  (the writer does without)
    import cProfile  # noqa: PLC0415

    from twospeed.sources.live.stream_loop import stream_loop  # noqa: PLC0415

    with asyncio.Runner(loop_factory=stream_loop) as runner:
        if not args.profile:
            return runner.run(measured(args))
        profile = cProfile.Profile()
        found = profile.runcall(runner.run, measured(args))
        profile.dump_stats(args.profile)
        return found


async def measured(args: argparse.Namespace) -> dict[str, float]:
    """One load over the endpoint."""
    from twospeed.records.request_record import Probe, RequestRecord  # noqa: PLC0415
    from twospeed.sources.live.endpoint import Endpoint  # noqa: PLC0415
    from twospeed.sources.live.load import Load, ready_load  # noqa: PLC0415

    records: list[RequestRecord] = []
    probe = Probe(step="curve", prompt_tokens=100, output_tokens=args.tokens)
    load = Load(probe=probe, requests=args.streams, concurrency=args.streams, start=args.start)
    url = f"http://127.0.0.1:{args.port}"
    async with await Endpoint.open(url, seed=1, stamped_by=args.clock) as endpoint:
        held = status_bytes("VmRSS")
        ready = await ready_load(endpoint, load)
        wall_s, before_s = time.monotonic(), time.process_time()
        await ready.run(records.append)
        cpu_s = time.process_time() - before_s
    arrivals = [arrival for record in records for arrival in record.arrivals]
    return {
        "cpu_s": cpu_s,
        "wall_s": time.monotonic() - wall_s,
        "peak_bytes": status_bytes("VmHWM") - held,
        "events": len(arrivals),
        "coalesced": sum(arrival.coalesced for arrival in arrivals),
        "failed": sum(record.error is not None for record in records),
    }


def status_bytes(name: str) -> int:
    """A size of this process, by the kernel."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
        line = next(line for line in status if line.startswith(name))
    return int(line.split()[1]) * 1024


@dataclass(slots=True)
class Stream:
    """One connection: what it asked for, and what is still to be written."""

    sock: socket.socket
    asked: bytearray = field(default_factory=bytearray)
    left: int = 0


class Writer:
    """A server of one thread that answers every chat with as many prepared chunks as asked for."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.due: list[tuple[int, int, Stream]] = []
        self.turn = 0
        self.chunks = [framed(event(f" word{number % 10}")) for number in range(10)]

    def run(self) -> None:
        """Serve until killed."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        listener.setblocking(False)  # noqa: FBT003
        self.selector.register(listener, selectors.EVENT_READ, None)
        print(listener.getsockname()[1], flush=True)
        while True:
            wait_s = max(0.0, (self.due[0][0] - time.monotonic_ns()) / 1e9) if self.due else None
            for key, _ in self.selector.select(wait_s):
                self.accept(listener) if key.data is None else self.hear(key.data)
            now_ns = time.monotonic_ns()
            while self.due and self.due[0][0] <= now_ns:
                due_ns, _, stream = heapq.heappop(self.due)
                self.write(stream, due_ns)

    def accept(self, listener: socket.socket) -> None:
        """Take one connection."""
        sock, _ = listener.accept()
        sock.setblocking(False)  # noqa: FBT003
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(sock, selectors.EVENT_READ, Stream(sock))

    def hear(self, stream: Stream) -> None:
        """Read, and answer once a request is complete."""
        data = stream.sock.recv(65536)
        if not data:
            self.selector.unregister(stream.sock)
            stream.sock.close()
            return
        stream.asked += data
        head, mark, body = bytes(stream.asked).partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line[:15] == b"Content-Length:"), 0
        )
        if not mark or len(body) < length:
            return
        stream.asked.clear()
        if head.startswith(b"POST /v1/chat/completions"):
            stream.left = json.loads(body)["max_tokens"]
            stream.sock.send(HEAD)
            self.plan(stream, time.monotonic_ns() + STEP_NS)
        else:
            stream.sock.send(models() if head.startswith(b"GET /v1/models ") else missing())

    def plan(self, stream: Stream, due_ns: int) -> None:
        """Write next at that moment."""
        self.turn += 1
        heapq.heappush(self.due, (due_ns, self.turn, stream))

    def write(self, stream: Stream, due_ns: int) -> None:
        """Write one chunk, or the end."""
        stream.left -= 1
        if stream.left < 0:
            stream.sock.send(ENDING)
            return
        stream.sock.send(self.chunks[stream.left % 10])
        self.plan(stream, due_ns + STEP_NS)


def event(text: str, **other: object) -> bytes:
    """A chunk as the usual servers write it, filled up to its size by the name of the model."""
    choice = {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}
    value = {
        "id": "chatcmpl-8f14e45fceea167a5a36dedd4bea2543",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": "/models/quantized/Some-Model-8B-Instruct-Q4_K_M.gguf",
        "choices": [choice],
        "usage": None,
        **other,
    }
    spare = CHUNK_BYTES - len(json.dumps(value, separators=(",", ":"))) - 8
    value["model"] += "x" * max(spare, 0)
    return f"data: {json.dumps(value, separators=(',', ':'))}\n\n".encode()


def framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer(status: str, value: object) -> bytes:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


def models() -> bytes:
    return answer("200 OK", {"object": "list", "data": [{"id": "some-model", "object": "model"}]})


def missing() -> bytes:
    return answer("404 Not Found", {"error": {"message": "Not Found"}})


COUNTS = {"prompt_tokens": 100, "completion_tokens": 500}
ENDING = framed(event("", choices=[], usage=COUNTS)) + framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"

if __name__ == "__main__":
    main()
