"""Rank intervals: known answers, coverage, invariance, refusal."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.fits.ranks import (
    mann_whitney_chances,
    paired_bounds,
    robust_sd,
    shift_bounds,
    signed_rank_chances,
    trend,
)

NUMBERS = st.lists(st.floats(-10, 10), min_size=8, max_size=24)


@pytest.mark.parametrize("pairs", [1, 4, 7])
def test_signed_rank_chances_are_those_of_counting(pairs: int):
    sums = [
        sum(rank for rank, up in enumerate(signs, 1) if up)
        for signs in product((False, True), repeat=pairs)
    ]
    counted = np.bincount(sums, minlength=pairs * (pairs + 1) // 2 + 1) / 2**pairs
    assert signed_rank_chances(pairs) == pytest.approx(counted)


def test_mann_whitney_chances_are_those_of_counting():
    # Five places, two of which belong to the second side.
    counts = [
        (i - 0) + (j - 1) for i in range(5) for j in range(i + 1, 5)
    ]  # values of the first side below each
    counted = np.bincount(counts, minlength=7) / comb(5, 2)
    assert mann_whitney_chances(3, 2) == pytest.approx(counted)


def test_published_interval():
    """Hamilton depression scale, Hollander, Wolfe & Chicken, table 3.1 and example 3.3."""
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    found = paired_bounds([y - x for x, y in zip(before, after, strict=True)], 0.04)
    assert found.likely == pytest.approx(-0.46)
    assert (found.low, found.high) == pytest.approx((-0.786, -0.010))


def test_too_few_are_refused():
    assert paired_bounds([], 0.05) is None
    assert paired_bounds([1.0] * 5, 0.05) is None
    assert paired_bounds([1.0] * 6, 0.05) is not None
    assert shift_bounds([1.0], [2.0], 0.05) is None
    assert shift_bounds([], [2.0], 0.05) is None


def test_constants_have_no_width():
    assert paired_bounds([0.3] * 9, 0.05) == (0.3, 0.3, 0.3)
    assert shift_bounds([1.0] * 8, [1.5] * 8, 0.05) == (0.5, 0.5, 0.5)


@given(NUMBERS, st.floats(-5, 5), st.floats(0.1, 10))
def test_bounds_move_and_stretch_with_the_values(values, by, factor):
    plain = paired_bounds(values, 0.05)
    changed = paired_bounds([factor * value + by for value in values], 0.05)
    assert changed == pytest.approx([factor * bound + by for bound in plain], abs=1e-6)
    mirrored = paired_bounds([-value for value in reversed(values)], 0.05)
    assert mirrored == pytest.approx([-plain.high, -plain.likely, -plain.low])


@given(NUMBERS)
def test_one_wild_value_moves_the_bounds_within_the_rest(values):
    found = paired_bounds([*values, 1e6], 0.05)
    assert found.likely <= max(values)
    assert found.low <= max(values)


@pytest.mark.parametrize("pairs", [7, 12, 19])
@pytest.mark.parametrize("shape", ["normal", "heavy", "uneven"])
def test_paired_coverage(pairs: int, shape: str):
    random = np.random.default_rng(pairs)
    drawn = {
        "normal": lambda: random.normal(size=pairs),
        "heavy": lambda: random.standard_t(1.5, size=pairs),
        "uneven": lambda: random.normal(size=pairs) * np.linspace(0.1, 10, pairs),
    }[shape]
    missed = sum(
        not found.low <= 0.0 <= found.high
        for found in (paired_bounds(list(drawn()), 0.05) for _ in range(2000))
    )
    assert 0.02 < missed / 2000 < 0.05 + 2.6 * (0.05 * 0.95 / 2000) ** 0.5


def test_unpaired_coverage_with_thirty_and_twenty_values():
    random = np.random.default_rng(30)
    missed = sum(
        not found.low <= 0.2 <= found.high
        for found in (
            shift_bounds(list(random.normal(size=30)), list(0.2 + random.normal(size=20)), 0.05)
            for _ in range(2000)
        )
    )
    assert missed / 2000 == pytest.approx(0.05, abs=0.013)


def test_many_unpaired_values_are_thinned_evenly():
    found = shift_bounds(list(np.arange(500.0)), list(np.arange(500.0) + 100.0), 0.05)
    assert found.likely == pytest.approx(100.0, abs=3.0)


def test_scale_of_ordinary_values():
    values = list(np.random.default_rng(3).normal(scale=2.0, size=400))
    assert robust_sd(values) == pytest.approx(2.0, rel=0.15)
    assert robust_sd([*values, 1e9]) == pytest.approx(2.0, rel=0.15)
    assert robust_sd([]) == 0.0


def test_trend_is_the_change_over_the_whole():
    steady = [0.01 * i for i in range(21)]
    assert trend(steady) == pytest.approx(0.2)
    steady[4] = 9.0
    assert trend(steady) == pytest.approx(0.2, abs=0.01)
    assert trend([1.0]) == 0.0
