"""Whatever JSON a stranger sends: nothing raises, nothing impossible becomes a number."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from twospeed.records.request_record import ServerTimes, TokenCounts
from twospeed.runtimes import fields
from twospeed.runtimes.registry import all_runtimes, identify_asks, recognise
from twospeed.runtimes.runtime import Answer, Generation
from twospeed.wire.reading import StreamReading

WORDS = (
    "models data id model name meta status value owned_by total_slots build_info params size "
    "size_vram context_length details model_info general.architecture config loaded_instances key "
    "state compatibility_type parameters max_seq_len version result queue idle tokens count length "
    "default_generation_settings n_ctx error message server_args page_size cache_mode type "
    "prompt_tokens completion_tokens prompt_tokens_details cached_tokens input_tokens "
    "completion_tokens_details reasoning_tokens cache_read_input_tokens total_tokens output_tokens "
    "cache_n prompt_n prompt_ms predicted_n predicted_ms prompt_eval_count eval_count "
    "eval_duration prompt_eval_duration prompt_eval_cached_count load_duration total_duration "
    "time_to_first_token_ms generation_time_ms queue_time_ms total_output_tokens prompt_time "
    "model_load_time_seconds completion_time total_prompt_time_sec is_generation model_path"
)
KEYS = WORDS.split()
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**30, -1, 2**63, 2**53, 0, 5e-324]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["Loading model", "loaded", "auto", "vllm", "Ollama is running"]),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=6),
    ),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), LEAVES | JSON, max_size=12)
METRICS = st.sampled_from(
    [
        b"vllm:num_requests_running -1\n",
        b"vllm:num_requests_running 1e400\n",
        b'vllm:cache_config_info{block_size="' + b"9" * 5000 + b'"} 1\n',
        b'vllm:cache_config_info{block_size="\xc2\xb2",cache_dtype=""} 1\n',
        b"sglang:num_running_reqs{ 1\n\xff\xfe",
    ]
)
PATHS = sorted(
    {ask.path for ask in identify_asks()}
    | {ask.path for runtime in all_runtimes() for ask in runtime.fact_asks("m")}
)
ANSWERS = st.builds(
    Answer,
    status=st.sampled_from([None, 200, 200, 200, 404, 503]),
    headers=st.dictionaries(
        st.sampled_from(["server", "x-request-id", "content-type"]),
        st.sampled_from(["uvicorn", "llama.cpp", "BaseHTTP/0.6", ""]),
    ),
    body=st.binary(max_size=30) | METRICS,
    json=OBJECTS | JSON,
)


def no_negative(struct: msgspec.Struct) -> bool:
    values = msgspec.structs.asdict(struct).values()
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return all(v >= 0 for v in numbers)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.dictionaries(st.sampled_from(PATHS), ANSWERS, max_size=8),
    st.none() | st.sampled_from(["m", ""]),
)
@example({"/get_server_info": Answer(status=200, json={"page_size": 2**40 + 1})}, None)
def test_answers_of_any_make(answers, model):
    assert recognise(answers) in all_runtimes()
    for runtime in all_runtimes():
        assert runtime.recognise(answers) in (0, 1, 2, 3)
        assert all(isinstance(name, str) and name for name in runtime.models(answers))
        assert isinstance(runtime.version(answers), str | None)
        facts = runtime.facts(answers, model)
        assert no_negative(facts)
        assert msgspec.json.decode(msgspec.json.encode(facts), type=type(facts)) == facts


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(ANSWERS)
def test_counts_of_any_make(answer):
    for runtime in all_runtimes():
        for found in (runtime.token_count(answer), runtime.activity(answer)):
            assert found is None or (isinstance(found, int) and found >= 0)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.none() | OBJECTS,
    st.none() | OBJECTS,
    st.lists(st.tuples(st.just(0), st.text(max_size=9) | st.just("keepalive 3/999999999"))),
)
def test_responses_of_any_make(usage, timings, keepalives):
    request = Generation(model="m", prompt="p", output_tokens=4)
    reading = StreamReading(usage=usage, timings=timings, keepalives=keepalives)
    for runtime in all_runtimes():
        counts, times = runtime.interpret(reading, request)
        assert no_negative(counts)
        if counts.cached_prompt_tokens is not None:
            assert counts.cached_prompt_tokens <= counts.prompt_tokens
        if times is not None:
            assert no_negative(times)
            assert (times.decode_s is None) == (times.decode_steps is None)
            assert times.prefill_s != 0
        json.dumps(msgspec.to_builtins((counts, times)), allow_nan=False)
        kept = msgspec.json.encode((counts, times))  # a saved run must be readable again
        assert msgspec.json.decode(kept, type=tuple[TokenCounts, ServerTimes | None])


@pytest.mark.parametrize("value", [True, -1, 1.5, "7", None, [], {}, float("nan"), 2**53 + 1])
def test_what_is_no_count(value):
    assert fields.whole({"n": value}, "n") is None


def test_what_is_a_count():
    assert [fields.whole(value) for value in (0, 7, 7.0, 2**53)] == [0, 7, 7, 2**53]


@pytest.mark.parametrize("value", [True, -0.1, "7", float("inf"), float("nan"), 10**400])
def test_what_is_no_number(value):
    assert fields.number({"n": value}, "n") is None


def test_a_way_through_something_else_ends_in_nothing():
    assert fields.text({"a": [{"b": "c"}]}, "a", "b") is None
    assert fields.objects({"a": {"b": 1}}, "a") == []
    assert fields.objects([1, {"b": 1}, None]) == [{"b": 1}]


@pytest.mark.parametrize("ms", [0, 1e-300, 5e-324, 1e-7, 1e13, 1e300])
def test_what_is_no_duration(ms):
    assert fields.duration_s({"ms": ms}, "ms", per_second=1e3) is None


def test_what_is_a_duration():
    assert fields.duration_s({"ns": 1}, "ns", per_second=1e9) == 1e-9
    assert fields.duration_s({"h": 100}, "h", per_second=1 / 3600) == 360_000


def test_more_tokens_than_any_request_has_are_no_count():
    assert fields.counted_tokens(10**9) == 10**9
    assert fields.counted_tokens(10**12) is None


def test_a_context_of_0_is_one_that_is_not_set():
    assert fields.context_tokens({"n_ctx": 0}, "n_ctx") is None
    assert fields.context_tokens({"n_ctx": 1}, "n_ctx") == 1
