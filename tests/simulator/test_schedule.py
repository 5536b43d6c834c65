from __future__ import annotations

from itertools import pairwise

import pytest
from telling import CHAT, user

from twospeed.simulator.machine import Machine

# 7 template tokens and one of its own for each "word".
PROMPT = user("word " * 92 + "word", stream=True)
PROMPT_TOKENS = 101
PREFILL_S = 0.101


def prompt_of(server, body=PROMPT) -> int:
    return len(server.simulation.dialect.asked("chat", body).prompt)


def test_text_comes_after_prefill_and_then_step_by_step(server):
    s = server()
    assert prompt_of(s) == PROMPT_TOKENS
    told = s.ask(CHAT, {**PROMPT, "max_tokens": 4})
    assert told.times_s("text") == pytest.approx([PREFILL_S + k * 0.01 for k in range(4)])
    assert told.times_s("finish") == told.times_s("text")[-1:]


def test_depth_slows_each_step(server):
    machine = Machine(prefill_tps=1000, decode_tps=100, decode_half_depth=PROMPT_TOKENS)
    told = server(machine=machine).ask(CHAT, {**PROMPT, "max_tokens": 3})
    first, second, third = told.times_s("text")
    # The first step runs at the depth of the prompt, where it takes twice as long.
    assert second - first == pytest.approx(0.02)
    assert third - second == pytest.approx(0.01 * (1 + 102 / 101))


def test_attention_slows_prefill(server):
    machine = Machine(prefill_tps=1000, decode_tps=100, attention_half_depth=PROMPT_TOKENS / 2)
    told = server(machine=machine).ask(CHAT, {**PROMPT, "max_tokens": 1})
    assert told.times_s("text") == pytest.approx([2 * PREFILL_S])


def test_only_uncached_tokens_cost_prefill(server):
    s = server()
    s.ask(CHAT, {**PROMPT, "max_tokens": 1})
    told = s.ask(CHAT, {**PROMPT, "max_tokens": 1}, at_ns=10**9)
    assert told.times_s("text") == pytest.approx([1.001])


def test_the_next_turn_reuses_prompt_and_answer(server):
    s = server()
    first = s.ask(CHAT, {**PROMPT, "max_tokens": 20})
    said = "".join(first.job.answer)
    turn = {"role": "assistant", "content": said}
    messages = [*PROMPT["messages"], turn, {"role": "user", "content": "Go on"}]
    second = s.ask(CHAT, {"messages": messages, "stream": True, "max_tokens": 1}, at_ns=10**9)
    assert second.job.cached_tokens == PROMPT_TOKENS + 19
    assert second.job.prompt_tokens == PROMPT_TOKENS + 20 + 1 + 3 + 2 + 1 + 3


def test_the_first_token_comes_alone_and_the_others_in_chunks(server):
    told = server(tokens_per_chunk=4).ask(CHAT, {**PROMPT, "max_tokens": 10})
    texts = [write for write in told.writes if write.kind == "text"]
    assert [write.tokens for write in texts] == [1, 4, 4, 1]
    assert [w.at_ns / 1e9 - PREFILL_S for w in texts] == pytest.approx([0, 0.04, 0.08, 0.09])


def test_reasoning_comes_first_and_is_never_mixed_with_the_answer(server):
    told = server(reasoning_tokens=5, tokens_per_chunk=4).ask(CHAT, {**PROMPT, "max_tokens": 9})
    kinds = [(w.kind, w.tokens) for w in told.writes if w.tokens]
    assert kinds == [("reasoning", 1), ("reasoning", 4), ("text", 4)]
    deltas = [event["choices"][0]["delta"] for event in told.events if event["choices"]]
    thought = "".join(delta.get("reasoning_content", "") for delta in deltas)
    said = "".join(delta.get("content", "") for delta in deltas)
    assert (thought, said) == ("".join(told.job.reasoning), "".join(told.job.answer))
    assert thought
    assert said


def test_reasoning_can_be_switched_off_and_never_exceeds_the_limit(server):
    s = server(reasoning_tokens=50)
    off = {**PROMPT, "max_tokens": 8, "chat_template_kwargs": {"enable_thinking": False}}
    assert not s.ask(CHAT, off).job.reasoning
    assert len(s.ask(CHAT, {**PROMPT, "max_tokens": 8}, at_ns=10**9).job.reasoning) == 8


def test_bursts_come_at_the_same_mean_speed(server):
    machine = Machine(prefill_tps=1000, decode_tps=100, draft_tokens=4)
    told = server(machine=machine).ask(CHAT, {**PROMPT, "max_tokens": 31})
    texts = [write for write in told.writes if write.kind == "text"]
    assert [write.tokens for write in texts] == [1, 5, 1, 4, 2, 3, 5, 1, 4, 2, 3]
    assert told.job.decode_ns / 1e9 == pytest.approx(30 * 0.01)
    assert (told.job.drafted_tokens, told.job.accepted_tokens) == (40, 20)


def test_jitter_is_bounded_repeatable_and_not_nothing(server):
    machine = Machine(prefill_tps=1000, decode_tps=100, jitter_frac=0.3)
    body = {**PROMPT, "max_tokens": 50}
    one, same = (server(machine=machine, seed=7).ask(CHAT, body).times_s("text") for _ in "ab")
    other = server(machine=machine, seed=8).ask(CHAT, body).times_s("text")
    gaps = [b - a for a, b in pairwise(one)]
    assert one == same
    assert one != other
    assert all(0.007 - 1e-9 <= gap <= 0.013 + 1e-9 for gap in gaps)
    assert max(gaps) - min(gaps) > 0.002


def test_an_answer_without_a_stream_comes_whole_at_its_end(server):
    told = server().ask(CHAT, user("word " * 92 + "word", max_tokens=5))
    assert [(w.kind, w.end) for w in told.writes] == [("whole", True)]
    assert told.times_s("whole") == pytest.approx([PREFILL_S + 0.04])
    assert told.json["usage"]["completion_tokens"] == 5


def test_unlimited_answers_end_of_themselves_at_the_usual_length(server):
    told = server(answer_tokens=12).ask(CHAT, user("Hi"))
    assert told.json["usage"]["completion_tokens"] == 12
    assert told.json["choices"][0]["finish_reason"] == "stop"
    assert server().ask(CHAT, user("Hi")).json["usage"]["completion_tokens"] == 128


def test_the_context_bounds_the_answer(server):
    told = server(n_ctx=20).ask(CHAT, user("word " * 4 + "word", max_tokens=50))
    assert told.json["usage"]["total_tokens"] == 20
    assert told.json["choices"][0]["finish_reason"] == "length"


def test_a_shared_batch_slows_while_others_decode(server):
    machine = Machine(prefill_tps=1000, decode_tps=100, shared_batch_frac=1.0)
    s = server(machine=machine, slots=2)
    streams = [
        s.simulation.handle(s.request(CHAT, {**PROMPT, "max_tokens": 3}), 0, 0) for _ in "ab"
    ]
    for stream in streams:
        assert s.simulation.bench.start_next() is stream.job
    times = [w.at_ns / 1e9 for w in s.simulation.writes(streams[0]) if w.kind == "text"]
    # The second prompt shares nothing with the first, which still runs: both decode together.
    assert times == pytest.approx([PREFILL_S, PREFILL_S + 0.02, PREFILL_S + 0.04])
