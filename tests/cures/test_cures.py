from __future__ import annotations

import pytest
from msgspec.structs import replace

from twospeed.cures import fewer_threads, flash_attention, quantized_kv_cache
from twospeed.cures.cure import CURES, Proposal
from twospeed.cures.pace import pace_of
from twospeed.cures.registry import least_worth_s, proposers, weigh, why_not
from twospeed.cures.smaller_quantization import BITS, bits_per_weight, fewer_bytes
from twospeed.findings.finding import CAUSES, Cause, Finding
from twospeed.findings.observed import observe
from twospeed.findings.registry import find_all
from twospeed.fits.interval import Interval
from twospeed.limits.ggml_types import bytes_per_weight
from twospeed.records.run import (
    Conditions,
    MachineFacts,
    ModelHeader,
    RuntimeFacts,
    ServerProcess,
)


def weighed(run):
    observed = observe(run)
    cures, idle = weigh(observed, find_all(observed))
    return {cure.cure: cure for cure in cures}, {wont.cure: wont for wont in idle}


def test_slow_prefill_is_cured_at_the_prompt(runs):
    cures, idle = weighed(runs.run_of(runs.PREFILL_SLOW))
    machine = runs.PREFILL_SLOW
    assert list(cures) == [
        "keep the prefix stable",
        "smaller model",
        "shorter prompt",
        "more compute",
    ]
    half = machine.prefill_s(2000) - machine.prefill_s(1000)
    assert cures["shorter prompt"].saves_s.likely == pytest.approx(half, rel=0.02)
    kept = machine.prefill_s(2000) - machine.prefill_s(200, cached=1800)
    assert cures["keep the prefix stable"].saves_s.likely == pytest.approx(kept, rel=0.02)
    assert {cure.for_cause for cure in cures.values()} == {"prompt.large"}
    for name in ("smaller quantization", "shorter answer", "faster memory", "smaller context"):
        assert idle[name].why == "wrong_place"
    assert idle["smaller context"].saves_s.likely == 0.0


def test_slow_decode_is_cured_at_the_weights_and_the_answer(runs):
    cures, idle = weighed(runs.run_of(runs.DECODE_SLOW))
    assert list(cures) == [
        "shorter answer",
        "smaller model",
        "faster memory",
        "smaller quantization",
    ]
    decode_s = 299 * 0.12
    assert cures["shorter answer"].saves_s.likely == pytest.approx(decode_s / 2, rel=0.02)
    saves = cures["smaller quantization"].saves_s
    assert 0 < saves.low < saves.likely < saves.high < decode_s / 2
    assert {"keep the prefix stable", "shorter prompt", "more compute"} <= set(idle)
    assert idle["shorter prompt"].saves_s.likely < 1.0


def test_a_shorter_prompt_helps_decode_only_through_depth(runs):
    flat, _ = weighed(runs.run_of(runs.BOTH_SLOW))
    saved = flat["shorter prompt"].saves_s.likely
    prefill = 0.004 * 1000
    depth = 299 * 5e-5 * 1000
    assert saved == pytest.approx(prefill + depth, rel=0.03)


def test_quantization_can_slow_down_from_four_bits_on(runs):
    facts = RuntimeFacts(quantization="Q4_0")
    _, idle = weighed(runs.run_of(runs.DECODE_SLOW, facts=facts))
    assert idle["smaller quantization"].why == "may_slow_down"
    assert idle["smaller quantization"].saves_s.low < 0


@pytest.mark.parametrize(
    ("facts", "bits"),
    [
        (RuntimeFacts(quantization="IQ2_XXS"), 2.38),
        (RuntimeFacts(quantization="4bit"), 4.0),
        (RuntimeFacts(quantization="F16"), 16.0),
        (RuntimeFacts(size_bytes=1000, parameters=1000), 8.0),
        (RuntimeFacts(), None),
    ],
)
def test_bits_per_weight(runs, facts, bits):
    assert bits_per_weight(observe(runs.run_of(runs.HEALTHY, facts=facts))) == bits


def test_a_stable_prefix_gains_nothing_while_reuse_is_off(runs):
    cures, idle = weighed(runs.run_of(runs.Machine(per_token_s=0.003, reuses=False)))
    assert cures["turn reuse on"].for_cause == "prompt_cache.disabled"
    assert cures["turn reuse on"].how == (
        "start with --cache-prompt (or LLAMA_ARG_CACHE_PROMPT=true)",
        'send "cache_prompt": true',
    )
    assert cures["turn reuse on"].check == (
        "twospeed verify http://127.0.0.1:8080 "
        "--request cache_prompt=false --request cache_prompt=true"
    )
    assert idle["keep the prefix stable"].why == "reuse_is_off"


def test_reasoning_before_the_answer(runs):
    cures, idle = weighed(runs.run_of(runs.Machine(per_token_s=3e-4, reasoning_frac=0.8)))
    assert cures["less reasoning"].saves_s.likely == pytest.approx(0.4 * 299 * 0.01, rel=0.05)
    assert idle["shorter answer"].why == "after_the_wait"


def test_queue_load_and_offload_have_their_own_cures(runs):
    cures, _ = weighed(runs.run_of(runs.Machine(per_token_s=3e-4, queue_s=6.0)))
    saves = cures["give the conversation its own slot"].saves_s
    assert (saves.low, saves.likely, saves.high) == pytest.approx((3.0, 6.0, 6.0), abs=0.05)
    run = runs.without_arrivals(runs.run_of(runs.HEALTHY, runtime="ollama"))
    first = run.records[0]
    cold = replace(first, server=replace(first.server, load_s=20.0))
    cures, _ = weighed(replace(run, records=(cold, *run.records[1:])))
    assert cures["keep the model loaded"].saves_s.likely == 20.0
    assert "OLLAMA_KEEP_ALIVE" in cures["keep the model loaded"].how[0]
    split = RuntimeFacts(size_bytes=10, size_vram_bytes=7)
    cures, _ = weighed(runs.run_of(runs.DECODE_SLOW, facts=split))
    assert next(iter(cures)) == "full offload"


def test_nothing_is_proposed_where_nothing_was_found(runs):
    assert weighed(runs.run_of(runs.HEALTHY)) == ({}, {})
    assert weighed(runs.blind_run()) == ({}, {})


def assuming(cause: Cause) -> Finding:
    return Finding(cause=cause, phase="both", certainty="reported", costs_s=None)


def run_with_everything(runs):
    """One run in which every kind of evidence is there."""
    facts = RuntimeFacts(
        n_ctx=16384, n_ubatch=8, threads=8, slots=1, size_bytes=10**10, size_vram_bytes=6 * 10**9
    )
    machine = MachineFacts(
        physical_cores=2,
        clock_hz=1e9,
        clock_max_hz=2e9,
        server=ServerProcess(swapped_bytes=10**9),
    )
    slow = runs.Machine(
        per_token_s=0.004,
        decode_per_token_s=0.1,
        decode_per_depth_s=1e-5,
        queue_s=14.0,
        delay_s=4.0,
        reasoning_frac=0.3,
    )
    run = runs.run_of(slow, facts=facts, machine=machine, loading_s=9.0, round_trip_s=5.0)
    return replace(run, conditions=Conditions(host_load=0.4, other_requests=2))


@pytest.mark.parametrize("cause", [one for one in CAUSES if one != "measurement.artifact"])
def test_every_cause_is_served_by_a_change(runs, cause):
    cures, _ = weigh(observe(run_with_everything(runs)), [assuming(cause)])
    assert cures, cause
    assert {cure.for_cause for cure in cures} == {cause}


def test_a_wrong_number_has_no_cure(runs):
    cures, _ = weigh(observe(run_with_everything(runs)), [assuming("measurement.artifact")])
    assert cures == ()


def test_every_change_names_causes_from_the_list_and_comes_once(runs):
    observed = observe(run_with_everything(runs))
    for propose in proposers():
        for proposal in propose(observed):
            assert proposal.causes
            assert set(proposal.causes) <= set(CAUSES)
    for cause in CAUSES:
        cures, idle = weigh(observed, [assuming(cause)])
        names = [one.cure for one in (*cures, *idle)]
        assert len(names) == len(set(names))


def test_savings_that_assume_a_cause_are_unsaid_without_it(runs):
    observed = observe(run_with_everything(runs))
    for cause, name in (
        ("prompt_cache.evicted", "bigger cache"),
        ("server.shared_batch", "stop the neighbour"),
        ("network.buffered_stream", "stop buffering"),
        ("placement.kv_cache_off_gpu", "full offload"),
    ):
        cures, _ = weigh(observed, [assuming(cause)])
        assert name in {cure.cure for cure in cures}, cause
    cures, idle = weigh(observed, [assuming("decode.sampling")])
    assert not {"bigger cache", "stop buffering"} & {one.cure for one in (*cures, *idle)}


def test_flash_attention_has_its_own_sign_for_each_phase(runs):
    facts = RuntimeFacts(flash_attn=False, layers_offloaded=0)
    machine = runs.Machine(
        per_token_s=0.002, per_token2_s=2e-6, decode_per_token_s=0.05, decode_per_depth_s=5e-5
    )
    observed = observe(runs.run_of(machine, facts=facts))
    (proposal,) = flash_attention.propose(observed)
    assert proposal.wait_s.low > 0
    assert proposal.answer_s.likely < 0
    assert proposal.how[0].startswith("start with --flash-attn on")
    on = replace(observed.run, facts=RuntimeFacts(flash_attn=True, layers_offloaded=0))
    (back,) = flash_attention.propose(observe(on))
    assert back.how[0].startswith("start with --flash-attn off")
    assert back.wait_s.likely < 0 < back.answer_s.likely
    card = replace(observed.run, facts=RuntimeFacts(flash_attn=True, layers_offloaded=32))
    assert flash_attention.propose(observe(card)) == []


def test_what_may_be_on_already_may_change_nothing(runs):
    facts = RuntimeFacts(layers_offloaded=32)
    (proposal,) = flash_attention.propose(observe(runs.run_of(runs.BOTH_SLOW, facts=facts)))
    assert proposal.saves_s.low == pytest.approx(0.0, abs=0.7)


def test_a_quantized_cache_slows_prefill_on_a_processor(runs):
    facts = RuntimeFacts(layers_offloaded=0)
    (proposal,) = quantized_kv_cache.propose(observe(runs.run_of(runs.BOTH_SLOW, facts=facts)))
    assert proposal.wait_s.high < 0
    small = RuntimeFacts(kv_type_k="q8_0", kv_type_v="q8_0")
    assert quantized_kv_cache.propose(observe(runs.run_of(runs.BOTH_SLOW, facts=small))) == []


def test_fewer_threads_only_where_they_are_crowded(runs):
    crowded = MachineFacts(physical_cores=2)
    run = runs.run_of(runs.DECODE_SLOW, facts=RuntimeFacts(threads=8), machine=crowded)
    (proposal,) = fewer_threads.propose(observe(run))
    assert proposal.how[0].startswith("start with --threads 2")
    assert proposal.answer_s.likely == pytest.approx(0.75 * 299 * 0.12, rel=0.03)
    fitting = replace(run, facts=RuntimeFacts(threads=2))
    (proposal,) = fewer_threads.propose(observe(fitting))
    assert proposal.saves_s == Interval(0.0, 0.0, 0.0)
    assert fewer_threads.propose(observe(replace(run, machine=None))) == []


def test_a_smaller_context_is_worth_the_layers_that_it_makes_room_for(runs):
    header = ModelHeader(file_bytes=10**10, kv_bytes_per_token_f16=131_072)
    facts = RuntimeFacts(n_ctx=32_768, slots=1, size_bytes=10**10, size_vram_bytes=6 * 10**9)
    run = runs.run_of(runs.DECODE_SLOW, facts=facts, header=header)
    cures, _ = weighed(run)
    freed = 131_072 * (32_768 - 3072) / 10**10
    seconds = [share + (1 - share) * 10 for share in (0.6, 0.6 + freed)]
    saved = 299 * 0.12 * (1 - seconds[1] / seconds[0])
    assert cures["smaller context"].saves_s.likely == pytest.approx(saved, rel=0.03)
    assert cures["smaller context"].how[0].startswith("start with --ctx-size 3072")


def test_what_is_blamed_on_another_cause_is_not_saved_again(runs):
    observed = observe(runs.run_of(runs.DECODE_SLOW))
    whole = observed.decode_s.likely
    sampling = replace(assuming("decode.sampling"), phase="decode", costs_s=0.9 * whole)
    _, idle = weigh(observed, [sampling])
    saves = {wont.cure: wont.saves_s.likely for wont in idle}
    assert saves["smaller quantization"] < 0.1 * whole / 2
    assert saves["more compute"] > 0.2, "prefill is not blamed for anything"


def test_largest_saving_comes_first_and_all_names_are_from_the_list(runs):
    for run in runs.all_runs().values():
        cures, idle = weighed(run)
        saved = [cure.saves_s.likely for cure in cures.values()]
        assert saved == sorted(saved, reverse=True)
        assert {*cures, *idle} <= set(CURES)
        for one in (*cures.values(), *idle.values()):
            assert one.saves_s.low <= one.saves_s.likely <= one.saves_s.high


def test_no_cure_saves_more_than_the_part_it_acts_on(runs):
    for run in runs.all_runs().values():
        observed = observe(run)
        for propose in proposers():
            for proposal in propose(observed):
                wait = observed.wait.seconds or 0.0
                assert proposal.wait_s.likely <= wait + 1e-9
                assert proposal.answer_s.likely <= (observed.budget.answer_s or 0.0) + 1e-9


@pytest.mark.parametrize(
    ("saves", "worth_s", "why"),
    [
        (Interval(0.1, 0.2, 0.3), 0.3, "too_little"),
        (Interval(0.5, 1.0, 1.5), 5.0, "too_little"),
        (Interval(0.5, 1.0, 1.5), 0.5, None),
        (Interval(-0.5, 1.0, 1.5), 0.5, "may_slow_down"),
        (Interval(-5.0, -4.0, -1.0), 0.5, "may_slow_down"),
        (Interval(-0.1, 0.0, 0.1), 0.5, "too_little"),
    ],
)
def test_worth_by_seconds(saves, worth_s, why):
    proposal = Proposal(cure="shorter prompt", causes=("prompt.large",), saves_s=saves)
    assert why_not(proposal, ["prompt.large"], worth_s) == why
    assert why_not(proposal, ["model.load"], worth_s) == "wrong_place"


def test_a_saving_is_weighed_against_what_is_slow(runs):
    long = runs.Machine(per_token_s=0.002, decode_per_token_s=0.02)
    waiting = observe(runs.run_of(long, output=2000))
    assert waiting.wait.verdict == "slow" != waiting.stream.verdict
    assert least_worth_s(waiting) == pytest.approx(max(0.3, 0.05 * waiting.wait.seconds))
    streaming = observe(runs.run_of(runs.DECODE_SLOW))
    assert least_worth_s(streaming) == pytest.approx(0.05 * streaming.budget.total_s)


def test_fewer_bytes_in_steps_is_no_more_than_in_one(runs):
    pace = pace_of(observe(runs.run_of(runs.DECODE_SLOW)))
    half = fewer_bytes(0.5, 16.0)(pace).step_s[0]
    assert half == pytest.approx(0.5 / 0.8 * pace.step_s[0])
    assert fewer_bytes(1.0, 16.0)(pace).step_s[0] == pytest.approx(pace.step_s[0])
    back = fewer_bytes(2.0, 8.0)(pace).step_s[0]
    assert back == pytest.approx(2 * 0.8 * pace.step_s[0])
    slightly = fewer_bytes(0.9, 16.0)(pace).step_s[0]
    assert half < slightly < pace.step_s[0]


def test_bits_of_named_types_are_no_less_than_their_blocks():
    for name, bits in BITS.items():
        block = bytes_per_weight(name) or bytes_per_weight(name.rpartition("_")[0])
        if block is not None:
            assert 0.99 * 8 * block <= bits <= 8 * block + 1.0, name
    assert sum(bytes_per_weight(name) is not None for name in BITS) > 10
