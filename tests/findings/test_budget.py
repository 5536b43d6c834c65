from __future__ import annotations

import pytest

from twospeed.findings.budget import (
    Stream,
    TimeBudget,
    Wait,
    inconclusive,
    judge_stream,
    judge_wait,
    slow_phase,
    wait_seconds,
)
from twospeed.findings.loading import observe_load
from twospeed.findings.observed import observe
from twospeed.fits.interval import Interval
from twospeed.fits.prefill import PrefillFit
from twospeed.records.request_record import (
    ClientTimes,
    RequestRecord,
    ServerTimes,
    TokenCounts,
)
from twospeed.records.run import Goals

GOALS = Goals()


def loaded(number: int, load_s: float | None, step="curve") -> RequestRecord:
    return RequestRecord(number=number, step=step, server=ServerTimes(told_by="x", load_s=load_s))


def test_parts_add_up_to_the_total(runs):
    budget = observe(runs.run_of(runs.PREFILL_SLOW)).budget
    parts = [getattr(budget, f) for f in budget.__struct_fields__ if f != "total_s"]
    assert budget.total_s == pytest.approx(sum(part for part in parts if part is not None))
    assert budget.prefill_s == pytest.approx(5.21, rel=0.01)
    assert budget.answer_s == pytest.approx(299 * 0.0105, rel=0.01)


def test_reasoning_is_zero_only_when_text_arrived_and_none_of_it_was_reasoning(runs):
    assert observe(runs.run_of(runs.HEALTHY)).budget.reasoning_s == 0.0
    silent = runs.without_arrivals(runs.run_of(runs.HEALTHY))
    assert observe(silent).budget.reasoning_s is None


def test_reasoning_counts_into_the_wait(runs):
    seen = observe(runs.run_of(runs.Machine(per_token_s=3e-4, reasoning_frac=0.75)))
    assert seen.budget.reasoning_s == pytest.approx(0.75 * 299 * 0.01, rel=0.05)
    assert seen.wait.seconds == pytest.approx(0.61 + seen.budget.reasoning_s + 0.002, rel=0.02)
    assert seen.slow_phase == "decode"


def test_a_wait_that_never_ended_is_not_fine(runs):
    seen = observe(runs.run_of(runs.Machine(per_token_s=3e-4, reasoning_frac=1.0)))
    assert seen.wait.verdict == "unknown"
    assert seen.wait.seconds is None
    assert seen.slow_phase == "unknown"


def test_queue_by_late_headers(runs):
    seen = observe(runs.run_of(runs.Machine(per_token_s=3e-4, queue_s=6.0)))
    assert seen.budget.queue_s == pytest.approx(6.0, abs=0.01)
    assert seen.slow_phase == "queue"
    assert seen.budget.unexplained_s == pytest.approx(0.0, abs=0.01)


def test_queue_of_other_runtimes_is_not_seen_by_headers(runs):
    seen = observe(runs.run_of(runs.Machine(queue_s=6.0), runtime="vllm"))
    assert seen.budget.queue_s is None


def test_a_delay_on_the_way_is_unexplained_not_hidden(runs):
    seen = observe(runs.run_of(runs.Machine(per_token_s=3e-4, delay_s=4.0)))
    assert seen.budget.unexplained_s == pytest.approx(4.0, abs=0.01)
    assert seen.slow_phase == "unknown"


COLD = PrefillFit(
    overhead_s=0.0,
    per_token_s=1e-3,
    per_token2_s=0.0,
    points=(),
    shortest_tokens=60,
    longest_tokens=2000,
    origin="client",
)


def load_of(runs, records, **changes):
    return observe_load(runs.run_of(runs.HEALTHY, records=tuple(records), **changes), COLD).seconds


def test_load_of_an_experiment_is_that_of_its_first_request(runs):
    warm = [loaded(1, 12.0, "warmup"), loaded(2, 0.04), loaded(3, 0.04)]
    assert load_of(runs, warm) == 12.0
    assert load_of(runs, [loaded(2, 0.04), loaded(1, 12.0)]) == 12.0
    assert load_of(runs, [loaded(1, None), loaded(2, None)]) is None
    assert load_of(runs, []) is None


def test_load_of_a_log_is_the_median(runs):
    reloads = [loaded(n, s, "user") for n, s in enumerate((7.9, 8.0, 8.6), start=1)]
    assert load_of(runs, reloads) == 8.0
    cold = [loaded(n, s, "user") for n, s in enumerate((40.0, 0.04, 0.04), start=1)]
    assert load_of(runs, cold) == 0.04


def test_waiting_for_a_loading_server_is_load(runs):
    assert load_of(runs, [loaded(1, 0.04)], loading_s=7.5) == 7.5


def unseen(ttft_s, server=None, **changes):
    """A first request of 60 tokens from a runtime that says nothing of a load."""
    return RequestRecord(
        number=1,
        step="warmup",
        counts=TokenCounts(prompt_tokens=60, output_tokens=16),
        client=ClientTimes(ttft_s=ttft_s),
        server=server,
        **changes,
    )


def test_a_load_that_nobody_tells_is_what_the_first_request_lost(runs):
    assert load_of(runs, [unseen(6.06)]) == pytest.approx(6.0, abs=0.01)
    load = observe_load(runs.run_of(runs.HEALTHY, records=(unseen(6.06),)), COLD)
    assert (load.origin, load.certainty) == ("client", "inferred")


def test_a_slow_first_request_is_not_yet_a_load(runs):
    assert load_of(runs, [unseen(0.9)]) is None
    assert load_of(runs, [unseen(6.06, other_requests=1)]) is None
    slow_itself = ServerTimes(told_by="timings", prefill_s=6.0, prefill_tokens=60)
    assert load_of(runs, [unseen(6.06, slow_itself)]) is None
    assert observe_load(runs.run_of(runs.HEALTHY, records=(unseen(6.06),)), None).seconds is None


SLOW, FINE, DIM = (
    Wait(seconds=s, goal_s=2, verdict=v) for s, v in ((9, "slow"), (1, "fine"), (None, "unknown"))
)
FLOWS, DRIPS, DARK = (
    Stream(tps=t, goal_tps=20, verdict=v) for t, v in ((90, "fine"), (5, "slow"), (None, "unknown"))
)


@pytest.mark.parametrize(
    ("largest", "phase"),
    [
        ("prefill_s", "prefill"),
        ("reasoning_s", "decode"),
        ("queue_s", "queue"),
        ("load_s", "load"),
        ("network_s", "network"),
        ("unexplained_s", "unknown"),
    ],
)
def test_largest_part_of_a_slow_wait_names_the_phase(largest, phase):
    budget = TimeBudget(**{"prefill_s": 0.5, "queue_s": 0.2, largest: 8.0})
    assert slow_phase(budget, SLOW, FLOWS) == phase


@pytest.mark.parametrize(
    ("wait", "stream", "phase"),
    [
        (SLOW, DRIPS, "both"),
        (SLOW, DARK, "prefill"),
        (FINE, DRIPS, "decode"),
        (DIM, DRIPS, "decode"),
        (FINE, FLOWS, "none"),
        (FINE, DARK, "unknown"),
        (DIM, FLOWS, "unknown"),
        (DIM, DARK, "unknown"),
    ],
)
def test_phase_by_both_verdicts(wait, stream, phase):
    assert slow_phase(TimeBudget(prefill_s=8.0), wait, stream) == phase


def test_wait_without_prefill_is_a_lower_bound():
    assert wait_seconds(TimeBudget(queue_s=9.0), GOALS) == 9.0
    assert wait_seconds(TimeBudget(queue_s=0.5), GOALS) is None
    assert wait_seconds(TimeBudget(queue_s=0.5, prefill_s=1.0), GOALS) == 1.5
    assert wait_seconds(TimeBudget(), GOALS) is None


def test_near_the_goal_is_judged_by_the_likely_value():
    budget = TimeBudget(prefill_s=2.1)
    wait = judge_wait(budget, GOALS, prefill=Interval(1.9, 2.1, 2.3), answer_seen=True)
    assert (wait.verdict, wait.near_goal) == ("slow", True)
    wait = judge_wait(budget, GOALS, prefill=Interval(2.05, 2.1, 2.3), answer_seen=True)
    assert (wait.verdict, wait.near_goal) == ("slow", False)
    stream = judge_stream(Interval(19.0, 21.0, 22.0), GOALS)
    assert (stream.verdict, stream.near_goal) == ("fine", True)


def test_inconclusive():
    assert inconclusive("unknown", trusted=True)
    assert inconclusive("prefill", trusted=False)
    assert not inconclusive("none", trusted=True)
