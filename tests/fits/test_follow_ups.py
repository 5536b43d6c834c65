"""What is asked after the curves, against a machine in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from twospeed.fits.follow_ups import CHANGES, COMPANY, FollowUps
from twospeed.records.request_record import (
    Probe,
    RequestError,
    RequestRecord,
    ServerTimes,
    TextArrival,
    TokenCounts,
)


@dataclass
class Machine:
    """Prefill of 2 ms and decode of 10 ms a token."""

    prefill_token_s: float = 2e-3
    reasoning_tokens: int = 0
    records: list[RequestRecord] = field(default_factory=list)
    now_s: float = 0.0

    def measure(self, probe: Probe, *, fails: bool = False) -> None:
        tokens, steps = probe.prompt_tokens, probe.output_tokens - 1
        prefill_s, decode_s = tokens * self.prefill_token_s, steps * 0.01
        self.now_s += prefill_s + decode_s
        self.records.append(
            RequestRecord(
                number=len(self.records) + 1,
                step=probe.step,
                probe=probe,
                repeats=probe.repeats,
                change=probe.change,
                counts=TokenCounts(
                    prompt_tokens=tokens, cached_prompt_tokens=0, output_tokens=steps + 1
                ),
                server=ServerTimes(
                    told_by="timings",
                    prefill_s=prefill_s,
                    prefill_tokens=tokens,
                    decode_s=decode_s,
                    decode_steps=steps,
                ),
                arrivals=tuple(
                    TextArrival(
                        at_s=prefill_s + 0.01 * step,
                        kind="reasoning" if step < self.reasoning_tokens else "answer",
                        chars=4,
                        coalesced=False,
                    )
                    for step in range(steps + 1)
                ),
                error=RequestError(kind="stream", message="reset") if fails else None,
            )
        )


def after_curves(*lengths: int, **machine: float) -> Machine:
    measured = Machine(**machine)
    for length in (64, *lengths, *lengths):
        measured.measure(Probe(step="curve", prompt_tokens=length, output_tokens=24))
    return measured


def asked(machine: Machine, follow_ups: FollowUps) -> list[tuple[Probe, ...]]:
    started = len(machine.records)
    rounds = []
    while probes := follow_ups.next_probes(machine.records, machine.now_s):
        rounds.append(probes)
        for probe in probes:
            machine.measure(probe)
        assert len(machine.records) - started < 30
    return rounds


def test_with_time_for_all_every_change_is_asked_of_one_prompt():
    machine = after_curves(250, 500, 1000)
    rounds = asked(machine, FollowUps(budget_s=100, company=True))
    base, *others = rounds
    assert [probe.step for probe in base] == ["curve"]
    assert base[0].prompt_tokens == 1000
    changes = [probe for (probe,) in others[: len(CHANGES)]]
    assert [probe.change for probe in changes] == list(CHANGES)
    assert {probe.repeats for probe in changes} == {8}
    assert [len(probes) for probes in others[len(CHANGES) :]] == list(COMPANY)
    assert {probe.step for probes in others[len(CHANGES) :] for probe in probes} == {"together"}


def test_company_is_only_sent_when_wanted():
    rounds = asked(after_curves(250, 500), FollowUps(budget_s=100, company=False))
    assert len(rounds) == 1 + len(CHANGES)


def test_a_shorter_prompt_is_taken_where_time_is_short():
    machine = after_curves(250, 1000)
    follow_ups = FollowUps(budget_s=machine.now_s + 7 * 0.75, company=False)
    assert asked(machine, follow_ups)[0][0].prompt_tokens == 250
    assert follow_ups.skipped == []


def test_edits_that_tell_least_fall_away_first_and_are_named():
    machine = after_curves(250, 1000)
    follow_ups = FollowUps(budget_s=machine.now_s + 5 * 0.75, company=False)
    rounds = asked(machine, follow_ups)
    assert [probe.change for (probe,) in rounds[1:]] == [
        "appended", "end_edited", "other", "returned",
    ]  # fmt: skip
    assert len(follow_ups.skipped) == 2
    assert machine.now_s <= follow_ups._budget_s


@pytest.mark.parametrize(
    "machine",
    [after_curves(250), after_curves(100, 150), after_curves(250, 500, prefill_token_s=1e-5)],
    ids=["no time", "prompts too short", "prefill too short to tell"],
)
def test_nothing_is_asked_that_could_not_be_told(machine):
    budget_s = machine.now_s + (0.5 if len(machine.records) == 3 else 100)
    follow_ups = FollowUps(budget_s=budget_s, company=True)
    assert asked(machine, follow_ups) == []
    (blind,) = follow_ups.skipped
    assert "reused" in blind.what


def test_a_failure_ends_it():
    machine = after_curves(250, 500)
    follow_ups = FollowUps(budget_s=100, company=True)
    probes = follow_ups.next_probes(machine.records, machine.now_s)
    assert probes is not None
    machine.measure(probes[0], fails=True)
    assert follow_ups.next_probes(machine.records, machine.now_s) is None


def test_company_that_would_overrun_the_budget_is_left_out():
    machine = after_curves(250, 500)
    follow_ups = FollowUps(budget_s=machine.now_s + 7 * 0.66 + 2.0, company=True)
    assert [len(probes) for probes in asked(machine, follow_ups)][-1] == 2
    assert [blind.what for blind in follow_ups.skipped] == [
        "what 4 requests at once cost each other"
    ]


def test_a_model_that_only_reasoned_is_given_the_length_of_the_workload():
    machine = after_curves(250, 500, reasoning_tokens=100)
    follow_ups = FollowUps(budget_s=100, company=False, output_tokens=300)
    (probe,), *others = asked(machine, follow_ups)
    assert (probe.step, probe.prompt_tokens, probe.output_tokens) == ("curve", 64, 300)
    assert [one.step for (one,) in others] == ["curve"] + ["reuse"] * len(CHANGES)


@pytest.mark.parametrize(("reasoning", "budget_s"), [(10, 100.0), (0, 100.0), (100, 2.0)])
def test_a_whole_answer_is_not_asked_for_in_vain_or_out_of_time(reasoning, budget_s):
    machine = after_curves(250, 500, reasoning_tokens=reasoning)
    follow_ups = FollowUps(budget_s=machine.now_s + budget_s, company=False, output_tokens=300)
    sent = [probe for probes in asked(machine, follow_ups) for probe in probes]
    assert all(probe.output_tokens < 300 for probe in sent)


def test_the_users_fields_are_left_out_of_every_other_request():
    measured = after_curves(400, 1600)
    follow_ups, sent = FollowUps(budget_s=600, company=False, fields=True), []
    while (probes := follow_ups.next_probes(measured.records, measured.now_s)) is not None:
        sent += probes
        measured.measure(probes[0])
    assert [probe.step for probe in sent[:4]] == ["bare", "curve", "curve", "bare"]
    assert {probe.prompt_tokens for probe in sent[:4]} == {64}
    assert {probe.change for probe in sent[5:]} == set(CHANGES)


def test_no_time_for_the_users_fields_is_said():
    measured = after_curves(400)
    follow_ups = FollowUps(budget_s=measured.now_s + 0.1, company=False, fields=True)
    assert follow_ups.next_probes(measured.records, measured.now_s) is None
    assert any("--request" in blind.what for blind in follow_ups.skipped)
