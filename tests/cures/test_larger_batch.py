"""The saving of a larger batch, against curves that were measured with and without it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from twospeed.cures import larger_batch
from twospeed.cures.larger_batch import batch_of, batch_tokens
from twospeed.cures.pace import pace_of, saved_between
from twospeed.findings.observed import observe
from twospeed.records.run import MachineFacts, ModelHeader, RuntimeFacts, ServerProcess, Source

SMOLLM = ModelHeader(
    file_bytes=98_000_000,
    parameters=134_515_008,
    active_parameters=106_203_456,
    read_bytes_per_token=98_000_000,
)


@dataclass(frozen=True)
class Measured:
    """SmolLM2-135M on two cores, llama.cpp b11549: curves at one batch, prefill at 512."""

    batch: int
    per_token_s: float
    per_token2_s: float
    at_512_s: float


@pytest.mark.parametrize(
    "measured",
    [
        Measured(batch=8, per_token_s=0.003517, per_token2_s=1.736e-6, at_512_s=3.39),
        Measured(batch=32, per_token_s=0.003206, per_token2_s=1.37e-6, at_512_s=3.39),
        Measured(batch=64, per_token_s=0.002797, per_token2_s=6.03e-7, at_512_s=3.39),
    ],
    ids=lambda measured: str(measured.batch),
)
def test_the_range_holds_what_was_measured(runs, measured):
    machine = runs.Machine(
        overhead_s=0.008,
        per_token_s=measured.per_token_s,
        per_token2_s=measured.per_token2_s,
        decode_per_token_s=0.0081,
        decode_per_depth_s=5.9e-6,
    )
    facts = RuntimeFacts(n_ubatch=measured.batch, layers_offloaded=0)
    observed = observe(runs.run_of(machine, prompt=1000, output=100, facts=facts, header=SMOLLM))
    now = pace_of(observed)
    saved = saved_between(observed, now, batch_of(observed, 512)(now)).wait_s
    really = machine.prefill_s(1000) - measured.at_512_s
    assert saved.likely == pytest.approx(really, abs=0.15 * machine.prefill_s(1000))
    assert saved.low <= really + 0.1
    assert really - 0.3 <= saved.high


def test_an_unknown_batch_has_no_price(runs):
    observed = observe(runs.run_of(runs.PREFILL_SLOW))
    assert batch_tokens(observed) is None
    assert larger_batch.propose(observed) == []


def test_the_batch_is_read_off_the_command_line_where_the_runtime_is_silent(runs):
    server = ServerProcess(command=("llama-server", "-ub", "8", "--batch-size=2048"))
    run = runs.run_of(runs.PREFILL_SLOW, machine=MachineFacts(server=server))
    observed = observe(run)
    assert batch_tokens(observed) == 8
    (proposal,) = larger_batch.propose(observed)
    assert proposal.how[0] == "change -ub 8 to --ubatch-size 512"


def test_a_smaller_batch_costs_and_a_usual_one_is_left_alone(runs):
    facts = RuntimeFacts(n_ubatch=512, n_batch=2048)
    observed = observe(runs.run_of(runs.PREFILL_SLOW, facts=facts))
    assert larger_batch.propose(observed) == []
    now = pace_of(observed)
    saved = saved_between(observed, now, batch_of(observed, 2)(now)).wait_s
    assert saved.high < 0


def test_no_batch_makes_a_prompt_free(runs):
    machine = runs.Machine(per_token_s=0.001, decode_per_token_s=5.0)
    observed = observe(runs.run_of(machine, facts=RuntimeFacts(n_batch=2)))
    now = pace_of(observed)
    then = batch_of(observed, 512)(now)
    assert (then.per_token_s >= larger_batch.LEAST_LEFT * now.per_token_s).all()


def test_unknown_parts_of_the_header_count_as_a_whole_step(runs):
    bare = replace(SMOLLM, active_parameters=None)
    facts = RuntimeFacts(n_ubatch=8, layers_offloaded=0)
    machine = runs.Machine(per_token_s=0.004, decode_per_token_s=0.008)
    whole = observe(runs.run_of(machine, facts=facts, header=bare))
    part = observe(runs.run_of(machine, facts=facts, header=SMOLLM))

    def saves(observed):
        now = pace_of(observed)
        return saved_between(observed, now, batch_of(observed, 512)(now)).wait_s.likely

    assert saves(whole) > saves(part) > 0


def test_both_limits_are_raised_where_both_are_small(runs):
    facts = RuntimeFacts(n_ubatch=8, n_batch=8)
    engine = Source(kind="engine", where="embedded", runtime="llama-server")
    observed = observe(runs.run_of(runs.PREFILL_SLOW, facts=facts, source=engine))
    (proposal,) = larger_batch.propose(observed)
    assert proposal.how[:2] == (
        "run with --engine ubatch-size=512",
        "run with --engine batch-size=512",
    )
    assert proposal.check == (
        "twospeed verify --embedded --engine ubatch-size=8,batch-size=8 "
        "--engine ubatch-size=512,batch-size=512"
    )
