from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from twospeed.cures.pace import (
    chance,
    constant,
    interval,
    pace_of,
    saved_between,
    slowed,
    stretch,
)
from twospeed.findings.observed import observe
from twospeed.fits.interval import Interval

COSTS = ("overhead_s", "per_token_s", "per_token2_s", "step_s", "depth_s")
ranges = st.tuples(*[st.floats(-10, 10)] * 3).map(lambda three: Interval(*sorted(three)))


def test_the_pace_is_that_of_the_report(runs):
    for machine in (runs.PREFILL_SLOW, runs.DECODE_SLOW, runs.BOTH_SLOW):
        observed = observe(runs.run_of(machine))
        pace = pace_of(observed)
        assert pace.prefill_s[0] == pytest.approx(observed.prefill_s.likely)
        assert pace.answer_s[0] == pytest.approx(observed.decode_s.likely)
        assert 1.0 / pace.mid_answer_step_s[0] == pytest.approx(observed.stream.tps)


def test_reasoning_comes_before_the_answer(runs):
    machine = runs.Machine(reasoning_frac=0.5, decode_per_depth_s=1e-5)
    pace = pace_of(observe(runs.run_of(machine)))
    assert 0 < pace.reasoning_s[0] < pace.answer_s[0], "the answer lies deeper"


def test_nothing_changed_saves_nothing_and_the_range_says_so(runs):
    observed = observe(runs.run_of(runs.BOTH_SLOW))
    pace = pace_of(observed)
    saved = saved_between(observed, pace, replace(pace))
    assert saved.total_s == Interval(0.0, 0.0, 0.0)


def test_an_exact_curve_and_a_known_factor_leave_a_tight_range(runs):
    observed = observe(runs.run_of(runs.BOTH_SLOW))
    exact = {name: constant(getattr(pace_of(observed), name)[0]) for name in COSTS}
    now = replace(pace_of(observed), **exact)
    saved = saved_between(observed, now, slowed(now, linear=0.5)).total_s
    assert saved.low == pytest.approx(saved.likely) == pytest.approx(saved.high)
    assert saved.likely == pytest.approx(runs.BOTH_SLOW.per_token_s * 2000 / 2, rel=0.01)


def test_a_phase_that_was_not_measured_stays_unknown(runs):
    observed = observe(runs.without_phase(runs.run_of(runs.BOTH_SLOW), "decode"))
    pace = pace_of(observed)
    halved = slowed(pace, linear=0.5, step=0.5)
    saved = saved_between(observed, pace, halved)
    assert saved.answer_s is None
    assert saved.total_s == saved.wait_s
    assert saved.wait_s.likely > 0


def test_one_request_without_a_curve_allows_for_what_it_does_not_show(runs):
    run = runs.run_of(runs.BOTH_SLOW)
    only = tuple(one for one in run.records if one.counts.prompt_tokens == 2048 and not one.repeats)
    observed = observe(runs.without_arrivals(with_fields(run, records=only)))
    assert observed.prefill is None
    assert observed.decode is None
    pace = pace_of(observed)
    assert pace.prefill_s[0] == pytest.approx(observed.prefill_s.likely)
    assert pace.mid_answer_step_s[0] == pytest.approx(1.0 / observed.stream.tps, rel=0.01)
    half = interval(pace.prefill_s - replace(pace, prompt_tokens=constant(1000)).prefill_s)
    assert half.low < observed.prefill_s.likely / 2 < half.high


@given(ranges)
def test_an_unknown_factor_keeps_to_its_range(found):
    drawn = chance(found, "anything")
    assert drawn[0] == found.likely
    assert found.low <= drawn.min()
    assert drawn.max() <= found.high
    back = interval(drawn)
    assert back.low == pytest.approx(found.low, abs=0.05 * (found.high - found.low) + 1e-9)
    assert back.high == pytest.approx(found.high, abs=0.05 * (found.high - found.low) + 1e-9)


def test_factors_of_different_names_are_independent_and_of_one_name_equal():
    wide = Interval(0.0, 0.5, 1.0)
    one, other = chance(wide, "one"), chance(wide, "other")
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.2
    assert (one == chance(wide, "one")).all()


def test_beyond_the_measured_range_the_interval_widens_on_both_sides():
    values = constant(4.0)
    assert interval(values, beyond=1.0) == Interval(4.0, 4.0, 4.0)
    wider = interval(values, beyond=4.0)
    assert (wider.low, wider.high) == pytest.approx((4.0 / 1.2, 4.8))
    loss = interval(-values, beyond=4.0)
    assert (loss.low, loss.high) == pytest.approx((-4.8, -4.0 / 1.2))
    far = interval(values, beyond=1e9)
    assert 0.0 < far.low < far.likely < far.high


def test_stretch_is_one_inside_what_was_measured(runs):
    inside = observe(runs.run_of(runs.BOTH_SLOW, prompt=2000))
    outside = observe(runs.run_of(runs.BOTH_SLOW, prompt=16_384))
    assert stretch(inside, pace_of(inside)) == 1.0
    assert stretch(outside, pace_of(outside)) == pytest.approx(4.0, rel=0.03)


def test_what_is_not_finite_is_unknown():
    assert interval(constant(np.nan)) is None
    assert interval(constant(np.inf)) is None
