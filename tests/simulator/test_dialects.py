"""What each dialect tells, in its own meaning; shapes are in test_shapes.py."""

from __future__ import annotations

import json

import pytest
from telling import CHAT, user

from twospeed.runtimes.registry import recognise
from twospeed.runtimes.runtime import Answer
from twospeed.simulator.faults import Fault
from twospeed.simulator.machine import Machine
from twospeed.simulator.simulation import dialect_names

LONG = "word " * 92 + "word"
PROMPT_TOKENS = 101
S = 10**9


def test_every_dialect_is_found():
    assert set(dialect_names()) == {
        "openai",
        "llama-server",
        "ollama",
        "vllm",
        "lmstudio",
        "mlx",
        "transformers",
    }


RECOGNISED = {
    "openai": "openai",
    "llama-server": "llama-server",
    "ollama": "ollama",
    "vllm": "vllm",
    "lmstudio": "lmstudio",
    "mlx": "mlx_lm",
    "transformers": "transformers",
}
PATHS = ("/", "/v1/models", "/props", "/health", "/version", "/api/version", "/api/ps")


@pytest.mark.parametrize("speak", dialect_names())
def test_twospeed_takes_it_for_the_real_one(server, speak):
    s = server(speak)
    answers = {}
    for path in (*PATHS, "/api/v0/models", "/api/v1/models"):
        answer = s.ask(path)
        lines = answer.head.decode().strip().split("\r\n")[1:]
        headers = {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines}
        try:
            value = json.loads(answer.body)
        except ValueError:
            value = None
        answers[path] = Answer(status=answer.status, headers=headers, body=answer.body, json=value)
    assert recognise(answers).id == RECOGNISED[speak]


def chat(s, **more):
    """A chat request in the words of any dialect, told to its end."""
    return s.ask(CHAT, user(LONG, model=s.simulation.facts.model, **more), at_ns=more.pop("at", 0))


@pytest.mark.parametrize("speak", ["openai", "llama-server", "mlx"])
def test_cached_tokens_are_told_where_the_runtime_tells_them(server, speak):
    s = server(speak)
    body = user(LONG, max_tokens=2)
    s.ask(CHAT, body)
    usage = s.ask(CHAT, body, at_ns=S).json["usage"]
    assert usage["prompt_tokens"] == PROMPT_TOKENS
    assert usage["prompt_tokens_details"]["cached_tokens"] == PROMPT_TOKENS - 1


@pytest.mark.parametrize("speak", ["ollama", "lmstudio", "transformers"])
def test_and_not_told_where_it_does_not(server, speak):
    s = server(speak)
    body = user(LONG, max_tokens=2, model=s.simulation.facts.model)
    assert "details" not in json.dumps(s.ask(CHAT, body).json["usage"]).replace(
        "completion_tokens_details", ""
    )


def test_transformers_reuses_nothing_by_itself(server):
    for cache, cached in ((None, 0), ("on", PROMPT_TOKENS - 1)):
        s = server("transformers", cache=cache)
        s.ask(CHAT, user(LONG, max_tokens=2))
        assert s.ask(CHAT, user(LONG, max_tokens=2), at_ns=S).job.cached_tokens == cached


def test_vllm_reuses_whole_blocks_and_keeps_salts_apart(server):
    s = server("vllm", report_cached=True)
    details = []
    for number, salt in enumerate(["a", "a", "b"]):
        told = s.ask(CHAT, user(LONG, max_tokens=2, cache_salt=salt), at_ns=number * S)
        details.append(told.json["usage"]["prompt_tokens_details"])
    assert [one["cached_tokens"] for one in details] == [0, 96, 0]
    assert [one["created_cache_tokens"] for one in details] == [96, 0, 96]


def test_vllm_tells_times_without_the_queue(server):
    s = server("vllm", report_times=True)
    request = s.request(CHAT, user(LONG, max_tokens=3))
    first, second = (s.simulation.handle(request, 0, 0) for _ in "ab")
    s.told(first)
    metrics = s.told(second).json["metrics"]
    assert metrics["queue_time_ms"] == pytest.approx(121)
    assert metrics["time_to_first_token_ms"] == pytest.approx(5)  # 96 of 101 tokens are cached
    assert metrics["generation_time_ms"] == pytest.approx(20)


def test_timings_of_llama_server_count_steps_and_leave_the_queue_out(server):
    s = server("llama-server")
    request = s.request(CHAT, user(LONG, max_tokens=5))
    first, second = (s.simulation.handle(request, 0, 0) for _ in "ab")
    assert s.told(first).json["timings"] == {
        "cache_n": 0,
        "prompt_n": PROMPT_TOKENS,
        "prompt_ms": 101.0,
        "prompt_per_token_ms": 1.0,
        "prompt_per_second": 1000.0,
        "predicted_n": 5,
        "predicted_ms": 40.0,
        "predicted_per_token_ms": 10.0,
        "predicted_per_second": 100.0,
    }
    waited = s.told(second).json["timings"]
    assert (waited["cache_n"], waited["prompt_n"], waited["prompt_ms"]) == (100, 1, 1.0)


def test_drafts_show_in_timings_of_llama_server(server):
    machine = Machine(prefill_tps=1000, decode_tps=100, draft_tokens=2)
    told = server("llama-server", machine=machine).ask(CHAT, user(LONG, max_tokens=7))
    assert told.json["timings"]["draft_n"] == 6
    assert told.json["timings"]["draft_n_accepted"] == 3


def test_llama_server_sends_its_head_when_a_slot_is_free(server):
    s = server("llama-server")
    request = s.request(CHAT, user(LONG, max_tokens=2, stream=True))
    first, second = (s.simulation.handle(request, 0, 0) for _ in "ab")
    assert s.simulation.greeting(second, 0) is None
    s.told(first)
    assert s.told(second).writes[0].at_ns == 111_000_000
    assert first.closes


def test_progress_of_llama_server_comes_batch_by_batch(server):
    body = user("word " * 5000, max_tokens=1, stream=True, return_progress=True)
    told = server("llama-server").ask(CHAT, body)
    progress = [e["prompt_progress"] for e in told.events if "prompt_progress" in e]
    assert [one["processed"] for one in progress] == [0, 2048, 4096, told.job.prompt_tokens]
    assert [one["time_ms"] for one in progress] == [0, 2048, 4096, told.job.prompt_tokens]


def test_comments_of_mlx_count_only_what_was_not_cached(server):
    s = server("mlx")
    body = user(LONG, max_tokens=1, stream=True)
    assert b": keepalive 101/101\n\n" in s.ask(CHAT, body).body
    assert b": keepalive 1/1\n\n" in s.ask(CHAT, body, at_ns=S).body


def test_json_of_mlx_is_ascii(server):
    told = server("mlx", faults=()).ask(CHAT, user("word", max_tokens=200))
    assert told.body.isascii()
    assert not "".join(told.job.answer).isascii()


def test_transformers_greets_with_the_role_at_once(server):
    first = server("transformers").ask(CHAT, user(LONG, stream=True, max_tokens=2)).events[0]
    assert first["choices"] == [{"delta": {"role": "assistant"}, "index": 0}]


def test_mlx_and_transformers_refuse_no_length(server):
    for speak in ("mlx", "transformers"):
        assert server(speak, n_ctx=50).ask(CHAT, user(LONG, max_tokens=2)).status == 200


OVERFLOW = {"openai": 400, "llama-server": 400, "vllm": 400, "lmstudio": 400}


@pytest.mark.parametrize("speak", OVERFLOW)
def test_a_prompt_as_long_as_the_context_is_refused(server, speak):
    for n_ctx, status in ((PROMPT_TOKENS, OVERFLOW[speak]), (PROMPT_TOKENS + 1, 200)):
        assert server(speak, n_ctx=n_ctx).ask(CHAT, user(LONG, max_tokens=5)).status == status


class TestOllama:
    def ask(self, s, path="/api/chat", at_ns=0, **more):
        body = {"model": "simulated:8b", **more}
        if path == "/api/chat":
            body.setdefault("messages", [{"role": "user", "content": LONG}])
        return s.ask(path, body, at_ns=at_ns)

    def test_it_streams_lines_unless_told_otherwise(self, server):
        told = self.ask(server("ollama"), options={"num_predict": 3})
        assert b"application/x-ndjson" in told.head
        assert [event["done"] for event in told.events] == [False, False, False, True]
        said = "".join(event["message"]["content"] for event in told.events)
        assert said == "".join(told.job.answer)

    def test_its_head_comes_with_the_first_text(self, server):
        assert self.ask(server("ollama")).writes[0].kind == "text"

    def test_durations_mean_what_they_mean_there(self, server):
        s = server("ollama", load_s=0.5)
        cold = self.ask(s, stream=False, options={"num_predict": 3}).json
        warm = self.ask(s, stream=False, options={"num_predict": 3}, at_ns=S).json
        counts = [(one["prompt_eval_count"], one["eval_count"]) for one in (cold, warm)]
        assert counts == [(PROMPT_TOKENS, 3), (PROMPT_TOKENS, 3)]
        assert cold["load_duration"] == 500_000_000
        assert cold["prompt_eval_duration"] == 101_000_000
        assert warm["prompt_eval_duration"] == 1_000_000  # one token was not cached
        assert cold["eval_duration"] == 20_000_000
        assert cold["total_duration"] == 621_000_000
        assert 0 < warm["load_duration"] < 100_000

    def test_thinking_has_a_field_of_its_own(self, server):
        s = server("ollama", reasoning_tokens=4)
        told = self.ask(s, options={"num_predict": 6})
        assert sum("thinking" in event["message"] for event in told.events) == 4
        assert not self.ask(s, think=False, at_ns=S).job.reasoning

    def test_generate(self, server):
        s = server("ollama")
        wish = {"stream": False, "options": {"num_predict": 2}}
        told = self.ask(s, "/api/generate", prompt=LONG, **wish)
        raw = self.ask(s, "/api/generate", prompt=LONG, raw=True, at_ns=S, **wish)
        assert told.json["response"] == "".join(told.job.answer)
        assert (told.job.prompt_tokens, raw.job.prompt_tokens) == (PROMPT_TOKENS, 93)

    def test_another_context_loads_again_and_forgets(self, server):
        s = server("ollama", load_s=0.5)
        self.ask(s)
        same = self.ask(s, at_ns=5 * S).job
        other = self.ask(s, at_ns=9 * S, options={"num_ctx": 8192}).job
        assert (same.load_ns, same.cached_tokens) == (0, PROMPT_TOKENS - 1)
        assert (other.load_ns, other.cached_tokens) == (S // 2, 0)

    def test_what_is_too_long_is_cut_silently(self, server):
        s = server("ollama", n_ctx=60)
        assert self.ask(s, options={"num_predict": 1}).job.prompt_tokens == 59
        messages = [
            {"role": "system", "content": "rule"},
            {"role": "user", "content": LONG},
            {"role": "user", "content": "last"},
        ]
        kept = self.ask(s, messages=messages, at_ns=S, options={"num_predict": 1}).job
        assert kept.prompt_tokens == 1 + 5 + 5 + 3  # rule and last, with their template

    def test_models_are_loaded_by_the_first_request(self, server):
        s = server("ollama", load_s=0.5)
        assert s.ask("/api/ps").json == {"models": []}
        self.ask(s)
        [model] = s.ask("/api/ps", at_ns=9 * S).json["models"]
        assert model["context_length"] == 32_768
        assert s.ask("/api/show", {"model": "simulated:8b"}).json["model_info"]

    def test_the_part_on_the_card_is_told(self, server):
        s = server("ollama", gpu_frac=0.4)
        self.ask(s)
        [model] = s.ask("/api/ps", at_ns=9 * S).json["models"]
        assert model["size_vram"] == pytest.approx(0.4 * model["size"], abs=1)

    def test_errors(self, server):
        s = server("ollama")
        assert s.ask("/api/chat", {"model": "other", "messages": []}).status == 404
        assert s.ask("/api/chat", {"messages": []}).json == {"error": "model is required"}
        assert s.ask("/nope").body == b"404 page not found"

    def test_compatible_chunks_have_the_role_once(self, server):
        told = self.ask(
            server("ollama"),
            CHAT,
            messages=[{"role": "user", "content": "Hi"}],
            stream=True,
            max_tokens=3,
            stream_options={"include_usage": True},
        )
        deltas = [event["choices"][0]["delta"] for event in told.events if event["choices"]]
        assert ["role" in delta for delta in deltas] == [True, False, False, False]
        assert told.events[-1]["usage"].keys() == {
            "prompt_tokens",
            "completion_tokens",
            "total_tokens",
        }


class TestLmStudio:
    def test_events_tell_load_prompt_and_message_apart(self, server):
        s = server("lmstudio", load_s=0.5, reasoning_tokens=2)
        wish = {"stream": True, "max_output_tokens": 4, "store": False}
        told = s.ask("/api/v1/chat", {"model": "simulated-8b", "input": LONG, **wish})
        names = [
            line.removeprefix("event: ")
            for line in told.body.decode().splitlines()
            if line.startswith("event: ")
        ]
        assert names == [
            "chat.start",
            "model_load.start",
            "model_load.progress",
            "model_load.progress",
            "model_load.end",
            "prompt_processing.start",
            "prompt_processing.progress",
            "prompt_processing.progress",
            "prompt_processing.end",
            "reasoning.start",
            "reasoning.delta",
            "reasoning.delta",
            "reasoning.end",
            "message.start",
            "message.delta",
            "message.delta",
            "message.end",
            "chat.end",
        ]
        assert all(event["type"] == name for event, name in zip(told.events, names, strict=True))
        stats = told.events[-1]["result"]["stats"]
        assert stats["model_load_time_seconds"] == 0.5
        assert (stats["input_tokens"], stats["total_output_tokens"]) == (PROMPT_TOKENS, 4)
        assert stats["reasoning_output_tokens"] == 2
        assert stats["time_to_first_token_seconds"] == pytest.approx(0.601)

    def test_old_route_tells_statistics_without_a_stream(self, server):
        s = server("lmstudio")
        answer = s.ask("/api/v0/chat/completions", user(LONG, max_tokens=3)).json
        assert answer["stats"]["time_to_first_token"] == pytest.approx(0.101)
        assert answer["stats"]["generation_time"] == pytest.approx(0.02)
        assert answer["model_info"]["context_length"] == 32_768
        wish = {"stream": True, "stream_options": {"include_usage": True}}
        streamed = s.ask("/api/v0/chat/completions", user(LONG, max_tokens=3, **wish), at_ns=S)
        assert b"stats" not in streamed.body
        assert b'"usage"' not in streamed.body

    def test_models_are_listed_as_loaded_once_they_are(self, server):
        s = server("lmstudio", load_s=0.5)
        assert s.ask("/api/v0/models").json["data"][0]["state"] == "not-loaded"
        assert s.ask("/api/v1/models").json["models"][0]["loaded_instances"] == []
        s.ask(CHAT, user("Hi"))
        assert s.ask("/api/v0/models", at_ns=9 * S).json["data"][0]["state"] == "loaded"
        assert s.ask("/api/v1/models", at_ns=9 * S).json["models"][0]["loaded_instances"]


@pytest.mark.parametrize("speak", dialect_names())
@pytest.mark.parametrize(
    "body",
    [
        b"{bad",
        b"[]",
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        {"messages": "no list"},
        {"messages": []},
        {"messages": [1]},
        {"messages": [{"role": 1, "content": "x"}]},
        user("x", max_tokens="many"),
        user("x", max_tokens=True),
        user("x", max_tokens=-5),
        user("x", max_tokens=2**40),
    ],
    ids=lambda body: str(body)[:40],
)
def test_nonsense_is_refused_in_every_dialect(server, speak, body):
    s = server(speak)
    if isinstance(body, dict):
        body = {"model": s.simulation.facts.model, **body}
    answer = s.ask(CHAT, body)
    assert 400 <= answer.status <= 500
    assert answer.body
    assert not s.simulation.bench.waiting


@pytest.mark.parametrize("speak", dialect_names())
def test_contents_in_parts_and_limits_of_zero_are_served(server, speak):
    s = server(speak)
    content = [{"type": "text", "text": "a b"}, {"type": "image_url", "image_url": {}}]
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 0}
    told = s.ask(CHAT, {"model": s.simulation.facts.model, **body})
    assert told.status == 200
    assert told.job.output_tokens == 1


@pytest.mark.parametrize("speak", dialect_names())
def test_completions_take_texts_and_ids(server, speak):
    s = server(speak)
    for number, (prompt, tokens) in enumerate([("a b c", 3), (["a b c"], 3), ([1, 2, 3, 4], 4)]):
        body = {"model": s.simulation.facts.model, "prompt": prompt, "max_tokens": 1}
        assert s.ask("/v1/completions", body, at_ns=number * S).job.prompt_tokens == tokens


HOSTS = [
    ("localhost:8090", 200),
    ("LOCALHOST", 200),
    ("127.0.0.1", 200),
    ("127.9.9.9:1", 200),
    ("[::1]:80", 200),
    ("app.localhost", 200),
    ("localhost.evil.example", 403),
    ("evil.example:8090", 403),
    ("192.168.0.7", 403),
    ("10.0.0.1.nip.io", 403),
    ("allowed.example:1", 200),
]


@pytest.mark.parametrize(("host", "status"), HOSTS)
def test_only_names_of_this_machine_are_served(server, host, status):
    s = server(allowed_hosts=frozenset({"allowed.example"}))
    assert s.ask("/v1/models", host=host).status == status


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [("http://localhost:3000", True), ("https://evil.example", False), ("null", False)],
)
def test_pages_may_ask_only_from_this_machine(server, origin, allowed):
    s = server()
    for answer in (
        s.ask(CHAT, method="OPTIONS", origin=origin),
        s.ask("/v1/models", origin=origin),
    ):
        assert (f"Access-Control-Allow-Origin: {origin}".encode() in answer.head) is allowed


def test_counters_add_up(server):
    s = server("llama-server")
    for number in range(2):
        s.ask(CHAT, user(LONG, max_tokens=3), at_ns=number * S)
    page = s.ask("/metrics").body.decode()
    assert "llamacpp:prompt_tokens_total 102\n" in page
    assert "llamacpp:prompt_tokens_cached_total 100\n" in page
    assert "llamacpp:tokens_predicted_total 6\n" in page
    vllm = server("vllm")
    vllm.ask(CHAT, user(LONG, max_tokens=3))
    assert 'vllm:generation_tokens_total{engine="0",model_name="simulated-8b"} 3.0\n' in (
        vllm.ask("/metrics").body.decode()
    )


def test_counted_refusals_let_the_next_request_pass(server):
    s = server(faults=(Fault("429", 1),))
    assert [s.ask(CHAT, user("x")).status, s.ask(CHAT, user("x")).status] == [429, 200]
