"""Recorded responses and ways to feed them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from twospeed.wire.dialects import read_response
from twospeed.wire.http_response import ResponseReader
from twospeed.wire.reading import StreamReading

# A shared machine is at times slow: that is no finding about this code.
settings.register_profile("wire", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("wire")

Reads = list[tuple[int, bytes]]

_MARK = re.compile(rb"### \+([\d.]+)ms (\d+)B\n")
_DIALECTS = {
    "/v1/chat/completions": "openai_chat",
    "/v1/completions": "openai_completions",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic_messages",
    "/completion": "llama_native",
}


@dataclass(frozen=True)
class Capture:
    """What a real runtime sent, read by read; ids and prompts shortened, frames recomputed."""

    name: str
    dialect: str
    reads: Reads

    @property
    def raw(self) -> bytes:
        return b"".join(data for _, data in self.reads)


class Wire:
    """Turns bytes into readers and readings."""

    @staticmethod
    def reader(reads: Iterable[tuple[int, bytes]], *, closed: bool = True) -> ResponseReader:
        reader = ResponseReader()
        at_ns = 0
        for at_ns, data in reads:
            reader.feed(data, at_ns)
        if closed:
            reader.end_of_input(at_ns + 1_000)
        return reader

    @staticmethod
    def cut(data: bytes, cuts: Iterable[int]) -> Reads:
        edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
        pieces = [data[a:b] for a, b in pairwise(edges)]
        return [(1_000 * number, piece) for number, piece in enumerate(pieces, 1)]

    @staticmethod
    def response(body: bytes, content_type: str = "text/event-stream", status: int = 200) -> bytes:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def read(self, dialect: str, *bodies: bytes, **how: Any) -> StreamReading:
        """Reading of a response whose body comes in the given pieces, one read each."""
        whole = self.response(b"".join(bodies), **how)
        head = len(whole) - sum(map(len, bodies))
        reads, at = [(0, whole[:head])], head
        for number, body in enumerate(bodies, 1):
            reads.append((number * 1_000, whole[at : at + len(body)]))
            at += len(body)
        return read_response(dialect, self.reader(reads))

    @staticmethod
    def said(reading: StreamReading) -> dict[str, Any]:
        """Everything in a reading that must not depend on how its bytes were cut."""
        return {
            "text": [(event.kind, event.text) for event in reading.text],
            "finish": reading.finish_reason,
            "usage": reading.usage,
            "timings": reading.timings,
            "progress": [(p.processed, p.total, p.cached) for p in reading.progress],
            "stages": [(stage.name, stage.progress_frac) for stage in reading.stages],
            "keepalives": [text for _, text in reading.keepalives],
            "empty": reading.empty_events,
            "model": reading.model,
            "done": reading.done,
            "error": reading.error,
        }

    @staticmethod
    def stamps(reading: StreamReading) -> list[int]:
        return [event.at_ns for event in reading.text]


def load(path: Path) -> Capture:
    raw = path.read_bytes()
    reads: Reads = []
    found = _MARK.search(raw)
    while found:
        end = found.end() + int(found[2])
        reads.append((round(float(found[1]) * 1e6), raw[found.end() : end]))
        found = _MARK.search(raw, end)
    request_path = raw.split(b"\n", 1)[0].split()[2].decode()
    return Capture(path.stem, _DIALECTS[request_path], reads)


CAPTURES = {
    path.stem: load(path) for path in sorted((Path(__file__).parent / "captures").glob("*.txt"))
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "capture" in metafunc.fixturenames:
        metafunc.parametrize("capture", CAPTURES.values(), ids=CAPTURES.keys())


@pytest.fixture(scope="session")
def wire() -> Wire:
    return Wire()


@pytest.fixture(scope="session")
def captured() -> Callable[[str], tuple[StreamReading, ResponseReader]]:
    """Reading of a recorded response, fed read by read as it came."""

    def get(name: str) -> tuple[StreamReading, ResponseReader]:
        capture = CAPTURES[name]
        reader = Wire.reader(capture.reads)
        return read_response(capture.dialect, reader), reader

    return get
