"""The trial on a virtual clock: promised error, power, order, drift, neighbours, interruption."""

from __future__ import annotations

from collections import Counter

import pytest
from two_machines import WORKLOAD, TwoMachines

from twospeed.cures.trial import Trial
from twospeed.cures.trial_plan import TrialPlan
from twospeed.cures.trial_result import result_of
from twospeed.records.run import Workload

SHOWN = ("faster", "slower")


def shown(result) -> dict[str, str]:
    return {
        phase: found.verdict for phase, found in result.phases.items() if found.verdict in SHOWN
    }


@pytest.mark.parametrize("drift", [0.0, 0.2])
def test_equals_show_a_difference_no_more_often_than_promised(drift: float):
    wrong = sum(bool(shown(TwoMachines(seed=n, drift=drift).result())) for n in range(2000))
    assert wrong / 2000 <= 0.05


def test_starts_that_differ_are_no_difference_where_each_pair_has_new_ones():
    """Scatter of 2 % from start to start: pairs between the same two servers take it for real."""
    wrong = {True: 0, False: 0}
    for renews in wrong:
        for seed in range(400):
            found = TwoMachines(seed=seed, jitter=0.01, start_sd=0.02, renews=renews).result()
            assert found.renewed_every_pair == renews
            wrong[renews] += bool(shown(found))
    assert wrong[True] <= 0.05 * 400
    assert wrong[False] > 0.5 * 400


def test_equals_with_short_requests_use_every_look():
    """Requests of 0.2 s: all looks are taken, and shorter lengths too."""
    results = [
        TwoMachines(seed=n, prefill_s=0.0001, decode_s=0.001, jitter=0.08).result()
        for n in range(200)
    ]
    wrong = sum(bool(shown(result)) for result in results)
    assert wrong / 200 <= 0.05 + 2 * (0.05 * 0.95 / 200) ** 0.5
    assert all(
        found.verdict not in SHOWN
        for result in results
        if not shown(result)
        for length in result.lengths
        for found in (length.prefill, length.decode)
    )


@pytest.mark.parametrize(
    ("change", "phase", "verdict"),
    [
        ({"prefill_factor": 1 / 1.05}, "prefill", "faster"),
        ({"decode_factor": 1.05}, "decode", "slower"),
    ],
)
def test_five_percent_are_found_and_laid_to_their_phase(change, phase: str, verdict: str):
    other = {"prefill": "decode", "decode": "prefill"}[phase]
    # 2,000 · 0.0003 s and 80 · 0.01 s: requests of 1.4 s.
    results = [TwoMachines(seed=n, prefill_s=0.0003, **change).result() for n in range(400)]
    found = [shown(result) for result in results]
    assert sum(one.get(phase) == verdict for one in found) >= 0.9 * 400
    assert sum(other in one for one in found) <= 0.05 * 400
    assert all(16 <= result.phases[phase].pairs <= 21 for result in results)


def test_intervals_hold_the_truth():
    missed = 0
    for seed in range(400):
        phases = TwoMachines(seed=seed, prefill_factor=0.8, drift=0.2).result().phases
        held = phases["prefill"].low <= 0.8 <= phases["prefill"].high
        missed += not (held and phases["decode"].low <= 1.0 <= phases["decode"].high)
    assert missed / 400 <= 0.05


def test_arms_take_turns_and_get_the_same_prompt():
    machines = TwoMachines(seed=3)
    trial = machines.trial()
    trial.run()
    firsts = [pair.first_sent for pair in trial.pairs]
    assert all(one != other for one, other in zip(firsts[::2], firsts[1::2], strict=False))
    assert set(firsts[::2]) == {0, 1}
    by_prompt: dict[int, list] = {}
    for arm, probe, prompt in machines.sent:
        by_prompt.setdefault(prompt, []).append((arm, probe))
    for sent in by_prompt.values():
        assert {arm for arm, _ in sent} == {0, 1}
        assert sent[0][1] == sent[1][1]
    assert [s.record.step for s in trial.warmups] == ["warmup"] * 4
    assert machines.now_s <= 60.0


def test_a_change_in_long_prompts_only_is_seen_as_such():
    result = TwoMachines(prefill_factor=0.5, short_prefill_factor=1.0).result(budget_s=300.0)
    assert shown(result)["prefill"] == "faster"
    short = result.lengths[0]
    assert short.prompt_tokens == 500
    assert short.prefill.verdict == "no difference shown"
    assert result.phases["prefill"].high < 0.6


def test_a_settled_answer_ends_early():
    machines = TwoMachines(prefill_factor=0.5, jitter=0.002)
    result = machines.result(budget_s=600.0)
    assert result.why_stopped == "settled"
    assert result.phases["prefill"].pairs == 12
    assert machines.now_s < 120.0
    assert Counter(row.prompt_tokens for row in result.pairs) == {2000: 12, 500: 10, 1000: 10}


def test_slow_machines_get_shorter_prompts():
    result = TwoMachines(prefill_s=0.004).result()
    assert result.main_tokens == 500
    assert result.phases["prefill"].pairs >= 10


def test_machines_that_are_far_too_slow_are_told_the_time_they_need():
    result = TwoMachines(prefill_s=0.1, decode_s=0.5).result()
    assert {found.verdict for found in result.phases.values()} == {"cannot tell"}
    assert result.seconds_needed is None or result.seconds_needed > 60.0
    noisy = TwoMachines(jitter=0.1).result()
    assert noisy.seconds_needed > 200.0


def test_a_wild_request_neither_decides_nor_hides():
    same = TwoMachines(wild_number=11).result()
    assert not shown(same)
    assert same.wild_pairs == 1
    assert shown(TwoMachines(wild_number=11, prefill_factor=0.9).result())["prefill"] == "faster"


@pytest.mark.parametrize("hog_from_s", [6.0, 15.0, 30.0, 45.0])
@pytest.mark.parametrize("factors", [(1.3, 1.3), (1.05, 2.0), (1.0, 4.0)])
def test_a_neighbour_never_turns_a_verdict_round(hog_from_s: float, factors):
    for seed in range(20):
        result = TwoMachines(
            seed=seed, prefill_factor=0.7, hog_from_s=hog_from_s, hog_factors=factors
        ).result()
        assert result.phases["prefill"].verdict != "slower"
        assert result.disturbed_pairs > 0


def test_a_neighbour_from_the_start_leaves_no_small_difference():
    small = TwoMachines(prefill_factor=0.97, jitter=0.01, hog_from_s=0.0).result()
    assert small.phases["prefill"].why == "disturbed"
    assert small.phases["decode"].verdict == "no difference shown"
    big = TwoMachines(prefill_factor=0.5, hog_from_s=0.0).result()
    assert big.phases["prefill"].verdict == "faster"


@pytest.mark.parametrize("count", range(0, 40, 3))
def test_an_interruption_leaves_a_verdict_or_cannot_tell(count: int):
    result = TwoMachines(prefill_factor=0.5, stop_after=count).result()
    assert result.why_stopped == "interrupted"
    pairs = max(count - 4, 0) // 2
    assert len(result.pairs) == pairs
    assert result.phases["prefill"].verdict == ("faster" if pairs >= 7 else "cannot tell")


def test_failures_end_the_trial():
    none = TwoMachines(fail_from=1).trial()
    none.run()
    assert (none.why_stopped, none.pairs) == ("errors", [])
    assert none.failed[0].error.message == "no"
    late = TwoMachines(fail_from=30).result()
    assert late.why_stopped == "errors"
    assert late.seconds_needed is None
    assert len(late.pairs) == 12


def test_answers_of_different_length_are_told():
    assert TwoMachines().result().output_tokens_ratio is None
    longer = TwoMachines(output_share=1.2).result()
    assert longer.output_tokens_ratio == pytest.approx(1.2, abs=0.03)
    assert "decode" not in shown(longer)


def test_a_model_that_is_loaded_first_is_off_the_clock():
    cold = TwoMachines(load_s=30.0)
    result = cold.result()
    assert cold.now_s > 85.0
    assert result.main_tokens == 2000
    assert result.phases["prefill"].pairs >= 14
    assert [probe.prompt_tokens for _, probe, _ in cold.sent[:5]] == [64, 64, 64, 64, 2000]


def test_answers_fit_the_context():
    machines = TwoMachines(decode_s=0.001)
    plan = TrialPlan(WORKLOAD, n_ctx=2100, budget_s=60.0, seed=0)
    Trial(machines.measure, plan, machines.clock).run()
    assert all(p.prompt_tokens + p.output_tokens <= 2100 for _, p, _ in machines.sent)


def test_drift_is_told():
    assert TwoMachines(drift=0.2).result().drift["prefill"] == pytest.approx(0.18, abs=0.06)
    assert abs(TwoMachines().result().drift["prefill"]) < 0.07


def test_two_runtimes_are_compared_by_our_clock_alone():
    machines = TwoMachines(prefill_factor=0.5)
    trial = machines.trial()
    trial._same_runtime = False
    trial.run()
    result = result_of(trial)
    assert result.clock == "client"
    assert result.phases["prefill"].why == "not_measured"


def test_a_workload_without_room_for_shorter_prompts():
    result = TwoMachines().result(workload=Workload(prompt_tokens=100, output_tokens=50))
    assert result.main_tokens == 100
    assert result.lengths == ()
