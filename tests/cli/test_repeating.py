"""Which of the earlier prompts are sent again, and what the machine was like meanwhile."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from twospeed.cli.verifying.repeating import (
    NEW_SHARE,
    ROUNDS,
    refuse_hopeless,
    session_probes,
    together,
    usual_s,
)
from twospeed.records.errors import EndpointError
from twospeed.records.request_record import ClientTimes, Probe, RequestError, RequestRecord
from twospeed.records.run import Conditions, Goals, Run, Source, Workload

LENGTHS = (128, 512, 2000)
WORK = Workload(prompt_tokens=2000, output_tokens=300)


def record(number: int, tokens: int, **changes) -> RequestRecord:
    probe = Probe(step="curve", prompt_tokens=tokens, output_tokens=48)
    return RequestRecord(number=number, step="curve", probe=probe, **changes)


BEFORE = Run(
    source=Source(kind="live", where="http://127.0.0.1:8080"),
    workload=WORK,
    goals=Goals(),
    made_at="2026-11-30T12:00:00Z",
    twospeed_version="0.1.0",
    records=tuple(record(n, tokens) for n, tokens in enumerate(LENGTHS * 2, start=1)),
)


def test_the_earlier_lengths_come_again_in_mixed_order():
    warmup, *probes = session_probes(BEFORE, WORK, 0, reuse=False)
    assert warmup.step == "warmup"
    assert Counter(probe.prompt_tokens for probe in probes) == dict.fromkeys(LENGTHS, ROUNDS)
    assert {probe.output_tokens for probe in probes} == {48}
    rounds = [tuple(p.prompt_tokens for p in probes[i : i + 3]) for i in range(0, 9, 3)]
    assert len(set(rounds)) > 1
    assert list(session_probes(BEFORE, WORK, 0, reuse=False)) == [warmup, *probes]


def test_a_changed_request_is_measured_most():
    probes = list(session_probes(BEFORE, replace(WORK, prompt_tokens=1000), 0, reuse=False))[1:]
    counted = Counter(probe.prompt_tokens for probe in probes)
    assert counted[1000] == NEW_SHARE * sum(counted[tokens] for tokens in LENGTHS)


def test_reuse_is_measured_with_known_prompts_alone():
    probes = list(session_probes(BEFORE, WORK, 0, reuse=True))[1:]
    assert {(probe.step, probe.prompt_tokens) for probe in probes} == {("reuse", 2000)}


def test_a_probe_costs_what_one_as_long_took():
    seen = [record(1, 128, client=ClientTimes(end_s=1.0))]
    seen.append(record(2, 2000, client=ClientTimes(end_s=9.0)))
    assert usual_s(seen, Probe(step="curve", prompt_tokens=512, output_tokens=1)) == 9.0
    assert usual_s(seen, Probe(step="curve", prompt_tokens=64, output_tokens=1)) == 1.0
    assert usual_s([], Probe(step="curve", prompt_tokens=64, output_tokens=1)) == 0.0


def test_failures_are_borne_once():
    failed = record(2, 128, error=RequestError(kind="http", message="no", http_status=500))
    refuse_hopeless([record(1, 128)])
    refuse_hopeless([record(1, 128), failed])
    for hopeless in ([failed], [record(1, 128), failed, failed]):
        with pytest.raises(EndpointError, match="no"):
            refuse_hopeless(hopeless)


def test_conditions_count_by_the_seconds_of_their_requests():
    quiet, busy = Conditions(host_load=0.0), Conditions(host_load=0.8, trusted=False)
    found = together([(3.0, quiet), (1.0, busy)])
    assert found.host_load == pytest.approx(0.2)
    assert found.trusted
    found = together([(1.0, quiet), (1.0, busy), (1.0, busy)])
    assert not found.trusted
    assert found.warnings == ("other programs were at work during 2 of 3 requests",)
    assert together([]).host_load is None
