"""Answers have the keys, in their order, and the types of what real servers were seen to send."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from telling import CHAT, user

CAPTURES = Path(__file__).parent / "captures"


def captured(name: str) -> tuple[list[str], list[Any], bytes]:
    """Header names, objects and the raw bytes of a recorded answer."""
    raw = (CAPTURES / f"{name}.http").read_bytes()
    head, _, body = raw.partition(b"\r\n\r\n")
    names = [line.partition(b":")[0].decode() for line in head.split(b"\r\n")[1:]]
    found = re.findall(rb"^data: (\{.*\})$", body, re.MULTILINE)
    if not found:
        found = re.findall(rb"^[\[{].*[\]}]$", body, re.MULTILINE)
    return names, [json.loads(one) for one in found], raw


def shape(value: Any) -> Any:
    """Keys in their order, and types; a list has the shape of its first entry."""
    if isinstance(value, dict):
        return [(key, shape(part)) for key, part in value.items()]
    if isinstance(value, list):
        return ["list", shape(value[0])] if value else ["list"]
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return "number" if isinstance(value, int | float) else type(value).__name__


def distinct(events: list[Any]) -> list[Any]:
    """Shapes in the order in which they first come."""
    found: list[Any] = []
    for event in events:
        if shape(event) not in found:
            found.append(shape(event))
    return found


USAGE = {"stream": True, "stream_options": {"include_usage": True}}
TWICE = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}

STREAMS = [
    ("llama-server_chat_stream", "llama-server", CHAT, USAGE, {}),
    (
        "llama-server_chat_stream_progress",
        "llama-server",
        CHAT,
        USAGE | {"return_progress": True},
        {},
    ),
    (
        "llama-server_chat_stream_timings",
        "llama-server",
        CHAT,
        {"stream": True, "timings_per_token": True},
        {},
    ),
    ("llama-server_completion_stream", "llama-server", "/v1/completions", USAGE, {}),
    ("vllm_chat_stream", "vllm", CHAT, USAGE, {"report_cached": True}),
    ("vllm_chat_stream_nousage", "vllm", CHAT, {"stream": True}, {}),
    ("vllm_chat_stream_times", "vllm", CHAT, USAGE, {"report_times": True}),
    ("vllm_completion_stream", "vllm", "/v1/completions", USAGE, {"report_cached": True}),
    ("mlx_chat_stream", "mlx", CHAT, USAGE, {}),
    ("mlx_completion_stream", "mlx", "/v1/completions", USAGE, {}),
    ("transformers_chat_stream", "transformers", CHAT, {"stream": True}, {}),
    ("transformers_completion_stream", "transformers", "/v1/completions", {"stream": True}, {}),
]


@pytest.mark.parametrize("case", STREAMS, ids=[case[0] for case in STREAMS])
def test_streams(server, case):
    name, speak, path, wish, settings = case
    body = user("Hi there") if path == CHAT else {"prompt": "Hi there"}
    told = server(speak, **settings).ask(path, {**body, **wish, "max_tokens": 5})
    names, real, raw = captured(name)
    assert distinct(told.events) == distinct(real)
    assert (b"data: [DONE]" in told.body) == (b"data: [DONE]" in raw)
    assert header_names(told.head) == without_close(names)


def test_continuous_usage_is_in_every_chunk(server):
    told = server("vllm").ask(CHAT, {**user("Hi"), **TWICE, "max_tokens": 3})
    _, real, _ = captured("vllm_chat_stream_continuous")
    assert distinct(told.events)[:2] == distinct(real)[:2]
    counts = [event["usage"]["completion_tokens"] for event in told.events]
    assert counts == [0, 1, 2, 3, 3]


def test_native_completion_of_llama_server(server):
    wish = {"stream": True, "return_progress": True, "timings_per_token": True, "n_predict": 3}
    told = server("llama-server").ask("/completion", {"prompt": "A b c", **wish})
    _, real, _ = captured("llama-server_native_stream_progress")
    drop = {"generation_settings"}  # which samplers there are is another matter
    for ours, theirs in zip((told.events[-2], told.events[-1]), real[-2:], strict=True):
        assert shape({k: v for k, v in ours.items() if k not in drop}) == shape(
            {k: v for k, v in theirs.items() if k not in drop}
        )
    assert told.events[0]["prompt_progress"].keys() == real[0]["prompt_progress"].keys()
    assert b"[DONE]" not in told.body


WHOLE = [
    ("llama-server_chat", "llama-server", {}),
    ("vllm_chat", "vllm", {"report_cached": True}),
    ("mlx_chat", "mlx", {}),
    ("transformers_chat", "transformers", {}),
]


@pytest.mark.parametrize(("name", "speak", "settings"), WHOLE, ids=[w[0] for w in WHOLE])
def test_whole_answers(server, name, speak, settings):
    told = server(speak, **settings).ask(CHAT, user("Hi there", max_tokens=5))
    names, real, _ = captured(name)
    assert shape(told.json) == shape(real[0])
    assert header_names(told.head) == without_close(names)


PAGES = [
    ("llama-server_get_models", "llama-server", "/v1/models"),
    ("llama-server_get_props", "llama-server", "/props"),
    ("llama-server_get_slots", "llama-server", "/slots"),
    ("llama-server_error_404", "llama-server", "/nope"),
    ("vllm_get_version", "vllm", "/version"),
    ("transformers_get_models", "transformers", "/v1/models"),
    ("mlx_get_health", "mlx", "/health"),
]


@pytest.mark.parametrize(("name", "speak", "path"), PAGES, ids=[p[0] for p in PAGES])
def test_pages(server, name, speak, path):
    answer = server(speak).ask(path)
    names, real, raw = captured(name)
    assert answer.status == int(raw.split()[1])
    assert top_shape(answer.json) == top_shape(real[0])
    assert header_names(answer.head) == without_close(names)


def test_models_of_vllm_but_for_permissions(server):
    entry = server("vllm").ask("/v1/models").json["data"][0]
    real = captured("vllm_get_models")[1][0]["data"][0]
    del real["permission"]
    assert shape(entry) == shape(real)


TOO_LONG = user("word " * 60)
ERRORS = [
    ("llama-server_error_too_long", "llama-server", TOO_LONG),
    ("llama-server_error_no_messages", "llama-server", {"model": "x"}),
    ("vllm_error_too_long", "vllm", TOO_LONG),
    ("vllm_error_model", "vllm", user("x", model="nope-x")),
    ("mlx_error_no_messages", "mlx", {}),
    ("transformers_error_model", "transformers", user("x", model="nope-x")),
    ("transformers_error_json", "transformers", b"{bad"),
]


@pytest.mark.parametrize(("name", "speak", "body"), ERRORS, ids=[e[0] for e in ERRORS])
def test_errors(server, name, speak, body):
    answer = server(speak, n_ctx=50).ask(CHAT, body)
    names, real, raw = captured(name)
    assert answer.status == int(raw.split()[1])
    assert shape(answer.json) == shape(real[0])
    assert header_names(answer.head) == without_close(names)


TOKENIZED = [
    ("llama-server", {"content": "hello world", "with_pieces": True}),
    ("vllm", {"model": "simulated-8b", "prompt": "hello world"}),
]


@pytest.mark.parametrize(("speak", "body"), TOKENIZED, ids=[t[0] for t in TOKENIZED])
def test_tokenizers(server, speak, body):
    answer = server(speak).ask("/tokenize", body)
    assert shape(answer.json) == shape(captured(f"{speak}_tokenize")[1][0])


def top_shape(value: Any) -> Any:
    """Keys of the upper two levels; lists by their first entry."""
    if isinstance(value, list):
        return ["list", top_shape(value[0])] if value else ["list"]
    if not isinstance(value, dict):
        return None
    return [(key, list(part) if isinstance(part, dict) else None) for key, part in value.items()]


def header_names(head: bytes) -> list[str]:
    lines = head.strip().split(b"\r\n")[1:]
    names = [line.partition(b":")[0].decode() for line in lines]
    return [name for name in names if name != "Keep-Alive"]


def without_close(names: list[str]) -> list[str]:
    """The recorder had asked for a closed connection; the simulator was not asked."""
    return [name for name in names if name.lower() != "connection"]
