"""Cold, partial and full hits in each runtime's own words; numbers from captures if there are."""

from __future__ import annotations

import pytest

from twospeed.records.request_record import ServerSigns, ServerTimes, TokenCounts
from twospeed.runtimes.llama_timings import llama_signs
from twospeed.runtimes.registry import runtime_by_id
from twospeed.wire.reading import Progress, StreamReading

COLD_TIMINGS = {
    "cache_n": 0,
    "prompt_n": 224,
    "prompt_ms": 2013.447,
    "prompt_per_token_ms": 8.988602678571429,
    "prompt_per_second": 111.251997196847,
    "predicted_n": 6,
    "predicted_ms": 108.794,
    "predicted_per_token_ms": 21.7588,
    "predicted_per_second": 45.95841682445723,
}
VLLM_METRICS = {
    "time_to_first_token_ms": 4.956216000209679,
    "generation_time_ms": 10.67916600004537,
    "queue_time_ms": 0.030486000014207093,
    "mean_itl_ms": 2.135833200009074,
    "tokens_per_second": 383.74502138176905,
}
OLLAMA_FINAL = {
    "model": "llama3.2:1b",
    "done": True,
    "total_duration": 30258609300,
    "load_duration": 19906358300,
    "prompt_eval_count": 29,
    "prompt_eval_duration": 10175903000,
    "eval_count": 3,
    "eval_duration": 173639000,
}


def usage(prompt, output, cached=None, **more):
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": prompt, "completion_tokens": output, **details, **more}


def counted(prompt, cached, output, reasoning=None):
    return TokenCounts(
        prompt_tokens=prompt,
        cached_prompt_tokens=cached,
        output_tokens=output,
        reasoning_tokens=reasoning,
    )


@pytest.fixture
def interpret(chat, read):
    def of(name, usage=None, timings=None, **more):
        return runtime_by_id(name).interpret(read(usage, timings, **more), chat)

    return of


# Any endpoint.


def test_nothing_said_is_nothing_known(interpret):
    assert interpret("openai") == (TokenCounts(), None)


@pytest.mark.parametrize("details", [None, {}, {"cached_tokens": None}, []])
def test_cached_tokens_that_are_not_told_are_unknown(interpret, details):
    counts, _ = interpret("openai", {**usage(312, 6), "prompt_tokens_details": details})
    assert counts == counted(312, None, 6)


def test_cached_and_reasoning_tokens_that_are_told(interpret):
    told = usage(312, 60, cached=0, completion_tokens_details={"reasoning_tokens": 50})
    assert interpret("openai", told) == (counted(312, 0, 60, 50), None)


def test_a_part_larger_than_its_whole_is_unknown(interpret):
    told = usage(10, 5, cached=11, completion_tokens_details={"reasoning_tokens": 6})
    assert interpret("openai", told)[0] == counted(10, None, 5)


def test_responses_style_usage_counts_the_whole_prompt(interpret):
    told = {
        "input_tokens": 407,
        "output_tokens": 5,
        "total_tokens": 412,
        "input_tokens_details": {"cached_tokens": 384},
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    assert interpret("openai", told)[0] == counted(407, 384, 5, 2)


# llama-server.


def test_llama_server_cold(interpret):
    counts, times = interpret("llama-server", usage(224, 6, cached=0), COLD_TIMINGS)
    assert counts == counted(224, 0, 6)
    assert times == ServerTimes(
        told_by="timings",
        prefill_s=pytest.approx(2.013447),
        prefill_tokens=224,
        decode_s=pytest.approx(0.108794),
        decode_steps=5,
    )
    assert times.decode_s / times.decode_steps * 1e3 == pytest.approx(
        COLD_TIMINGS["predicted_per_token_ms"]
    )


def test_llama_server_partial_and_full_hit(interpret):
    partial = {"cache_n": 3, "prompt_n": 219, "prompt_ms": 2606.16, "predicted_n": 3}
    counts, times = interpret("llama-server", usage(222, 3, cached=3), partial)
    assert (counts.cached_prompt_tokens, times.prefill_tokens) == (3, 219)
    full = {"cache_n": 242, "prompt_n": 1, "prompt_ms": 21.0, "predicted_n": 6, "predicted_ms": 99}
    counts, times = interpret("llama-server", usage(243, 6, cached=242), full)
    assert (counts.cached_prompt_tokens, times.prefill_tokens) == (242, 1)


def test_llama_server_without_usage_is_counted_by_its_timings(interpret):
    counts, _ = interpret("llama-server", None, {**COLD_TIMINGS, "cache_n": 3})
    assert counts == counted(227, 3, 6)


def test_old_llama_server_without_cache_n_does_not_tell_the_prompt_length(interpret):
    old = {key: value for key, value in COLD_TIMINGS.items() if key != "cache_n"}
    counts, times = interpret("llama-server", None, old)
    assert counts == counted(None, None, 6)
    assert times.prefill_tokens == 224
    assert interpret("llama-server", usage(230, 6), old)[0] == counted(230, None, 6)


def test_old_llama_server_divides_by_all_tokens_but_times_the_same_steps(interpret):
    old = {**COLD_TIMINGS, "predicted_per_token_ms": 108.794 / 6}
    assert interpret("llama-server", None, old)[1].decode_steps == 5


def test_llama_server_with_one_token_has_no_decode(interpret):
    one = {**COLD_TIMINGS, "predicted_n": 1, "predicted_ms": 0.001}
    times = interpret("llama-server", None, one)[1]
    assert (times.decode_s, times.decode_steps) == (None, None)
    assert times.prefill_s == pytest.approx(2.013447)


def test_a_clock_at_zero_was_not_running(interpret):
    timings = {**COLD_TIMINGS, "prompt_ms": 0.0, "predicted_ms": 0}
    counts, times = interpret("llama-server", None, timings)
    assert times is None
    assert counts.prompt_tokens == 224


def test_llama_server_counts_only_fresh_tokens_in_anthropic_style(interpret):
    told = {"input_tokens": 1, "cache_read_input_tokens": 215, "output_tokens": 5}
    assert interpret("llama-server", told)[0] == counted(216, 215, 5)


# Ollama.


@pytest.mark.parametrize(
    ("processed", "step"),
    [
        ([0, 8, 16, 24, 27], 8),
        ([310, 2358, 4020], 2048),
        ([0, 1, 759, 1271, 1275], 758),  # a sliding window: ends early for checkpoints
        ([24, 500], None),
        ([0, 0, 512], None),
        ([], None),
    ],
)
def test_llama_server_shows_the_steps_of_prefill(processed, step):
    reading = StreamReading(
        progress=[Progress(at_ns=n, processed=done, total=4020) for n, done in enumerate(processed)]
    )
    signs = llama_signs(reading)
    assert (signs.prefill_step_tokens if signs else None) == step


def test_llama_server_shows_drafted_tokens():
    timings = {"draft_n": 282, "draft_n_accepted": 21}
    signs = llama_signs(StreamReading(timings=timings))
    assert signs == ServerSigns(drafted_tokens=282, accepted_tokens=21)
    assert llama_signs(StreamReading(timings={"predicted_n": 5})) is None


def test_ollama_cold_without_a_cached_count(interpret):
    counts, times = interpret("ollama", None, OLLAMA_FINAL)
    assert counts == counted(29, None, 3)
    assert times == ServerTimes(
        told_by="eval_duration",
        load_s=pytest.approx(19.9063583),
        prefill_s=pytest.approx(10.175903),
        decode_s=pytest.approx(0.173639),
        decode_steps=2,
        total_s=pytest.approx(30.2586093),
    )


@pytest.mark.parametrize(("cached", "processed"), [(0, 29), (16, 13), (28, 1)])
def test_ollama_that_tells_cached_tokens(interpret, cached, processed):
    final = {**OLLAMA_FINAL, "prompt_eval_cached_count": cached}
    counts, times = interpret("ollama", None, final)
    assert counts.cached_prompt_tokens == cached
    assert times.prefill_tokens == processed


def test_ollama_of_2024_leaves_the_prompt_out_after_a_hit(interpret):
    final = {k: v for k, v in OLLAMA_FINAL.items() if not k.startswith("prompt_eval")}
    counts, times = interpret("ollama", None, final)
    assert counts == counted(None, None, 3)
    assert (times.prefill_s, times.prefill_tokens) == (None, None)
    assert times.queue_s is None


def test_ollama_prints_a_constant_zero_on_its_other_routes(interpret):
    told = {"input_tokens": 40, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 0}}
    assert interpret("ollama", told)[0] == counted(40, None, 5)
    assert interpret("ollama", usage(40, 5, cached=32))[0] == counted(40, 32, 5)


# vLLM.


def test_vllm_without_flags_tells_counts_only(interpret):
    assert interpret("vllm", {**usage(312, 6), "prompt_tokens_details": None}) == (
        counted(312, None, 6),
        None,
    )


def test_vllm_metrics_leave_the_queue_out_of_prefill(interpret):
    counts, times = interpret("vllm", usage(312, 6), VLLM_METRICS)
    assert times.queue_s == pytest.approx(0.000030486)
    assert times.prefill_s == pytest.approx(0.004956216)
    assert times.prefill_tokens is None
    assert times.decode_s / times.decode_steps * 1e3 == pytest.approx(VLLM_METRICS["mean_itl_ms"])
    assert counts.cached_prompt_tokens is None


def test_vllm_hit_comes_in_blocks_and_its_zero_is_real(interpret):
    counts, times = interpret("vllm", usage(407, 5, cached=384), VLLM_METRICS)
    assert (counts.cached_prompt_tokens, times.prefill_tokens) == (384, 23)
    assert interpret("vllm", usage(407, 5, cached=0))[0].cached_prompt_tokens == 0


def test_vllm_metrics_may_be_null(interpret):
    nothing = dict.fromkeys(VLLM_METRICS)
    assert interpret("vllm", usage(312, 6), nothing)[1] is None


def test_vllm_anthropic_parts_add_up(interpret):
    told = {
        "input_tokens": 20,
        "output_tokens": 5,
        "cache_creation_input_tokens": 384,
        "cache_read_input_tokens": 0,
    }
    assert interpret("vllm", told)[0] == counted(404, 0, 5)


# LM Studio.


def test_lm_studio_first_token_time_is_no_prefill_time(interpret):
    stats = {
        "input_tokens": 40,
        "total_output_tokens": 140,
        "reasoning_output_tokens": 24,
        "tokens_per_second": 12.78864879903552,
        "time_to_first_token_seconds": 0.892,
        "model_load_time_seconds": 16.048,
    }
    counts, times = interpret("lmstudio", None, stats)
    assert counts == counted(40, None, 140, 24)
    assert times == ServerTimes(told_by="stats", load_s=16.048)
    del stats["model_load_time_seconds"]
    assert interpret("lmstudio", None, stats)[1] is None


def test_older_lm_studio_tells_counts_only(interpret):
    stats = {"tokens_per_second": 51.4, "time_to_first_token": 0.111, "generation_time": 0.954}
    assert interpret("lmstudio-0.3", usage(24, 53), stats) == (counted(24, None, 53), None)


# mlx_lm.server.


def test_mlx_tells_cached_tokens_itself(interpret):
    for cached in (0, 393, 406):
        assert interpret("mlx_lm", usage(407, 5, cached=cached))[0] == counted(407, cached, 5)


@pytest.mark.parametrize(
    ("comments", "cached"),
    [
        (["keepalive 398/407", "keepalive 406/407", "keepalive 407/407"], 0),
        (["keepalive 1/1"], 406),
        (["ping", "keepalive 13/14"], 393),
        (["keepalive 1/500"], 0),
        (["keepalive 0/0"], None),
        (["keepalive x/y", "keepalive 5"], None),
        ([], None),
    ],
)
def test_mlx_keepalives_count_what_was_not_cached(interpret, comments, cached):
    keepalives = [(1000 + n, comment) for n, comment in enumerate(comments)]
    counts, _ = interpret("mlx_lm", usage(407, 5), keepalives=keepalives)
    assert counts == counted(407, cached, 5)


def test_mlx_usage_goes_before_keepalives_and_without_usage_nothing_is_known(interpret):
    keepalives = [(1000, "keepalive 1/1")]
    counts, _ = interpret("mlx_lm", usage(407, 5, cached=393), keepalives=keepalives)
    assert counts.cached_prompt_tokens == 393
    assert interpret("mlx_lm", None, keepalives=keepalives)[0] == TokenCounts()


# transformers serve, KoboldCpp, SGLang.


def test_transformers_zero_is_a_constant(interpret):
    told = {
        "input_tokens": 407,
        "output_tokens": 5,
        "total_tokens": 412,
        "input_tokens_details": {"cached_tokens": 0},
    }
    assert interpret("transformers", told) == (counted(407, None, 5), None)
    assert interpret("transformers", usage(407, 5)) == (counted(407, None, 5), None)


def test_koboldcpp_tells_counts_only(interpret):
    assert interpret("koboldcpp", usage(64, 5)) == (counted(64, None, 5), None)


def test_sglang_tells_cached_tokens_with_its_flag(interpret):
    assert interpret("sglang", usage(64, 5))[0] == counted(64, None, 5)
    assert interpret("sglang", usage(64, 5, cached=0))[0] == counted(64, 0, 5)


# TabbyAPI and mistral.rs.


def test_tabbyapi_times_of_usage(interpret):
    told = usage(
        1663, 194, prompt_time=0.02, completion_time=21.4, total_time=21.42, prompt_tokens_per_sec=1
    )
    counts, times = interpret("tabbyapi", told)
    assert counts == counted(1663, None, 194)
    assert times == ServerTimes(
        told_by="usage", prefill_s=0.02, decode_s=21.4, decode_steps=193, total_s=21.42
    )


def test_tabbyapi_default_zero_is_unknown_and_a_rounded_zero_no_time(interpret):
    told = usage(1663, 194, cached=0, prompt_time=0.0, prompt_tokens_per_sec="Indeterminate")
    counts, times = interpret("tabbyapi", told)
    assert counts.cached_prompt_tokens is None
    assert times is None


def test_tabbyapi_with_timings_is_read_like_llama_server(interpret):
    counts, times = interpret("tabbyapi", usage(224, 6, cached=0), COLD_TIMINGS)
    assert counts == counted(224, 0, 6)
    assert (times.told_by, times.prefill_tokens, times.decode_steps) == ("timings", 224, 5)


def test_mistralrs_times_of_usage(interpret):
    told = usage(397, 100, total_prompt_time_sec=1.06, total_completion_time_sec=7.47)
    _, times = interpret("mistralrs", told)
    assert times == ServerTimes(told_by="usage", prefill_s=1.06, decode_s=7.47, decode_steps=99)


def test_llama_server_timings_go_before_a_usage_that_contradicts_them(interpret):
    for prompt in (0, 2240):
        counts, times = interpret("llama-server", usage(prompt, 6, cached=0), COLD_TIMINGS)
        assert counts == counted(224, 0, 6)
        assert times.prefill_tokens == 224
    empty = COLD_TIMINGS | {"prompt_n": 0}
    assert interpret("llama-server", usage(224, 6, cached=3), empty)[0] == counted(224, 3, 6)


def test_vllm_a_queue_of_0_was_no_wait_and_an_impossible_one_is_unknown(interpret):
    def queue_s(ms):
        return interpret("vllm", usage(64, 5), VLLM_METRICS | {"queue_time_ms": ms})[1].queue_s

    assert queue_s(0) == 0.0
    assert queue_s(250) == 0.25
    assert queue_s(2**52) is None
