"""The solver under the fits, against a search that knows no linear algebra."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twospeed.fits.curve import _non_negative as non_negative
from twospeed.fits.curve import fit_curve, interval_of, near_cells
from twospeed.fits.interval import Interval


@given(
    seed=st.integers(0, 10_000),
    width=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_no_neighbour_of_the_solution_is_better(seed: int, width: int):
    random = np.random.default_rng(seed)
    rows = random.uniform(0.1, 2.0, (6, width))
    target = random.normal(1.0, 1.5, 6)
    found = non_negative(rows, target[None])[0]
    assert (found >= 0).all()

    def loss(at: np.ndarray) -> float:
        return float(((rows @ at - target) ** 2).sum())

    for step in random.normal(0, 0.05, (200, width)):
        assert loss(np.maximum(found + step, 0)) >= loss(found) - 1e-9


def test_many_targets_are_solved_as_each_one_alone():
    random = np.random.default_rng(3)
    rows, targets = random.uniform(0.1, 2.0, (5, 3)), random.normal(1, 1, (40, 5))
    together = non_negative(rows, targets)
    alone = np.array([non_negative(rows, target[None])[0] for target in targets])
    assert together == pytest.approx(alone)


def test_columns_that_cannot_be_told_apart_do_no_harm():
    rows = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    found = non_negative(rows, np.array([[2.0, 4.0, 6.0]]))[0]
    assert rows @ found == pytest.approx([2.0, 4.0, 6.0])


def test_groups_start_afresh_once_a_value_is_too_far_from_their_smallest():
    assert near_cells([100, 104, 106, 50, 50]) == [1, 1, 2, 0, 0]
    assert near_cells([]) == []


def test_the_likely_value_always_lies_inside_its_interval():
    assert interval_of(5.0, np.linspace(1, 2, 11)) == Interval(1.05, 5.0, 5.0)


def test_a_fit_costs_milliseconds():
    lengths = np.repeat([125.0, 250, 500, 1000, 2000], 3)
    features = np.stack((np.ones_like(lengths), lengths, lengths**2), axis=1)
    seconds = features @ [0.02, 2e-3, 4e-7] * np.random.default_rng(1).normal(1, 0.03, 15)
    cells = [int(cell) for cell in np.repeat(range(5), 3)]
    fit_curve(features, seconds, cells, doubtful=2)
    costs = []
    for _ in range(20):
        before = time.thread_time()
        fit_curve(features, seconds, cells, doubtful=2)
        costs.append(time.thread_time() - before)
    assert min(costs) < 0.01  # about 2 ms on the test machine; the margin is for slower ones
