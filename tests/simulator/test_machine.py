from __future__ import annotations

from itertools import islice

import pytest

from twospeed.simulator.machine import Machine


def test_prefill_follows_the_curve_of_the_fit():
    machine = Machine(prefill_tps=500, decode_tps=20, attention_half_depth=4000)
    a, b = 1 / 500, 1 / (2 * 4000 * 500)
    for tokens, cached in ((1, 0), (1000, 0), (1000, 3000), (0, 500)):
        expected = a * tokens + b * tokens**2 + 2 * b * cached * tokens
        assert machine.prefill_s(tokens, cached) == pytest.approx(expected, rel=1e-12)


def test_prefill_in_two_parts_takes_as_long_as_in_one():
    machine = Machine(prefill_tps=500, decode_tps=20, attention_half_depth=4000)
    parts = machine.prefill_s(700) + machine.prefill_s(300, 700)
    assert parts == pytest.approx(machine.prefill_s(1000), rel=1e-12)


def test_speeds_are_halved_at_their_half_depths():
    machine = Machine(
        prefill_tps=500, decode_tps=20, attention_half_depth=4000, decode_half_depth=8000
    )
    assert machine.token_s(8000) == pytest.approx(2 * machine.token_s(0))
    marginal_s = machine.prefill_s(4001) - machine.prefill_s(4000)
    assert marginal_s == pytest.approx(2 / 500, rel=1e-3)


def test_without_half_depths_nothing_slows_down():
    machine = Machine(prefill_tps=500, decode_tps=20)
    assert machine.prefill_s(5000, 5000) == 10.0
    assert machine.token_s(100_000) == 0.05


def test_a_shared_batch_slows_each_stream():
    machine = Machine(prefill_tps=1, decode_tps=10, shared_batch_frac=0.25)
    assert machine.token_s(0, streams=1) == pytest.approx(0.1)
    assert machine.token_s(0, streams=3) == pytest.approx(0.15)


@pytest.mark.parametrize("drafted", [0, 1, 4, 7])
def test_bursts_keep_the_mean_in_every_round(drafted):
    machine = Machine(prefill_tps=1, decode_tps=1, draft_tokens=drafted)
    bursts = list(islice(machine.bursts(), 3 * (drafted + 1)))
    for start in range(0, len(bursts), drafted + 1):
        turn = bursts[start : start + drafted + 1]
        assert sorted(turn) == list(range(1, drafted + 2))
        assert sum(turn) / len(turn) == machine.tokens_per_step


@pytest.mark.parametrize("accepted", [0.0, 0.1, 0.25, 0.8, 1.0])
def test_bursts_keep_the_part_that_is_accepted(accepted):
    machine = Machine(prefill_tps=1, decode_tps=1, draft_tokens=4, accepted_frac=accepted)
    bursts = list(islice(machine.bursts(), 200))
    assert all(1 <= burst <= 5 for burst in bursts)
    assert sum(bursts) / len(bursts) == pytest.approx(machine.tokens_per_step)
