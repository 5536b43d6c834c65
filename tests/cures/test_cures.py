from __future__ import annotations

import pytest
from msgspec.structs import replace

from twospeed.cures.cure import CURES, Proposal, spared, verify_line
from twospeed.cures.registry import proposers, weigh, why_not
from twospeed.cures.smaller_quantization import bits_per_weight
from twospeed.findings.observed import observe
from twospeed.findings.registry import find_all
from twospeed.fits.interval import Interval
from twospeed.records.run import RuntimeFacts, Source


def weighed(run):
    observed = observe(run)
    cures, idle = weigh(observed, find_all(observed))
    return {cure.cure: cure for cure in cures}, {wont.cure: wont for wont in idle}


def test_slow_prefill_is_cured_at_the_prompt(runs):
    cures, idle = weighed(runs.run_of(runs.PREFILL_SLOW))
    machine = runs.PREFILL_SLOW
    assert list(cures) == ["keep the prefix stable", "shorter prompt"]
    half = machine.prefill_s(2000) - machine.prefill_s(1000)
    assert cures["shorter prompt"].saves_s.likely == pytest.approx(half, rel=0.02)
    kept = machine.prefill_s(2000) - machine.prefill_s(200, cached=1800)
    assert cures["keep the prefix stable"].saves_s.likely == pytest.approx(kept, rel=0.02)
    assert {cure.for_cause for cure in cures.values()} == {"prompt.large"}
    assert {one.why for one in idle.values()} == {"wrong_place"}
    assert {"smaller quantization", "shorter answer"} <= set(idle)


def test_slow_decode_is_cured_at_the_weights_and_the_answer(runs):
    cures, idle = weighed(runs.run_of(runs.DECODE_SLOW))
    assert list(cures) == ["shorter answer", "smaller quantization"]
    decode_s = 299 * 0.12
    assert cures["shorter answer"].saves_s.likely == pytest.approx(decode_s / 2, rel=0.02)
    saves = cures["smaller quantization"].saves_s
    assert 0 < saves.low < saves.likely < saves.high < decode_s / 2
    assert {"keep the prefix stable", "shorter prompt"} <= set(idle)


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
        (RuntimeFacts(quantization="IQ2_XXS"), 2.0),
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
    assert "--no-cache-prompt" in cures["turn reuse on"].how[0]
    assert idle["keep the prefix stable"].why == "reuse_is_off"


def test_reasoning_before_the_answer(runs):
    cures, idle = weighed(runs.run_of(runs.Machine(per_token_s=3e-4, reasoning_frac=0.8)))
    assert cures["less reasoning"].saves_s.likely == pytest.approx(0.4 * 299 * 0.01, rel=0.05)
    assert idle["shorter answer"].why == "after_the_wait"


def test_queue_load_and_offload_have_their_own_cures(runs):
    cures, _ = weighed(runs.run_of(runs.Machine(per_token_s=3e-4, queue_s=6.0)))
    assert cures["give the conversation its own slot"].saves_s == Interval(3.0, 6.0, 6.0)
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
                assert proposal.wait_s.likely <= wait
                assert proposal.answer_s.likely <= (observed.budget.answer_s or 0.0)


@pytest.mark.parametrize(
    ("saves", "total_s", "why"),
    [
        (Interval(0.1, 0.2, 0.3), 1.0, "too_little"),
        (Interval(0.5, 1.0, 1.5), 100.0, "too_little"),
        (Interval(0.5, 1.0, 1.5), 10.0, None),
        (Interval(-0.5, 1.0, 1.5), 10.0, "may_slow_down"),
    ],
)
def test_worth_by_seconds(saves, total_s, why):
    proposal = Proposal(cure="shorter prompt", causes=("prompt.large",), wait_s=saves)
    assert why_not(proposal, ["prompt.large"], total_s) == why
    assert why_not(proposal, ["model.load"], total_s) == "wrong_place"


def test_spared_keeps_the_uncertainty_of_the_curve_in_proportion():
    saved = spared(Interval(9.0, 10.0, 12.0), Interval(4.0, 5.0, 6.0))
    assert saved == Interval(4.5, 5.0, 6.0)
    assert spared(Interval(0, 0, 0), Interval(1, 1, 1)) == Interval(0, 0, 0)
    assert spared(Interval(1, 1, 1), Interval(2, 2, 2)).likely == 0.0


def test_verify_line_is_safe_to_paste(runs):
    run = runs.run_of(runs.HEALTHY)
    assert verify_line(run, "shorter prompt") == (
        "twospeed verify --before FILE http://127.0.0.1:8080 --cure 'shorter prompt'"
    )
    hostile = Source(kind="live", where="http://h/;rm -rf ~\n\x1b[2J'")
    line = verify_line(replace(run, source=hostile), "shorter prompt")
    assert line.startswith("twospeed verify --before FILE 'http://h/;rm-rf~")
    assert line.isprintable()
    engine = Source(kind="engine", where="child")
    assert "--embedded" in verify_line(replace(run, source=engine), "shorter prompt")
