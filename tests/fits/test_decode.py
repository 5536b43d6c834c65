"""The decode curve: known answers, coverage, refusal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec import structs

from twospeed.fits.decode import DecodeFit, fit_decode
from twospeed.fits.observations import DecodePoint

DEPTHS = (140, 270, 520, 1020, 2020)


def truth(depth: float) -> float:
    return 0.02 + 5e-6 * depth


def points(
    depths: Sequence[float] = DEPTHS, *, repeats: int = 1, noise_frac: float = 0.0, seed: int = 1
) -> list[DecodePoint]:
    random = np.random.default_rng(seed)
    return [
        DecodePoint(
            depth_tokens=depth,
            per_token_s=truth(depth) * (1 + noise_frac * random.standard_normal()),
            steps=31,
            origin="server",
            record=1,
        )
        for _ in range(repeats)
        for depth in depths
    ]


def fit(measured: Sequence[DecodePoint]) -> DecodeFit:
    found = fit_decode(measured)
    assert found is not None
    return found


def test_exact_timings_give_back_the_curve():
    found = fit(points())
    assert found.per_token_s == pytest.approx(0.02)
    assert found.per_depth_token_s == pytest.approx(5e-6)
    assert found.per_token(1500).likely == pytest.approx(truth(1500))
    assert found.tps(1000).likely == pytest.approx(40.0)
    assert found.half_speed_depth == pytest.approx(4000)
    assert (found.shallowest_tokens, found.deepest_tokens) == (140, 2020)
    assert found.origin == "server"


def test_the_seconds_of_an_answer_are_the_sum_of_its_steps():
    found = fit(points())
    assert found.seconds(1000, 300).likely == pytest.approx(
        sum(truth(1000 + step) for step in range(300))
    )
    assert found.seconds(1000, 0).likely == 0.0


def test_depths_close_together_leave_the_slope_unknown():
    found = fit(points((500, 510, 540)))
    assert found.per_depth_token_s is None
    assert found.half_speed_depth is None
    assert found.per_token(520).likely == pytest.approx(truth(520), rel=0.01)
    assert found.per_token(520) == found.per_token(100)


@pytest.mark.parametrize(("deepest", "known"), [(263, False), (264, True)])
def test_the_slope_needs_twice_the_depth_and_64_tokens(deepest: int, known: bool):
    assert (fit(points((100, 150, deepest))).per_depth_token_s is not None) == known


def test_no_slope_is_known_to_be_zero_when_depth_costs_nothing():
    flat = [structs.replace(point, per_token_s=0.03) for point in points()]
    found = fit(flat)
    assert found.per_depth_token_s == pytest.approx(0.0, abs=1e-12)
    assert found.per_token(1000).likely == pytest.approx(0.03)


def test_nine_of_ten_intervals_hold_the_truth():
    fits = [fit(points(repeats=3, noise_frac=0.03, seed=seed)) for seed in range(250)]
    for depth in (150, 1000, 2000):
        covered = np.mean([f.per_token(depth).holds(truth(depth)) for f in fits])
        assert 0.85 <= covered <= 0.97, depth
    covered = np.mean(
        [f.seconds(1000, 300).holds(fit(points()).seconds(1000, 300).likely) for f in fits]
    )
    assert 0.85 <= covered <= 0.97


def test_one_wild_repeat_changes_nothing():
    measured = points(repeats=2, noise_frac=0.01)
    measured[3] = structs.replace(measured[3], per_token_s=0.4)
    assert fit(measured).per_token(1500).likely == pytest.approx(truth(1500), rel=0.03)


def test_order_does_not_matter():
    measured = points(repeats=2, noise_frac=0.03)
    assert fit(measured[::-1]).per_token(1500) == fit(measured).per_token(1500)


def test_intervals_widen_beyond_the_measured_depth():
    found = fit(points(repeats=3, noise_frac=0.02))
    widths = [found.per_token(depth).width_frac for depth in (2000, 4000, 16_000)]
    assert widths == sorted(widths)
    assert fit(points((500, 510))).per_token(2000).width_frac > 0.3  # no slope, far below


def test_a_single_timing_is_refused():
    assert fit_decode(points((500,))) is None
    assert fit_decode([]) is None
