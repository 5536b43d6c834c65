"""Comparisons: known answers, refusals, wild values, constants, two sessions."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.fits.paired import (
    ERROR,
    FEWEST_PAIRS,
    LOOKS,
    PHASE_ERROR,
    PHASES,
    Comparison,
    compare_pairs,
    compare_sessions,
    error_of,
    pairs_needed,
    settled,
    shown_drift,
    turned_round,
    whole,
    wild_places,
)


def noise(seed: int, count: int, scale: float = 0.04) -> list[float]:
    return [float(x) for x in np.random.default_rng(seed).normal(scale=scale, size=count)]


def test_all_looks_of_all_phases_spend_the_promised_error():
    for looks in range(len(LOOKS) + 1):
        early = sum(error_of(n, at_end=False) for n in range(looks))
        assert len(PHASES) * (early + error_of(looks, at_end=True)) == pytest.approx(ERROR)
    assert error_of(len(LOOKS), at_end=True) > PHASE_ERROR / 2


def test_a_clear_difference_is_shown_either_way():
    values = [x - log(1.38) for x in noise(1, 20)]
    found = compare_pairs(values)
    assert found.verdict == "faster"
    assert found.low < 1 / 1.38 < found.high < 1.0
    assert compare_pairs([-x for x in values]).verdict == "slower"
    assert found.pairs == 20


def test_equals_show_no_difference_and_say_what_would_have_been_seen():
    found = compare_pairs(noise(11, 20))
    assert found.verdict == "no difference shown"
    assert found.high - 1.0 < found.minimum_detectable < 0.08


def test_the_minimum_detectable_change_is_found_nine_times_of_ten():
    smallest = float(
        np.median([compare_pairs(noise(i, 20)).minimum_detectable for i in range(200)])
    )
    found = [
        compare_pairs([x + log(1 + smallest) for x in noise(1000 + i, 20)]).verdict
        for i in range(400)
    ]
    assert 0.85 < found.count("slower") / 400 < 0.97


@pytest.mark.parametrize("count", range(FEWEST_PAIRS))
def test_too_few_pairs_are_refused(count: int):
    found = compare_pairs([0.5] * count)
    assert found.verdict == "cannot tell"
    assert found.why == ("too_few" if count else "not_measured")
    assert found.low is None
    assert found.high is None


def test_constant_values():
    assert compare_pairs([0.0] * 8).verdict == "no difference shown"
    shown = compare_pairs([log(2.0)] * 8)
    assert shown.verdict == "slower"
    assert (shown.low, shown.ratio, shown.high) == pytest.approx((2.0, 2.0, 2.0))


@pytest.mark.parametrize("wild", [5.0, -5.0])
def test_one_wild_value_neither_decides_nor_hides(wild: float):
    assert compare_pairs([*noise(4, 19), wild]).verdict == "no difference shown"
    assert compare_pairs([*[x - 0.07 for x in noise(4, 19)], wild]).verdict == "faster"
    assert wild_places([*noise(4, 19), wild]) == [19]


def test_nothing_is_wild_among_equals():
    assert wild_places([0.0] * 9) == []
    assert wild_places([]) == []


def test_a_wide_interval_tells_nothing():
    found = compare_pairs(noise(5, 10, scale=0.6))
    assert (found.verdict, found.why) == ("cannot tell", "too_noisy")
    assert found.low is not None


def test_a_difference_that_turns_round_tells_nothing():
    values = [x - 0.5 for x in noise(6, 8)] + [x + 0.3 for x in noise(7, 8)]
    found = compare_pairs(values)
    assert (found.verdict, found.why) == ("cannot tell", "changed_midway")
    assert not turned_round(noise(8, 16))


def test_equals_hardly_ever_seem_to_turn_round():
    turned = sum(turned_round(noise(seed, 16)) for seed in range(1000))
    assert turned < 20


def test_settled_is_narrow_or_clear():
    def told(low: float, ratio: float, high: float, verdict: str) -> Comparison:
        return Comparison(verdict=verdict, low=low, ratio=ratio, high=high, pairs=12)

    assert settled(told(0.98, 1.0, 1.02, "no difference shown"))
    assert not settled(told(0.95, 1.0, 1.05, "no difference shown"))
    assert settled(told(0.46, 0.5, 0.54, "faster"))
    assert not settled(told(0.9, 0.93, 0.97, "faster"))
    assert not settled(Comparison(verdict="cannot tell"))


def test_pairs_needed_grow_with_the_square_of_the_width():
    found = compare_pairs(noise(9, 20, scale=0.1))
    needed = pairs_needed(found)
    assert needed > 60
    assert settled(compare_pairs(noise(10, 2 * needed, scale=0.1)))
    assert pairs_needed(compare_pairs([0.0])) is None


def test_sessions_of_thirty_and_twenty_values_of_one_distribution():
    shown = [compare_sessions(noise(i, 30), noise(1000 + i, 20), 0.0).verdict for i in range(300)]
    assert set(shown) <= {"no difference shown", "cannot tell"}
    assert shown.count("no difference shown") > 285


def test_sessions_are_widened_by_mood_and_drift():
    first, second = noise(1, 15), [x - 0.3 for x in noise(2, 15)]
    calm, moody = compare_sessions(first, second, 0.0), compare_sessions(first, second, 0.1)
    assert calm.verdict == "faster"
    assert log(calm.high) - log(calm.low) > 2 * log(1.05)
    assert log(moody.high / calm.high) == pytest.approx(0.1)
    small = compare_sessions(first, [x - 0.06 for x in noise(2, 15)], 0.0)
    assert (small.verdict, small.why) == ("cannot tell", "sessions")


def test_one_value_against_one_value_is_refused():
    assert compare_sessions([0.1], [0.4], 0.0).why == "too_few"
    assert compare_sessions([], [0.4], 0.0).why == "not_measured"


def test_a_whole_is_the_sum_of_its_parts():
    faster, same = compare_pairs([log(0.5)] * 8), compare_pairs([0.0] * 8)
    found = whole([(faster, 3.0), (same, 1.0)], fixed_s=0.5, first_s=5.0)
    assert found.ratio == pytest.approx((0.5 + 3.0 * 0.5 + 1.0) / 5.0)
    assert found.verdict == "faster"
    unknown = whole([(faster, 1.0), (compare_pairs([]), 1.0)], fixed_s=0.0, first_s=2.0)
    assert (unknown.verdict, unknown.why) == ("cannot tell", "not_measured")
    assert whole([], fixed_s=0.0, first_s=0.0).verdict == "cannot tell"


def test_drift_is_what_scatter_alone_does_not_give():
    assert shown_drift([0.01 * i for i in range(21)]) == pytest.approx(0.2, abs=0.1)
    assert shown_drift([-0.01 * i for i in range(21)]) < -0.05
    assert sum(shown_drift(noise(seed, 12)) != 0.0 for seed in range(200)) < 30
    assert shown_drift([1.0]) == 0.0


@given(st.lists(st.floats(-3, 3), max_size=30))
def test_any_values_give_ordered_bounds(values):
    found = compare_pairs(values)
    if found.low is not None:
        assert 0 < found.low <= found.ratio <= found.high
        assert found.why is None or found.verdict == "cannot tell"
    swapped = compare_pairs([-x for x in values])
    turned = {"faster": "slower", "slower": "faster"}
    assert swapped.verdict == turned.get(found.verdict, found.verdict)
