"""Interval arithmetic keeps its bounds in order."""

from __future__ import annotations

import pytest

from twospeed.fits.interval import Interval

INF = float("inf")


def test_scaling_keeps_the_bounds_in_order():
    assert Interval(1.0, 2.0, 4.0).scaled(3) == Interval(3.0, 6.0, 12.0)
    assert Interval(1.0, 2.0, 4.0).scaled(-1) == Interval(-4.0, -2.0, -1.0)


def test_a_rate_swaps_the_bounds_of_its_duration():
    assert Interval(1.0, 2.0, 4.0).divided_into(100) == Interval(25.0, 50.0, 100.0)
    assert Interval(0.0, 2.0, 4.0).divided_into(8) == Interval(2.0, 4.0, INF)


@pytest.mark.parametrize(
    ("interval", "width"),
    [
        (Interval(0.9, 1.0, 1.2), 0.3),
        (Interval(0.0, 0.0, 0.0), 0.0),
        (Interval(0.0, 0.0, 1.0), INF),
    ],
)
def test_width_is_a_share_of_the_likely_value(interval: Interval, width: float):
    assert interval.width_frac == pytest.approx(width)


def test_bounds_belong_to_the_interval():
    assert Interval(1.0, 2.0, 4.0).holds(1.0)
    assert Interval(1.0, 2.0, 4.0).holds(4.0)
    assert not Interval(1.0, 2.0, 4.0).holds(4.1)


def test_a_sum_and_a_rising_function_keep_the_bounds_apart():
    assert Interval(1.0, 2.0, 4.0).plus(Interval(0.5, 1.0, 3.0)) == Interval(1.5, 3.0, 7.0)
    assert Interval(1.0, 2.0, 4.0).through(lambda value: value**2) == Interval(1.0, 4.0, 16.0)
