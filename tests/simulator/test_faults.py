"""What each fault does to planned writes; live sockets are in test_loop.py."""

from __future__ import annotations

import gzip
import zlib

import pytest
from telling import CHAT, user

from twospeed.cli.simulate import FAULTS as NAMED_IN_HELP
from twospeed.simulator.faults import FAULTS, Fault, faults_of

BODY = user("word " * 92 + "word", stream=True, max_tokens=6)
WITH_USAGE = {**BODY, "stream_options": {"include_usage": True}}
PREFILL_S = 0.101
SPEAK = ("openai", "llama-server", "ollama", "vllm", "lmstudio", "mlx", "transformers")


def told(server, fault: str, speak: str = "openai", body=BODY, **settings):
    s = server(speak, faults=(Fault.parsed(fault),), **settings)
    more = {"model": s.simulation.facts.model} if speak == "ollama" else {}
    return s.ask(CHAT, {**body, **more})


def test_parsing():
    assert Fault.parsed("stall") == Fault("stall")
    assert Fault.parsed("404:3") == Fault("404", 3)
    for wrong in ("nonsense", "stall:", "stall:0", "stall:x", ""):
        with pytest.raises(ValueError):
            Fault.parsed(wrong)


def test_help_names_every_fault():
    words = NAMED_IN_HELP.replace(";", ",").replace("\n", " ").split(",")
    assert {word.strip() for word in words} >= set(FAULTS)


def test_counted_faults_meet_only_the_first_requests():
    faults = (Fault("stall"), Fault("404", 2))
    assert faults_of(faults, 1) == {"stall", "404"}
    assert faults_of(faults, 2) == {"stall", "404"}
    assert faults_of(faults, 3) == {"stall"}
    assert faults_of(faults, None) == {"stall"}


@pytest.mark.parametrize("speak", SPEAK)
def test_buffered_brings_everything_at_the_end(server, speak):
    found = told(server, "buffered", speak)
    [write] = found.writes
    assert write.at_ns / 1e9 == pytest.approx(PREFILL_S + 0.05)
    assert (write.tokens, write.end) == (6, True)
    whole = "".join(found.job.answer)
    assert whole.split()[-1] in found.body.decode()


def test_early_role_comes_at_once_in_every_dialect(server):
    for speak in ("openai", "llama-server", "vllm"):
        first = told(server, "early-role", speak).writes[0]
        assert first.at_ns == 0
        assert b'"role":"assistant"' in first.chunks[0]
        assert first.tokens == 0


def test_role_only_first_comes_before_the_text(server):
    found = told(server, "role-only-first")
    kinds = [write.kind for write in found.writes]
    assert kinds[:3] == ["head", "role", "text"]
    assert found.writes[1].at_ns == 0


@pytest.mark.parametrize("speak", SPEAK)
def test_progress_comes_during_prefill_and_holds_no_text(server, speak):
    found = told(server, "progress", speak)
    times = found.times_s("progress")
    assert len(times) >= 10
    assert all(0 <= at_s <= PREFILL_S for at_s in times)
    assert found.times_s("text")[0] == pytest.approx(PREFILL_S)


@pytest.mark.parametrize("speak", SPEAK)
def test_no_usage_hides_every_count(server, speak):
    found = told(server, "no-usage", speak, WITH_USAGE, report_cached=True, report_times=True)
    for word in (b"usage", b"timings", b"metrics", b"_count", b"stats", b"duration"):
        assert word not in found.body


def test_pings_fill_the_silence(server):
    found = told(server, "pings")
    assert found.times_s("ping") == pytest.approx([0.1])
    slow = server(faults=(Fault("pings"),)).ask(
        CHAT, user("word " * 492, stream=True, max_tokens=2)
    )
    pings = slow.times_s("ping")
    assert pings == pytest.approx([0.1 * k for k in range(1, len(pings) + 1)])
    assert len(pings) == 5


@pytest.mark.parametrize("speak", ["openai", "llama-server", "ollama", "vllm", "transformers"])
def test_split_characters_come_in_two_writes(server, speak):
    body = {**BODY, "max_tokens": 40}
    found = told(server, "split-utf8", speak, body)
    parts = [i for i, write in enumerate(found.writes) if write.kind == "part"]
    assert parts
    for i in parts:
        head, tail = found.writes[i], found.writes[i + 1]
        with pytest.raises(UnicodeDecodeError):
            head.chunks[0].decode()
        (head.chunks[0] + tail.chunks[0]).decode()
        assert tail.at_ns - head.at_ns == 2_000_000
        assert (head.tokens, tail.tokens) == (0, 1)


@pytest.mark.parametrize("speak", SPEAK)
def test_errors_end_the_stream_in_the_middle(server, speak):
    found = told(server, "error-mid-stream", speak)
    assert found.writes[-1].kind == "error"
    assert found.writes[-1].end
    assert sum(write.tokens for write in found.writes) == 3
    assert b"simulated failure" in found.writes[-1].chunks[0]


def test_a_stall_delays_what_follows(server):
    found = told(server, "stall", stall_s=7.0)
    times = found.times_s("text")
    assert times[3] - times[2] == pytest.approx(7.01)
    assert times[4] - times[3] == pytest.approx(0.01)


@pytest.mark.parametrize("stream", [True, False])
def test_a_reset_ends_it(server, stream):
    found = told(server, "abrupt-close", body={**BODY, "stream": stream})
    assert found.writes[-1].reset
    assert sum(write.tokens for write in found.writes if not write.reset) == (3 if stream else 0)


@pytest.mark.parametrize("speak", SPEAK)
def test_garbage_is_no_json(server, speak):
    found = told(server, "garbage-json", speak)
    [garbage] = [write for write in found.writes if write.kind == "garbage"]
    assert garbage.chunks[0].count(b"{") > garbage.chunks[0].count(b"}")
    assert sum(write.tokens for write in found.writes) == 6


def frames(server, fault: str, stream: bool) -> tuple[bytes, bytes]:
    """Head and body as they go on the wire."""
    s = server(faults=(Fault.parsed(fault),))
    handled = s.simulation.handle(s.request(CHAT, {**BODY, "stream": stream}), 0, 0)
    first = s.simulation.greeting(handled, 0)
    raw = b"" if first is None else handled.framer.frame(first)
    s.simulation.bench.start_next()
    for write in s.simulation.writes(handled):
        raw += handled.framer.frame(write)
        if write.end:
            break
    head, _, body = raw.partition(b"\r\n\r\n")
    return head, body


def unchunked(body: bytes) -> bytes:
    found = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        found, body = found + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return found


def test_crlf_ends_every_line(server):
    _, body = frames(server, "crlf", stream=True)
    events = unchunked(body)
    assert events.count(b"\n") == events.count(b"\r\n") > 10


def test_gzip_streams_event_by_event(server):
    head, body = frames(server, "gzip", stream=True)
    assert b"Content-Encoding: gzip" in head
    assert gzip.decompress(unchunked(body)).endswith(b"data: [DONE]\n\n")
    first_events = unchunked(body)[:300]
    assert b"data: " in zlib.decompressobj(31).decompress(first_events)


def test_gzip_of_a_whole_answer(server):
    head, body = frames(server, "gzip", stream=False)
    assert f"Content-Length: {len(body)}".encode() in head
    assert gzip.decompress(body).startswith(b"{")


def test_http10_has_no_chunks(server):
    head, body = frames(server, "http10", stream=True)
    assert head.startswith(b"HTTP/1.0 200")
    assert b"chunked" not in head
    assert b"Connection: close" in head
    assert body.startswith(b"data: ")


@pytest.mark.parametrize("name", ["404", "429", "500"])
def test_statuses_only_meet_requests_for_text(server, name):
    s = server(faults=(Fault(name),))
    assert s.ask(CHAT, BODY).status == int(name)
    assert s.ask("/v1/models").status == 200


def test_without_a_key_everything_is_refused_but_what_is_open(server):
    s = server(faults=(Fault("401"),))
    assert [s.ask("/v1/models").status, s.ask(CHAT, BODY).status] == [401, 401]
    llama = server("llama-server", faults=(Fault("401"),))
    assert [llama.ask(path).status for path in ("/health", "/v1/models", "/props")] == [
        200,
        200,
        401,
    ]


def test_a_starting_server_is_ready_after_its_load(server):
    s = server("llama-server", faults=(Fault("503-then-ready"),), load_s=3.0)
    early = s.ask("/health", at_ns=2_900_000_000)
    assert early.status == 503
    assert early.json["error"]["message"] == "Loading model"
    assert s.ask("/health", at_ns=3_000_000_000).status == 200
    assert s.ask(CHAT, BODY, at_ns=3_000_000_000).job.load_ns == 0


def test_a_page_in_place_of_an_answer(server):
    page = server(faults=(Fault("html"),)).ask(CHAT, BODY)
    assert page.status == 200
    assert b"text/html" in page.head
    assert page.body.startswith(b"<!DOCTYPE html>")
