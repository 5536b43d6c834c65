"""What can go wrong on purpose: which faults there are, and what each does to planned writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from twospeed.simulator.dialect import Voice
from twospeed.simulator.exchange import Write
from twospeed.simulator.job import Job

FAULTS = {
    "buffered": "the whole stream comes at its end, as from a proxy that buffers",
    "early-role": "head and a chunk with only the role come at once",
    "role-only-first": "a chunk with only the role comes at the start of prefill",
    "progress": "chunks without text come during prefill",
    "no-usage": "no token counts and no times anywhere",
    "crlf": "lines end with CR LF",
    "pings": "comments (or empty lines) come every 100 ms",
    "split-utf8": "characters of several bytes are cut across packets",
    "garbage-json": "an event in the middle is cut off",
    "error-mid-stream": "the stream ends in the middle with an error",
    "stall": "nothing comes for a while in the middle (--stall-s)",
    "abrupt-close": "the connection is reset in the middle",
    "silent-close": "the connection closes after every answer without saying so",
    "gzip": "bodies are compressed",
    "http10": "answers in HTTP/1.0; bodies end with the connection",
    "html": "a web page comes in place of an answer, with status 200",
    "401": "refused: no key",
    "404": "refused: no such model",
    "429": "refused: too many requests",
    "500": "refused: internal error",
    "503-then-ready": "refused while the model loads (--load-s, else 2 s, from the start)",
}
STATUS_FAULTS = {"404": 404, "429": 429, "500": 500}

PING_NS = 100_000_000
SPLIT_NS = 2_000_000
"""Between the halves of a character: long enough that no reader sees them at once."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault and how many requests for text it meets; None means all."""

    name: str
    requests: int | None = None

    @classmethod
    def parsed(cls, written: str) -> Fault:
        """From `NAME` or `NAME:N`.

        Raises:
            ValueError: there is no such fault, or N is no number above zero.
        """
        name, colon, count = written.partition(":")
        if name not in FAULTS:
            raise ValueError(f"there is no fault {name!r}")
        if not colon:
            return cls(name)
        if not (count.isascii() and count.isdigit() and int(count) > 0):
            raise ValueError(f"{count!r} is no number of requests")
        return cls(name, int(count))


def faults_of(faults: Iterable[Fault], request: int | None) -> frozenset[str]:
    """Names of the faults that a request meets.

    Args:
        faults: all of them.
        request: its number among requests for text, from 1; None for any other request, which
            only meets faults that are not counted.
    """
    return frozenset(
        fault.name
        for fault in faults
        if fault.requests is None or (request is not None and request <= fault.requests)
    )


def faulty(writes: Iterator[Write], job: Job, voice: Voice, stall_s: float) -> Iterator[Write]:
    """The writes of an answer after its faults have had their way with them."""
    if job.asked.stream:
        writes = _broken_in_the_middle(writes, job, voice, stall_s)
        if "pings" in job.faults:
            writes = _with_pings(writes, job, voice)
        if "split-utf8" in job.faults:
            writes = _split(writes)
        if "buffered" in job.faults:
            writes = _buffered(writes)
    elif "abrupt-close" in job.faults:
        writes = (replace(write, reset=True) for write in writes)
    return writes


def _broken_in_the_middle(
    writes: Iterator[Write], job: Job, voice: Voice, stall_s: float
) -> Iterator[Write]:
    """Garbage, stall, error and reset, each after half of the tokens."""
    delay_ns, told, passed = 0, 0, False
    for write in writes:
        late = replace(write, at_ns=write.at_ns + delay_ns)
        told += write.tokens
        yield late
        if passed or 2 * told < job.output_tokens or not told:
            continue
        passed = True
        if "garbage-json" in job.faults:
            yield Write(late.at_ns, "garbage", voice.garbage())
        if "stall" in job.faults:
            delay_ns = round(1e9 * stall_s)
        if "error-mid-stream" in job.faults:
            yield Write(late.at_ns, "error", voice.failure("simulated failure"), end=True)
            return
        if "abrupt-close" in job.faults:
            yield Write(late.at_ns, "reset", reset=True)
            return


def _with_pings(writes: Iterator[Write], job: Job, voice: Voice) -> Iterator[Write]:
    """A ping whenever nothing has come for a while, from the moment that there is a slot."""
    last_ns = job.slot_ns
    for write in writes:
        while last_ns + PING_NS < write.at_ns:
            last_ns += PING_NS
            yield Write(last_ns, "ping", voice.ping())
        last_ns = write.at_ns
        yield write


def _split(writes: Iterator[Write]) -> Iterator[Write]:
    """Cut every write within its first character of several bytes."""
    for write in writes:
        data = b"".join(write.chunks)
        place = next((i for i, byte in enumerate(data) if byte >= 0x80), None)
        if place is None:
            yield write
            continue
        yield Write(write.at_ns, "part", [data[: place + 1]])
        rest = [data[place + 1 :]]
        yield replace(write, at_ns=write.at_ns + SPLIT_NS, chunks=rest)


def _buffered(writes: Iterator[Write]) -> Iterator[Write]:
    """Everything at the end, in one write."""
    held = list(writes)
    last = held[-1]
    chunks = [b"".join(chunk for write in held for chunk in write.chunks)]
    tokens = sum(write.tokens for write in held)
    yield Write(last.at_ns, "buffered", chunks, tokens, end=last.end, reset=last.reset)
