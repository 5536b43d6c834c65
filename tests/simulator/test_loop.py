"""The simulator on loopback: what clients see against the truth that it tells."""

from __future__ import annotations

import gzip
import ssl
from functools import partial
from itertools import pairwise
from shutil import which
from subprocess import run

import pytest
from telling import CHAT, user

from twospeed.records.errors import InputError, UsageError
from twospeed.simulator.faults import Fault
from twospeed.simulator.listening import listening
from twospeed.simulator.tls import Tls, context_of

WORDS = "word " * 92 + "word"  # 101 tokens with their template
MS = 1_000_000
SLACK_MS = 40.0
"""How late a client in a busy test process may see something; never how early."""


def stream(tokens: int = 6, text: str = WORDS, **more) -> dict:
    return user(text, stream=True, max_tokens=tokens, **more)


def texts(truth) -> list:
    return [write for write in truth.writes if write.tokens]


def test_a_client_sees_what_the_truth_tells(live):
    server = live(prefill_tps=1000, decode_tps=50)
    client = server.client()
    seen = client.ask(CHAT, stream(4))
    truth = server.truth_of(1)
    written = texts(truth)
    assert [write.tokens for write in written] == [1, 1, 1, 1]
    assert truth.prefill_end_ns - truth.prefill_start_ns == 101 * MS
    assert [b.planned_ns - a.planned_ns for a, b in pairwise(written)] == [20 * MS] * 3
    assert all(write.actual_ns >= write.planned_ns for write in truth.writes)
    # The last byte of the request reached the kernel after it was sent and before it was read.
    assert seen.sent_ns <= truth.arrival_ns <= truth.read_ns
    first_ns = seen.first_ns(b'"content":"' + written_text(seen).encode())
    assert written[0].actual_ns <= first_ns <= written[0].actual_ns + SLACK_MS * MS
    assert truth.ended == "complete"
    assert (truth.prompt_tokens, truth.cached_prompt_tokens, truth.output_tokens) == (101, 0, 4)


def written_text(seen) -> str:
    deltas = [event["choices"][0]["delta"] for event in seen.events if event["choices"]]
    return next(delta["content"] for delta in deltas if delta.get("content"))


def test_truth_and_client_agree_to_less_than_a_millisecond(live):
    """The least delay of many: a stamp that is off by 1 ms on either side breaks a bound."""
    server = live(prefill_tps=20_000, decode_tps=200)
    seen = server.ask(CHAT, stream(40))
    truth = server.truth_of(1)
    writes = texts(truth)
    delays_ns, told = [], -1  # the role has an empty content of its own
    for at_ns, data in seen.reads:
        told += (brought := data.count(b'"content":"'))
        if brought == 1:
            delays_ns.append(at_ns - writes[told - 1].actual_ns)
    assert told == len(writes) == 40
    assert len(delays_ns) > 10
    assert 0 <= min(delays_ns) < 0.7 * MS
    lateness_ns = [write.actual_ns - write.planned_ns for write in writes]
    assert 0 <= min(lateness_ns) < 0.3 * MS


def test_requests_are_stamped_to_less_than_a_millisecond(live):
    client = (server := live(prefill_tps=1e6, decode_tps=1e6)).client()
    delays_ns = []
    for number in range(1, 16):
        seen = client.ask(CHAT, stream(1))
        delays_ns.append(server.truth_of(number).arrival_ns - seen.sent_ns)
    assert 0 <= min(delays_ns) < 0.7 * MS


def test_the_kernel_stamps_requests_on_linux(live):
    server = live()
    server.ask(CHAT, stream(1))
    truth = server.truth_of(1)
    if truth.kernel_receive_ns is None:
        pytest.skip("this system gives no stamps")
    assert truth.arrival_ns == truth.kernel_receive_ns
    assert truth.read_ns - truth.kernel_receive_ns < 1_000 * MS


def test_a_connection_serves_one_request_after_the_other(live):
    server = live()
    client = server.client()
    for number in (1, 2, 3):
        seen = client.ask(CHAT, stream(2))
        assert seen.ended == "whole"
        assert server.truth_of(number).cached_prompt_tokens == (0 if number == 1 else 100)
    assert client.ask("/v1/models").json["data"]


def test_pipelined_requests_are_answered_in_turn(live):
    server = live()
    client = server.client()
    client.send(CHAT, user("one", max_tokens=1))
    client.send("/v1/models")
    first = client.read()
    while b'"object":"list"' not in first.raw:
        first.reads.extend(client.read().reads)
    assert first.raw.index(b"chat.completion") < first.raw.index(b'"object":"list"')


def test_requests_may_come_in_pieces(live):
    server = live()
    client = server.client()
    body = b'{"messages":[{"role":"user","content":"Hi"}],"max_tokens":1}'
    raw = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (
        CHAT.encode(),
        len(body),
        body,
    )
    for start in range(0, len(raw), 40):
        client.sock.sendall(raw[start : start + 40])
    assert client.read().json["usage"]["completion_tokens"] == 1


def test_one_slot_makes_others_wait(live):
    server = live(prefill_tps=2000, decode_tps=100)
    first, second = server.client(), server.client()
    first.send(CHAT, stream(6))
    first.wait_for_head()
    second.send(CHAT, stream(2, "other " * 100))
    first.read()
    second.read()
    one, two = server.truth_of(1), server.truth_of(2)
    assert two.queue_end_ns == one.writes[-1].planned_ns
    assert two.queue_end_ns > two.arrival_ns
    assert two.prefill_start_ns == two.queue_end_ns
    assert (one.slot, two.slot) == (0, 0)


def test_two_slots_serve_two(live):
    server = live(prefill_tps=2000, decode_tps=100, slots=2)
    clients = [server.client(), server.client()]
    for number, client in enumerate(clients):
        client.send(CHAT, stream(6, f"story{'x' * number} " * 100))
    for client in clients:
        client.read()
    truths = [server.truth_of(1), server.truth_of(2)]
    assert {truth.slot for truth in truths} == {0, 1}
    assert all(truth.queue_end_ns == truth.arrival_ns for truth in truths)


def test_the_first_request_waits_for_the_load(live):
    server = live("ollama", load_s=0.15)
    body = {"model": "simulated:8b", "messages": [{"role": "user", "content": "Hi"}]}
    for number, load_ms in ((1, 150), (2, 0)):
        server.ask("/api/chat", {**body, "options": {"num_predict": 1}})
        truth = server.truth_of(number)
        assert truth.prefill_start_ns - truth.queue_end_ns == load_ms * MS


def test_llama_server_closes_after_a_stream_that_it_said_it_would_keep(live):
    server = live("llama-server")
    client = server.client()
    assert client.ask("/health").json == {"status": "ok"}
    seen = client.ask(CHAT, stream(2))
    assert "Keep-Alive: timeout=5, max=100" in seen.head
    assert seen.ended == "whole"
    assert client.is_closed_soon()


def test_mlx_ends_bodies_with_the_connection(live):
    server = live("mlx")
    seen = server.ask(CHAT, stream(2))
    assert seen.head.startswith("HTTP/1.0 200 OK")
    assert seen.ended == "closed"
    assert seen.body.endswith(b"data: [DONE]\n\n")
    assert server.ask("/health").ended == "closed"


def test_a_client_that_asks_gets_its_connection_closed(live):
    client = live().client()
    seen = client.ask("/v1/models", None, "Connection: close")
    assert "Connection: close" in seen.head
    assert client.is_closed_soon()


def test_who_leaves_frees_the_slot(live):
    server = live(prefill_tps=100, decode_tps=10)
    leaving = server.client()
    leaving.send(CHAT, stream(500))
    leaving.wait_for_head()
    leaving.close()
    assert server.truth_of(1).ended == "client closed"
    assert server.ask(CHAT, user("Hi", max_tokens=1)).status == 200
    second = server.truth_of(2)
    assert second.queue_end_ns == second.arrival_ns


def test_who_leaves_the_queue_is_forgotten(live):
    server = live(prefill_tps=1000, decode_tps=100)
    first, leaving, third = server.client(), server.client(), server.client()
    first.send(CHAT, stream(20))
    first.wait_for_head()
    leaving.send(CHAT, stream(500, "other " * 50))
    leaving.wait_for_head()
    third.send(CHAT, stream(1, "third " * 50))
    leaving.close()
    first.read()
    third.read()
    assert server.truth_of(2).ended == "client closed"
    assert server.truth_of(3).queue_end_ns == server.truth_of(1).writes[-1].planned_ns


class TestFaults:
    def ask(self, live, fault: str, speak: str = "openai", **more):
        server = live(speak, faults=(Fault.parsed(fault),), **more)
        return server, server.ask(CHAT, stream(6))

    def test_buffered(self, live):
        server, seen = self.ask(live, "buffered")
        assert [write.kind for write in server.truth_of(1).writes] == ["buffered"]
        assert len(seen.events) == 8

    def test_abrupt_close(self, live):
        server, seen = self.ask(live, "abrupt-close")
        assert seen.ended == "reset"
        assert server.truth_of(1).ended == "reset"
        assert server.truth_of(1).output_tokens == 3

    def test_a_reset_without_a_stream(self, live):
        server = live(faults=(Fault("abrupt-close"),))
        seen = server.ask(CHAT, user("Hi", max_tokens=2))
        assert (seen.ended, seen.raw) == ("reset", b"")

    def test_silent_close(self, live):
        server = live(faults=(Fault("silent-close"),))
        for path, body in (("/v1/models", None), (CHAT, stream(2))):
            client = server.client()
            seen = client.ask(path, body)
            assert "Connection: keep-alive" in seen.head
            assert client.is_closed_soon()

    def test_gzip(self, live):
        _, seen = self.ask(live, "gzip")
        assert gzip.decompress(seen.body).endswith(b"data: [DONE]\n\n")

    def test_http10(self, live):
        _, seen = self.ask(live, "http10")
        assert seen.head.startswith("HTTP/1.0 200")
        assert seen.ended == "closed"
        assert seen.body.startswith(b"data: ")

    def test_stall(self, live):
        server, _ = self.ask(live, "stall", stall_s=0.2)
        written = texts(server.truth_of(1))
        assert written[3].planned_ns - written[2].planned_ns == 205 * MS

    def test_split_characters(self, live):
        server = live(faults=(Fault("split-utf8"),))
        seen = server.ask(CHAT, stream(6))
        writes = server.truth_of(1).writes
        assert "part" in [write.kind for write in writes]
        assert "café" in seen.body.decode()

    def test_refusals_are_told(self, live):
        server = live(faults=(Fault("429", 1),))
        client = server.client()
        assert client.ask(CHAT, stream(1)).status == 429
        assert client.ask(CHAT, stream(1)).status == 200
        refused = server.truth_of(1)
        assert (refused.ended, refused.status, refused.prompt_tokens) == ("refused", 429, None)

    def test_no_connection_breaks_the_server(self, live):
        server = live()
        for raw in (b"\x16\x03\x01 not tls here\r\n\r\n", b"GET\r\n\r\n", b"x" * 70_000):
            client = server.client()
            client.sock.sendall(raw)
            assert client.read().status in (400, 431)
        assert server.ask("/v1/models").status == 200


def test_many_streams_at_once(live):
    server = live(prefill_tps=20_000, decode_tps=40, slots=64)
    clients = [server.client() for _ in range(64)]
    for number, client in enumerate(clients):
        client.send(CHAT, stream(3, f"story {number} " * 30))
    assert all(client.read().ended == "whole" for client in clients)
    truths = [server.truth_of(number) for number in range(1, 65)]
    assert all(truth.queue_end_ns == truth.arrival_ns for truth in truths)
    late_ns = [w.actual_ns - w.planned_ns for truth in truths for w in texts(truth)]
    assert min(late_ns) >= 0
    assert max(late_ns) < 1_000 * MS  # an answer that is forgotten for a while is later than that


def test_a_large_answer_waits_for_a_slow_reader(live):
    server = live(prefill_tps=1e9, decode_tps=1e9, n_ctx=1_000_000)
    client = server.client(buffer_bytes=4096)
    client.send(CHAT, user("Hi", max_tokens=100_000))
    server.truth_of(1)  # the end was planned and handed over long before it is read
    assert client.read().json["usage"]["completion_tokens"] == 100_000


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    openssl = which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    words = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    run([*words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def test_tls_keeps_pace_and_stamps(live, certificate):
    server = live(new_cipher=partial(Tls, context_of(*certificate)), decode_tps=100)
    client = server.client()
    context = ssl.create_default_context(cafile=str(certificate[0]))
    client.sock = context.wrap_socket(client.sock, server_hostname="localhost")
    for number in (1, 2):
        seen = client.ask(CHAT, stream(5))
        assert len(seen.events) == 7
        truth = server.truth_of(number)
        assert all(write.actual_ns >= write.planned_ns for write in truth.writes)
        assert seen.sent_ns <= truth.arrival_ns <= truth.read_ns


def test_plain_bytes_to_tls_end_only_their_own_connection(live, certificate):
    server = live(new_cipher=partial(Tls, context_of(*certificate)))
    client = server.client()
    client.sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert client.read().ended in ("closed", "reset")
    other = server.client()
    context = ssl.create_default_context(cafile=str(certificate[0]))
    other.sock = context.wrap_socket(other.sock, server_hostname="localhost")
    assert other.ask("/v1/models").status == 200


def test_a_certificate_without_its_key_is_told(tmp_path):
    with pytest.raises(InputError, match="Cannot use"):
        context_of(tmp_path / "none.pem", tmp_path / "none.key")


def test_it_ends_after_so_many_requests(live):
    server = live(max_requests=2)
    server.ask(CHAT, stream(1))
    server.ask("/v1/models")
    seen = server.ask(CHAT, stream(1))
    assert seen.ended == "whole"
    server.wait_until_over()


def test_stopping_tells_what_was_unfinished(live):
    server = live(prefill_tps=10, decode_tps=1)
    client = server.client()
    client.send(CHAT, stream(5))
    client.wait_for_head()
    server.stop()
    assert server.truth_of(1).ended == "stopped"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "example.org", "::", ""])
def test_it_only_listens_on_this_machine(host):
    with pytest.raises(UsageError, match="only listens on this machine"):
        listening(host, 0)


def test_a_taken_port_is_told():
    with listening("localhost", 0) as taken, pytest.raises(UsageError, match="--port"):
        listening("127.0.0.1", taken.getsockname()[1])
