"""Each dialect on its own traps, most of which no capture shows."""

from __future__ import annotations

import json

import pytest

from twospeed.wire.dialects import dialect_names
from twospeed.wire.reading import Progress, Stage


def sse(*events: object, names: bool = False) -> bytes:
    lines = []
    for event in events:
        if names:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
    return "".join(lines).encode()


def lines(*objects: object) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in objects).encode()


def delta(**members: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": members, "finish_reason": None}]}


FINISH = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def texts(reading):
    return [(event.kind, event.text) for event in reading.text]


def test_the_dialects_are_found_in_the_room():
    assert dialect_names() == (
        "anthropic_messages",
        "llama_native",
        "lmstudio_native",
        "ollama_native",
        "openai_chat",
        "openai_completions",
        "openai_responses",
    )


def test_an_unknown_dialect_is_a_mistake_of_the_caller(wire):
    with pytest.raises(KeyError):
        wire.read("sse", b"")


class TestOpenaiChat:
    def test_hidden_reasoning_role_chunk_progress_and_missing_usage(self, wire):
        progress = {**delta(role="assistant", content=None)}
        progress["prompt_progress"] = {"total": 90, "cache": 3, "processed": 90, "time_ms": 7}
        reading = wire.read(
            "openai_chat",
            sse(delta(role="assistant", content="")),
            sse(progress),
            sse(delta(reasoning_content="Let me think about")),
            sse(delta(reasoning_content=" it"), delta(content="\n")),
            sse(delta(content="Yes, it is so")),
            sse(FINISH, "[DONE]"),
        )
        assert texts(reading) == [
            ("reasoning", "Let me think about"),
            ("reasoning", " it"),
            ("answer", "\n"),
            ("answer", "Yes, it is so"),
        ]
        assert [event.at_ns for event in reading.text] == [3_000, 4_000, 4_000, 5_000]
        assert [event.read for event in reading.text] == [3, 4, 4, 5]
        assert reading.progress == [Progress(at_ns=2_000, processed=90, total=90, cached=3)]
        assert (reading.empty_events, reading.usage, reading.timings) == (1, None, None)
        assert (reading.finish_ns, reading.done, reading.error) == (6_000, True, None)

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            ({"content": " "}, [("answer", " ")]),
            ({"content": "a", "reasoning": "r"}, [("reasoning", "r"), ("answer", "a")]),
            ({"thinking": "t"}, [("reasoning", "t")]),
            ({"reasoning": "same", "reasoning_content": "same"}, [("reasoning", "same")]),
            ({"reasoning": "r", "reasoning_content": None}, [("reasoning", "r")]),
            ({"content": [{"type": "text", "text": "a"}, {"text": "b"}, "c"]}, [("answer", "abc")]),
            (
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]},
                [("reasoning", "t")],
            ),
            ({"refusal": "no"}, [("answer", "no")]),
            (
                {"tool_calls": [{"id": "x", "function": {"name": "f", "arguments": ""}}]},
                [("tool", "f")],
            ),
            ({"tool_calls": [{"function": {"arguments": '{"a'}}]}, [("tool", '{"a')]),
            ({"tool_calls": [{"function": {"arguments": {"a": 1}}}]}, [("tool", '{"a":1}')]),
            ({"function_call": {"name": "f", "arguments": "{}"}}, [("tool", "f{}")]),
            ({"tool_calls": [{"index": 0, "id": "x", "type": "function"}]}, []),
            ({"role": "assistant"}, []),
            ({"content": ""}, []),
            ({}, []),
        ],
    )
    def test_a_delta(self, wire, said, expected):
        reading = wire.read("openai_chat", sse(delta(**said), FINISH, "[DONE]"))
        assert texts(reading) == expected
        assert reading.empty_events == (0 if expected else 1)

    def test_a_null_delta_is_empty(self, wire):
        chunk = {"choices": [{"index": 0, "delta": None, "finish_reason": None}]}
        reading = wire.read("openai_chat", sse(chunk, FINISH))
        assert (texts(reading), reading.empty_events, reading.error) == ([], 1, None)

    def test_usage_on_the_finish_chunk_and_timings_after_it(self, wire):
        finish = {**FINISH, "usage": {"prompt_tokens": 9, "completion_tokens": None}}
        last = {"choices": [], "usage": {"completion_tokens": 4, "prompt_tokens": None}}
        last["timings"] = {"prompt_n": 9}
        reading = wire.read("openai_chat", sse(delta(content="a"), finish, last))
        assert reading.usage == {"prompt_tokens": 9, "completion_tokens": 4}
        assert reading.timings == {"prompt_n": 9}
        assert (reading.empty_events, reading.done, reading.error) == (0, False, None)

    def test_lm_studio_stats_are_its_timings(self, wire):
        body = {
            "model": "m",
            "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
            "stats": {"time_to_first_token": 0.1, "generation_time": 2.0},
            "usage": {"prompt_tokens": 3, "completion_time": 1.5},
        }
        reading = wire.read(
            "openai_chat", json.dumps(body).encode(), content_type="application/json"
        )
        assert reading.timings == {"time_to_first_token": 0.1, "generation_time": 2.0}
        assert reading.usage["completion_time"] == 1.5
        assert (texts(reading), reading.model) == ([("answer", "hi")], "m")

    @pytest.mark.parametrize(
        ("event", "words"),
        [
            ({"error": {"message": "out of\nmemory", "code": 500}}, "out of memory"),
            ({"error": "broken"}, "broken"),
            ({"object": "error", "message": "older vLLM"}, "older vLLM"),
            ({"error": {"code": 7}}, '{"code":7}'),
            ({"error": True}, "an error without a message"),
        ],
    )
    def test_an_error_in_the_stream_keeps_what_came_before(self, wire, event, words):
        reading = wire.read("openai_chat", sse(delta(content="a")), sse(event))
        assert texts(reading) == [("answer", "a")]
        assert (reading.error.kind, reading.error.message) == ("stream", words)

    def test_an_error_event_by_name(self, wire):
        stream = sse(delta(content="a")) + b'event: error\ndata: {"message": "bad"}\n\n'
        assert wire.read("openai_chat", stream).error.message == "bad"

    def test_a_null_error_member_is_no_error(self, wire):
        reading = wire.read("openai_chat", sse({**delta(content="a"), "error": None}, FINISH))
        assert reading.error is None


def test_completions_text_and_finish(wire):
    chunks = [
        {"choices": [{"text": "", "finish_reason": None}]},
        {"choices": [{"text": " a", "finish_reason": None}]},
        {"choices": [{"text": "b", "finish_reason": "stop"}]},
    ]
    reading = wire.read("openai_completions", sse(*chunks, "[DONE]"))
    assert texts(reading) == [("answer", " a"), ("answer", "b")]
    assert (reading.empty_events, reading.finish_reason) == (1, "stop")
    whole = json.dumps({"choices": [{"text": "all", "finish_reason": "length"}]}).encode()
    reading = wire.read("openai_completions", whole, content_type="application/json")
    assert (texts(reading), reading.finish_reason) == ([("answer", "all")], "length")


class TestOpenaiResponses:
    def test_reasoning_tool_call_and_end(self, wire):
        done = {"status": "completed", "usage": {"input_tokens": 5}, "model": "m"}
        events = [
            {"type": "response.created", "response": {"status": "in_progress", "usage": None}},
            {"type": "response.reasoning_summary_text.delta", "delta": "s"},
            {"type": "response.reasoning_text.delta", "delta": "r"},
            {
                "type": "response.output_item.added",
                "item": {"type": "function_call", "name": "f", "arguments": ""},
            },
            {"type": "response.function_call_arguments.delta", "delta": "{}"},
            {"type": "response.output_text.delta", "delta": ""},
            {"type": "response.audio.delta", "delta": "AAAA"},
            {"type": "response.output_text.delta", "delta": "a"},
            {"type": "response.output_text.done", "text": "a"},
            {"type": "response.completed", "response": done, "timings": {"prompt_n": 5}},
        ]
        for names in (True, False):
            reading = wire.read("openai_responses", sse(*events, names=names))
            assert texts(reading) == [
                ("reasoning", "s"),
                ("reasoning", "r"),
                ("tool", "f"),
                ("tool", "{}"),
                ("answer", "a"),
            ]
            assert (reading.usage, reading.timings) == ({"input_tokens": 5}, {"prompt_n": 5})
            assert (reading.finish_reason, reading.done, reading.model) == ("completed", True, "m")
            assert (reading.empty_events, reading.error) == (1, None)

    def test_incomplete_says_why(self, wire):
        response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        event = {"type": "response.incomplete", "response": response}
        reading = wire.read("openai_responses", sse(event))
        assert (reading.finish_reason, reading.error) == ("max_output_tokens", None)

    @pytest.mark.parametrize(
        "event",
        [
            {"type": "response.failed", "response": {"error": {"message": "bad"}}},
            {"type": "error", "code": "x", "message": "bad"},
        ],
    )
    def test_failures(self, wire, event):
        start = {"type": "response.output_text.delta", "delta": "a"}
        reading = wire.read("openai_responses", sse(start, event))
        assert (reading.error.kind, reading.error.message) == ("stream", "bad")
        assert texts(reading) == [("answer", "a")]

    def test_a_whole_answer(self, wire):
        body = {
            "status": "completed",
            "error": None,
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}]},
                {"type": "function_call", "name": "f", "arguments": "{}"},
                {"type": "message", "content": [{"type": "output_text", "text": "a"}]},
            ],
            "usage": {"output_tokens": 3},
        }
        reading = wire.read(
            "openai_responses", json.dumps(body).encode(), content_type="application/json"
        )
        assert texts(reading) == [("reasoning", "r"), ("answer", "a"), ("tool", "f{}")]
        assert (reading.usage, reading.error) == ({"output_tokens": 3}, None)


class TestAnthropicMessages:
    def test_thinking_tool_and_ping(self, wire):
        def block(kind: str, **members: object) -> dict[str, object]:
            return {"type": "content_block_delta", "delta": {"type": kind, **members}}

        reading = wire.read(
            "anthropic_messages",
            sse(
                {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 4}}},
                {"type": "ping"},
                {"type": "content_block_start", "content_block": {"type": "thinking"}},
                block("thinking_delta", thinking="t"),
                block("signature_delta", signature="xyz"),
                block("text_delta", text=""),
                block("text_delta", text="a"),
                {
                    "type": "content_block_start",
                    "content_block": {"type": "tool_use", "name": "f", "input": {}},
                },
                block("input_json_delta", partial_json='{"x'),
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": "tool_use"},
                    "usage": {"output_tokens": 9},
                },
                {"type": "message_stop"},
                names=True,
            ),
        )
        assert texts(reading) == [
            ("reasoning", "t"),
            ("answer", "a"),
            ("tool", "f"),
            ("tool", '{"x'),
        ]
        assert reading.usage == {"input_tokens": 4, "output_tokens": 9}
        assert reading.keepalives == [(1_000, "ping")]
        assert (reading.empty_events, reading.finish_reason) == (1, "tool_use")
        assert (reading.done, reading.model, reading.error) == (True, "m", None)

    def test_overloaded(self, wire):
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
        reading = wire.read("anthropic_messages", sse(error, names=True))
        assert (reading.error.kind, reading.error.message) == ("stream", "busy")

    def test_a_whole_answer(self, wire):
        body = {
            "type": "message",
            "model": "m",
            "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}],
            "stop_reason": "end_turn",
            "usage": {"cache_read_input_tokens": 215, "input_tokens": 1},
        }
        reading = wire.read(
            "anthropic_messages", json.dumps(body).encode(), content_type="application/json"
        )
        assert texts(reading) == [("reasoning", "t"), ("answer", "a")]
        assert reading.usage == {"cache_read_input_tokens": 215, "input_tokens": 1}
        assert (reading.finish_reason, reading.error) == ("end_turn", None)


class TestOllamaNative:
    FINAL = {  # noqa: RUF012 - a constant of the tests
        "model": "m",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "load_duration": 5,
        "prompt_eval_count": 26,
        "prompt_eval_duration": 7,
        "eval_count": 3,
    }

    def test_chat(self, wire):
        call = {"function": {"name": "f", "arguments": {"x": 1}}}
        stream = [
            lines({"model": "m", "message": {"role": "assistant", "content": ""}, "done": False}),
            lines({"message": {"content": "", "thinking": "t"}, "done": False}),
            lines({"message": {"content": "a"}, "done": False}),
            lines({"message": {"content": "", "tool_calls": [call]}, "done": False}),
            lines(self.FINAL),
        ]
        reading = wire.read("ollama_native", *stream, content_type="application/x-ndjson")
        assert texts(reading) == [("reasoning", "t"), ("answer", "a"), ("tool", 'f{"x":1}')]
        assert [event.at_ns for event in reading.text] == [2_000, 3_000, 4_000]
        assert reading.timings == {k: v for k, v in self.FINAL.items() if k != "message"}
        assert (reading.finish_reason, reading.finish_ns) == ("stop", 5_000)
        assert (reading.empty_events, reading.done, reading.error) == (1, True, None)

    def test_generate_without_done_reason_as_old_versions_end(self, wire):
        stream = lines(
            {"response": "a", "done": False},
            {"response": "", "done": True, "context": [1, 2], "eval_count": 1},
        )
        reading = wire.read("ollama_native", stream, content_type="application/x-ndjson")
        assert texts(reading) == [("answer", "a")]
        assert reading.timings == {"done": True, "eval_count": 1}
        assert (reading.finish_reason, reading.done, reading.error) == (None, True, None)

    def test_an_error_line(self, wire):
        stream = lines({"response": "a", "done": False}, {"error": "runner died"})
        reading = wire.read("ollama_native", stream, content_type="application/x-ndjson")
        assert (texts(reading), reading.error.message) == ([("answer", "a")], "runner died")

    def test_a_stream_cut_between_lines(self, wire):
        stream = lines({"response": "a", "done": False})
        reading = wire.read("ollama_native", stream, content_type="application/x-ndjson")
        assert (reading.error.kind, reading.done) == ("stream", False)

    def test_a_whole_answer(self, wire):
        body = json.dumps({**self.FINAL, "message": {"content": "all"}}).encode()
        reading = wire.read("ollama_native", body, content_type="application/json")
        assert texts(reading) == [("answer", "all")]
        assert reading.timings["prompt_eval_count"] == 26
        assert "message" not in reading.timings


class TestLlamaNative:
    def test_reasons_of_old_and_new_builds(self, wire):
        for final, reason in [
            ({"stop_type": "limit"}, "limit"),
            ({"stopped_eos": True, "stopped_limit": False}, "eos"),
            ({}, "stop"),
        ]:
            end = {"content": "", "stop": True, "truncated": True, **final}
            reading = wire.read("llama_native", sse({"content": "a", "stop": False}, end))
            assert (reading.finish_reason, reading.done) == (reason, True)
            assert reading.usage == {"truncated": True}

    def test_an_old_error_line(self, wire):
        stream = sse({"content": "a", "stop": False})
        reading = wire.read("llama_native", stream + b'error: {"code":500,"message":"oom"}\n\n')
        assert (texts(reading), reading.error.message) == ([("answer", "a")], "oom")


class TestLmstudioNative:
    STATS = {"input_tokens": 329, "total_output_tokens": 2, "tokens_per_second": 43.7}  # noqa: RUF012

    def test_named_events(self, wire):
        events = [
            {"type": "chat.start", "model_instance_id": "m"},
            {"type": "model_load.start"},
            {"type": "model_load.progress", "progress": 0.65},
            {"type": "model_load.end", "load_time_seconds": 12.34},
            {"type": "prompt_processing.start"},
            {"type": "prompt_processing.progress", "progress": 1},
            {"type": "prompt_processing.end"},
            {"type": "reasoning.start"},
            {"type": "reasoning.delta", "content": "r"},
            {"type": "tool_call.start", "tool": "f"},
            {"type": "tool_call.arguments", "tool": "f", "arguments": {"x": 1}},
            {"type": "tool_call.result", "tool": "f", "output": "not generated"},
            {"type": "message.delta", "content": ""},
            {"type": "message.delta", "content": "a"},
            {"type": "message.end"},
            {"type": "chat.end", "result": {"output": [], "stats": self.STATS}},
        ]
        stream = [sse(event, names=True) for event in events]
        reading = wire.read("lmstudio_native", *stream)
        assert texts(reading) == [
            ("reasoning", "r"),
            ("tool", "f"),
            ("tool", '{"x":1}'),
            ("answer", "a"),
        ]
        assert [(s.name, s.progress_frac) for s in reading.stages[:3]] == [
            ("model_load.start", None),
            ("model_load.progress", 0.65),
            ("model_load.end", None),
        ]
        end = Stage(at_ns=7_000, name="prompt_processing.end")
        assert reading.stages[-1] == end
        assert reading.progress == []
        assert reading.timings == {"model_load_time_seconds": 12.34, **self.STATS}
        assert reading.usage == {"input_tokens": 329, "total_output_tokens": 2}
        assert (reading.empty_events, reading.model, reading.finish_ns) == (1, "m", 16_000)
        assert (reading.done, reading.finish_reason, reading.error) == (True, None, None)

    def test_an_error_before_the_end(self, wire):
        events = [
            {"type": "message.delta", "content": "a"},
            {"type": "error", "error": {"type": "unknown", "message": "model crashed"}},
            {"type": "chat.end", "result": {"stats": self.STATS}},
        ]
        reading = wire.read("lmstudio_native", sse(*events, names=True))
        assert (reading.error.kind, reading.error.message) == ("stream", "model crashed")
        assert reading.timings == self.STATS

    def test_a_whole_answer(self, wire):
        body = {
            "model_instance_id": "m",
            "output": [
                {"type": "reasoning", "content": "r"},
                {"type": "message", "content": "a"},
                {"type": "tool_call", "tool": "f", "arguments": {}, "output": "no"},
            ],
            "stats": self.STATS,
        }
        reading = wire.read(
            "lmstudio_native", json.dumps(body).encode(), content_type="application/json"
        )
        assert texts(reading) == [("reasoning", "r"), ("answer", "a"), ("tool", "f")]
        assert (reading.done, reading.model, reading.error) == (True, "m", None)
