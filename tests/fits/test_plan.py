"""The experiment against machines whose curves are known, in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from msgspec import structs

from twospeed.fits.decode import DecodeFit, fit_decode
from twospeed.fits.ladder import ladder, longest_prompt
from twospeed.fits.observations import decode_points, prefill_points
from twospeed.fits.plan import MOST_ROUNDS, Plan
from twospeed.fits.prefill import PrefillFit, fit_prefill
from twospeed.records.request_record import (
    ClientTimes,
    Probe,
    RequestError,
    RequestRecord,
    ServerTimes,
    TextArrival,
    TokenCounts,
)
from twospeed.records.run import Goals, Workload


@dataclass
class Machine:
    """Prefill `overhead + a·n + b·n²` and decode `p + q·d` with noise; it never really waits."""

    overhead_s: float = 0.02
    per_token_s: float = 2e-3
    per_token2_s: float = 2e-7
    token_s: float = 0.02
    depth_token_s: float = 2e-6
    noise_frac: float = 0.02
    load_s: float = 0.0
    n_ctx: int | None = None
    fails: Callable[[int], bool] = lambda _: False
    server_clock: bool = True
    hides_reasoning_below: int = 0
    now_s: float = 0.0
    random: random.Random = field(default_factory=lambda: random.Random(7))

    def prefill_s(self, tokens: float) -> float:
        return self.overhead_s + self.per_token_s * tokens + self.per_token2_s * tokens**2

    def step_s(self, depth: float) -> float:
        return self.token_s + self.depth_token_s * depth

    def measure(self, probe: Probe, number: int) -> RequestRecord:
        """The record of one probe; the clock moves on by its time."""
        prompt, output = probe.prompt_tokens, probe.output_tokens
        common = {"number": number, "step": probe.step, "probe": probe, "repeats": probe.repeats}
        if self.n_ctx is not None and prompt + output > self.n_ctx:
            self.now_s += 0.005
            error = RequestError(kind="http", message="too long", http_status=400)
            return RequestRecord(**common, error=error)
        if self.fails(number):
            self.now_s += 0.1
            return RequestRecord(**common, error=RequestError(kind="stream", message="reset"))
        cached = prompt - 1 if probe.repeats else 0
        load_s = self.load_s if number == 1 else 0.0
        prefill_s = self.prefill_s(prompt - cached) * self._noise()
        step_s = self.step_s(prompt + output / 2) * self._noise()
        ttft_s = load_s + prefill_s + 0.001
        end_s = ttft_s + (output - 1) * step_s
        self.now_s += end_s
        shown = output > self.hides_reasoning_below
        arrivals = tuple(
            TextArrival(at_s=ttft_s + step_s * k, kind="answer", chars=4, coalesced=False)
            for k in range(output if shown else 0)
        )
        server = ServerTimes(
            told_by="timings",
            load_s=load_s,
            prefill_s=prefill_s,
            prefill_tokens=prompt - cached,
            decode_s=(output - 1) * step_s,
            decode_steps=output - 1,
        )
        return RequestRecord(
            **common,
            counts=TokenCounts(
                prompt_tokens=prompt, cached_prompt_tokens=cached, output_tokens=output
            ),
            client=ClientTimes(ttft_s=ttft_s if shown else None, finish_s=end_s, end_s=end_s),
            server=server if self.server_clock else None,
            arrivals=arrivals,
            finish_reason="length",
        )

    def _noise(self) -> float:
        return max(1 + self.noise_frac * self.random.gauss(0, 1), 0.1)


def carry_out(plan: Plan, machine: Machine) -> list[RequestRecord]:
    """Every record of the experiment, in order."""
    records: list[RequestRecord] = []
    while (probe := plan.next_probe(records, machine.now_s)) is not None:
        records.append(machine.measure(probe, len(records) + 1))
        assert len(records) < 200, "the plan does not end"
    return records


def lengths(records: Sequence[RequestRecord]) -> list[int]:
    """Prompt lengths of the curve probes, in order."""
    return [r.probe.prompt_tokens for r in records if r.probe and r.step == "curve"]


WORKLOAD = Workload(prompt_tokens=2000, output_tokens=300)


def fits_of(records: Sequence[RequestRecord]) -> tuple[PrefillFit, DecodeFit]:
    prefill = fit_prefill(prefill_points(records, round_trip_s=0.001, ignore_timings=False))
    decode = fit_decode(decode_points(records, ignore_timings=False))
    assert prefill is not None
    assert decode is not None
    return prefill, decode


def assert_true_at(machine: Machine, records: Sequence[RequestRecord], prompt: int) -> None:
    """Both curves are within 5 % of the truth at a measured prompt length."""
    prefill, decode = fits_of(records)
    assert prefill.seconds(prompt).likely == pytest.approx(machine.prefill_s(prompt), rel=0.05)
    assert decode.per_token(prompt).likely == pytest.approx(machine.step_s(prompt), rel=0.05)


FAST = {"overhead_s": 0.01, "per_token_s": 1e-4, "per_token2_s": 2e-9, "token_s": 0.008}


@pytest.mark.parametrize("server_clock", [True, False])
@pytest.mark.parametrize("changes", [{}, FAST], ids=["ordinary", "fast"])
def test_an_ordinary_machine_is_settled_within_the_budget(
    changes: dict[str, float], server_clock: bool
):
    machine = Machine(**changes, server_clock=server_clock)
    plan = Plan(WORKLOAD, budget_s=40, round_trip_s=0.001)
    records = carry_out(plan, machine)
    assert plan.why_stopped == "settled"
    assert plan.skipped == []
    assert machine.now_s <= 40
    assert_true_at(machine, records, 2000)


def test_a_fast_machine_does_not_use_up_its_budget():
    machine = Machine(**FAST)
    carry_out(Plan(WORKLOAD, budget_s=40), machine)
    assert machine.now_s < 10


def test_the_experiment_warms_up_then_goes_in_interleaved_rounds():
    records = carry_out(Plan(WORKLOAD), Machine())
    assert [record.step for record in records].count("warmup") == 1
    assert records[0].step == "warmup"
    rounds = lengths(records)
    assert sorted(rounds[:5]) == sorted(rounds[5:10]) == [125, 250, 500, 1000, 2000]
    assert rounds[0] == 125
    assert rounds[:5] != rounds[5:10]
    assert rounds[5:10] != sorted(rounds[5:10])


def test_the_prompt_of_middle_length_is_sent_again_at_once():
    records = carry_out(Plan(WORKLOAD), Machine())
    (reuse,) = [record for record in records if record.step == "reuse"]
    original = records[reuse.number - 2]
    assert original.probe is not None
    assert reuse.probe is not None
    assert original.probe.prompt_tokens == reuse.probe.prompt_tokens == 500
    assert reuse.repeats == reuse.probe.repeats == original.number


@pytest.mark.parametrize("prefill_tps", [3, 10, 30, 100])
def test_a_slow_machine_gets_shorter_prompts_and_keeps_the_budget_rule(prefill_tps: int):
    machine = Machine(per_token_s=1 / prefill_tps, token_s=1 / prefill_tps, noise_frac=0.01)
    plan = Plan(WORKLOAD, budget_s=40)
    records = carry_out(plan, machine)
    assert plan.why_stopped == "budget"
    assert machine.now_s <= 1.5 * 40
    assert len(set(lengths(records))) >= 2
    assert any("is extrapolated" in blind.what for blind in plan.skipped)
    prefill, decode = fits_of(records)
    longest = prefill.longest_tokens
    assert prefill.seconds(longest).likely == pytest.approx(machine.prefill_s(longest), rel=0.05)
    assert decode.per_token(longest).likely == pytest.approx(machine.step_s(longest), rel=0.05)
    assert prefill.seconds(2000).holds(machine.prefill_s(2000))
    assert prefill.seconds(2000).width_frac > 0.15  # it says that it does not know


def test_a_machine_with_fits_stays_inside_the_budget_itself():
    machine = Machine(per_token_s=0.01, token_s=0.1)
    carry_out(Plan(WORKLOAD, budget_s=40), machine)
    assert machine.now_s <= 40


@pytest.mark.parametrize("every", [3, 4, 7])
def test_failures_now_and_then_are_survived(every: int):
    machine = Machine(fails=lambda number: number % every == 0)
    plan = Plan(WORKLOAD, budget_s=60)
    records = carry_out(plan, machine)
    assert plan.why_stopped in ("settled", "requests", "budget")
    assert machine.now_s <= 60
    assert_true_at(machine, records, 2000)


def test_two_failures_in_a_row_end_it():
    plan = Plan(WORKLOAD)
    records = carry_out(plan, Machine(fails=lambda number: number > 3))
    assert plan.why_stopped == "errors"
    assert len(records) == 5


def test_a_dead_endpoint_is_asked_twice():
    plan = Plan(WORKLOAD)
    assert len(carry_out(plan, Machine(fails=lambda _: True))) == 2
    assert plan.why_stopped == "errors"


@pytest.mark.parametrize("n_ctx", [64, 128, 512, 1000])
def test_a_small_context_clips_the_workload_and_is_never_overrun(n_ctx: int):
    machine = Machine(n_ctx=n_ctx)
    plan = Plan(WORKLOAD, n_ctx=n_ctx)
    records = carry_out(plan, machine)
    assert not [record for record in records if record.error]
    assert any(f"context of {n_ctx} tokens" in blind.what for blind in plan.skipped)
    if n_ctx > 64:
        assert_true_at(machine, records, plan.rungs[-1])


def test_a_context_that_the_runtime_hides_is_found_by_refusal():
    machine = Machine(n_ctx=700)
    plan = Plan(WORKLOAD)
    records = carry_out(plan, machine)
    assert plan.why_stopped == "settled"
    assert [r.probe.prompt_tokens for r in records if r.error and r.probe] == [1000]
    assert any("the server does not answer" in blind.what for blind in plan.skipped)
    assert_true_at(machine, records, 500)


def test_a_context_without_room_is_not_measured():
    plan = Plan(WORKLOAD, n_ctx=40)
    assert plan.next_probe([], 0.0) is None
    assert plan.why_stopped == "context"
    assert plan.announce() == (0, 0, 0.0)


def test_a_model_load_that_the_server_tells_of_leaves_the_budget_whole():
    machine = Machine(load_s=60)
    plan = Plan(WORKLOAD, budget_s=40)
    carry_out(plan, machine)
    assert plan.why_stopped == "settled"
    assert machine.now_s <= 60 + 40


def test_a_hidden_model_load_does_not_pass_for_a_slow_machine():
    machine = Machine(load_s=20, server_clock=False)
    plan = Plan(WORKLOAD, budget_s=40, round_trip_s=0.001)
    records = carry_out(plan, machine)
    assert machine.now_s <= 40
    assert max(lengths(records)) == 2000
    assert_true_at(machine, records, 2000)


def test_a_load_that_eats_the_budget_is_told():
    plan = Plan(WORKLOAD, budget_s=40)
    carry_out(plan, Machine(load_s=70, server_clock=False))
    assert plan.why_stopped == "budget"
    assert any("being loaded" in blind.needs for blind in plan.skipped)


def test_a_model_that_hides_its_reasoning_gets_longer_answers():
    machine = Machine(server_clock=False, hides_reasoning_below=100)
    plan = Plan(WORKLOAD, budget_s=60, round_trip_s=0.001)
    records = carry_out(plan, machine)
    assert_true_at(machine, records, 2000)
    assert sum(record.counts.output_tokens or 0 for record in records) <= plan.announce().tokens


@pytest.mark.parametrize("workload", [(1, 1), (60, 50), (200, 50), (2000, 300), (40_000, 500)])
@pytest.mark.parametrize("noise_frac", [0.01, 0.15])
def test_no_more_is_spent_than_was_announced(workload: tuple[int, int], noise_frac: float):
    machine = Machine(**FAST, noise_frac=noise_frac)
    plan = Plan(Workload(prompt_tokens=workload[0], output_tokens=workload[1]))
    announced = plan.announce()
    records = carry_out(plan, machine)
    wanted = sum(r.probe.prompt_tokens + r.probe.output_tokens for r in records if r.probe)
    assert len(records) <= announced.requests
    assert wanted <= announced.tokens
    assert machine.now_s <= announced.seconds


def test_the_number_of_requests_is_bounded():
    plan = Plan(WORKLOAD, max_requests=4)
    assert len(carry_out(plan, Machine())) == 4
    assert plan.why_stopped == "requests"


def test_a_goal_on_the_edge_is_measured_longer_than_one_far_away():
    def requests(wait_goal_s: float) -> int:
        machine = Machine(**FAST, noise_frac=0.04)
        plan = Plan(WORKLOAD, Goals(wait_s=wait_goal_s), budget_s=1000)
        return len(carry_out(plan, machine))

    at_the_edge = Machine(**FAST).prefill_s(2000)
    assert requests(10 * at_the_edge) < requests(at_the_edge)
    assert requests(at_the_edge) >= 1 + 5 * MOST_ROUNDS


def test_the_same_records_give_the_same_probe():
    machine = Machine()
    records = carry_out(Plan(WORKLOAD), machine)
    for count in range(len(records)):
        fresh = Plan(WORKLOAD).next_probe(records[:count], 0.0)
        assert fresh == records[count].probe


def test_requests_that_met_others_in_the_server_settle_nothing():
    @dataclass
    class Shared(Machine):
        def measure(self, probe: Probe, number: int) -> RequestRecord:
            record = super().measure(probe, number)
            return structs.replace(record, other_requests=2)

    plan = Plan(WORKLOAD, budget_s=1000)
    carry_out(plan, Shared())
    assert plan.why_stopped == "requests"


def test_cost_is_what_the_machine_then_takes():
    machine = Machine(noise_frac=0.0)
    plan = Plan(WORKLOAD)
    records = carry_out(plan, machine)
    probe = Probe(step="curve", prompt_tokens=1500, output_tokens=50)
    before = machine.now_s
    machine.measure(probe, 99)
    assert plan.cost_s(records, probe) == pytest.approx(machine.now_s - before, rel=0.02)


@pytest.mark.parametrize("top", [24, 30, 64, 100, 128, 200, 256, 384, 2000, 7500, 128_000])
def test_a_ladder_ends_at_its_top_and_its_rungs_can_be_told_apart(top: int):
    rungs = ladder(top)
    assert rungs[-1] == top
    assert rungs[0] >= 24
    assert all(b >= 1.4 * a for a, b in pairwise(rungs))


def test_a_ladder_has_no_rung_below_the_shortest_prompt():
    assert ladder(23) == ()


def test_the_longest_prompt_leaves_room_in_the_context():
    assert longest_prompt(2000, None) == 2000
    assert longest_prompt(2000, 2048) == 1920
    assert longest_prompt(10, 8192) == 64
    assert longest_prompt(2000, 100) == 50
