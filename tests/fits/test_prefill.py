"""The prefill curve: known answers, coverage, invariance, refusal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from twospeed.fits.observations import PrefillPoint
from twospeed.fits.prefill import PrefillFit, fit_prefill

LENGTHS = (125, 250, 500, 1000, 2000)


def point(prompt: int, seconds: float, *, cached: int = 0, record: int = 1) -> PrefillPoint:
    return PrefillPoint(
        prompt_tokens=prompt, cached_tokens=cached, s=seconds, origin="client", record=record
    )


def truth(n: float, c: float = 0, *, curve: Sequence[float] = (0.03, 2e-3, 4e-7)) -> float:
    overhead, a, b = curve
    return overhead + a * n + b * (n * n + 2 * c * n)


def points(
    lengths: Sequence[int] = LENGTHS,
    *,
    repeats: int = 1,
    noise_frac: float = 0.0,
    seed: int = 1,
    curve: Sequence[float] = (0.03, 2e-3, 4e-7),
) -> list[PrefillPoint]:
    random = np.random.default_rng(seed)
    return [
        point(n, truth(n, curve=curve) * (1 + noise_frac * random.standard_normal()))
        for _ in range(repeats)
        for n in lengths
    ]


def fit(measured: Sequence[PrefillPoint]) -> PrefillFit:
    found = fit_prefill(measured)
    assert found is not None
    return found


def test_exact_timings_give_back_the_curve():
    found = fit(points())
    assert found.overhead_s == pytest.approx(0.03, rel=1e-6)
    assert found.per_token_s == pytest.approx(2e-3, rel=1e-6)
    assert found.per_token2_s == pytest.approx(4e-7, rel=1e-6)
    assert found.seconds(700).likely == pytest.approx(truth(700))
    assert found.tps(1000).likely == pytest.approx(1000 / truth(1000))
    assert found.crossover_tokens == pytest.approx(5000)
    assert (found.shortest_tokens, found.longest_tokens) == (125, 2000)
    assert found.origin == "client"


def test_the_cached_part_costs_through_depth_only():
    found = fit(points())
    assert found.seconds(2000, 1500).likely == pytest.approx(truth(500, 1500))
    assert found.tps(2000, 1500).likely == pytest.approx(500 / truth(500, 1500))


def test_timings_at_depth_belong_to_the_same_curve():
    measured = [
        point(n + c, truth(n, c), cached=c) for n in (100, 400, 1600) for c in (0, 1000, 4000)
    ]
    found = fit(measured)
    assert found.per_token2_s == pytest.approx(4e-7, rel=1e-6)
    assert found.seconds(3000, 2000).likely == pytest.approx(truth(1000, 2000))


def test_a_linear_machine_gets_no_quadratic_part():
    found = fit(points(curve=(0.05, 1e-3, 0)))
    assert found.per_token2_s == 0.0
    assert found.crossover_tokens is None
    assert found.seconds(2000).likely == pytest.approx(2.05)


def test_noise_alone_seldom_passes_for_a_quadratic_part():
    kept = [
        fit(points(repeats=3, noise_frac=0.03, seed=seed, curve=(0.02, 2e-3, 0))).per_token2_s > 0
        for seed in range(200)
    ]
    assert np.mean(kept) < 0.15  # √2 standard errors: 8 % where the noise is known exactly


def test_a_quadratic_part_that_matters_is_kept():
    kept = [
        fit(points(repeats=3, noise_frac=0.03, seed=seed, curve=(0.02, 2e-3, 4e-7))).per_token2_s
        for seed in range(100)
    ]
    assert np.mean(np.array(kept) > 0) > 0.95
    assert np.median(kept) == pytest.approx(4e-7, rel=0.1)


@pytest.mark.parametrize("curve", [(0.02, 2e-3, 4e-7), (0.0, 2e-3, 0.0), (0.1, 1e-3, 1e-7)])
def test_nine_of_ten_intervals_hold_the_truth(curve: tuple[float, float, float]):
    fits = [fit(points(repeats=3, noise_frac=0.03, seed=seed, curve=curve)) for seed in range(250)]
    for n in (150, 400, 1000, 2000):
        covered = np.mean([f.seconds(n).holds(truth(n, curve=curve)) for f in fits])
        assert 0.85 <= covered <= 0.97, n


def test_the_interval_narrows_with_repeats():
    def width(repeats: int) -> float:
        widths = [
            fit(points(repeats=repeats, noise_frac=0.05, seed=seed)).seconds(2000).width_frac
            for seed in range(30)
        ]
        return float(np.median(widths))

    assert width(8) < 0.7 * width(2)


def test_intervals_widen_beyond_the_measured_range():
    found = fit(points(repeats=3, noise_frac=0.03))
    widths = [found.seconds(n).width_frac for n in (1000, 2000, 4000, 8000, 32_000)]
    assert widths[1:] == sorted(widths[1:])
    assert widths[2] > 1.5 * widths[1]
    assert fit(points()).seconds(8000).width_frac > 0.2  # even where every timing was exact


@pytest.mark.parametrize("factor", [0.1, 5.0])
def test_one_wild_repeat_changes_nothing(factor: float):
    measured = points(repeats=2, noise_frac=0.01)
    for index in range(len(measured)):
        wild = list(measured)
        wild[index] = structs.replace(wild[index], s=wild[index].s * factor)
        found = fit(wild)
        assert found.seconds(2000).likely == pytest.approx(truth(2000), rel=0.05)
        assert found.seconds(2000).width_frac < 0.15
        assert wild[index] not in found.points


def test_the_only_timing_of_a_length_is_never_called_wild():
    measured = [*points((125, 250, 500, 1000), repeats=3, noise_frac=0.01), point(2000, 30.0)]
    assert measured[-1] in fit(measured).points


def test_prompts_of_nearly_the_same_length_are_repeats():
    exact = [point(n + d, truth(n + d)) for n in LENGTHS for d in (-2, 0, 3)]
    found = fit(exact)
    assert found.seconds(1500).likely == pytest.approx(truth(1500), rel=1e-6)


@pytest.mark.parametrize(
    "lengths", [(), (500,), (500, 500, 510), (500, 900), (1000, 1900)], ids=str
)
def test_too_few_lengths_are_refused(lengths: tuple[int, ...]):
    assert fit_prefill(points(lengths, repeats=3)) is None


def test_two_lengths_far_apart_allow_a_straight_line():
    found = fit(points((500, 1000), curve=(0.1, 1e-3, 0)))
    assert found.per_token2_s == 0.0
    assert found.seconds(750).likely == pytest.approx(0.85)
    assert found.seconds(1000).width_frac > 0.1


def test_nothing_comes_out_negative():
    falling = [point(n, s) for n, s in ((100, 1.0), (200, 0.9), (400, 0.7), (800, 0.6))]
    found = fit(falling)
    assert min(found.overhead_s, found.per_token_s, found.per_token2_s) >= 0
    assert found.seconds(400).low > 0


def test_a_curve_made_by_hand_is_known_exactly():
    known = PrefillFit(
        overhead_s=0.1,
        per_token_s=1e-3,
        per_token2_s=0.0,
        points=(),
        shortest_tokens=1,
        longest_tokens=4000,
        origin="assumed",
    )
    assert known.seconds(1000).low == known.seconds(1000).high == pytest.approx(1.1)


curves = st.tuples(st.floats(0, 0.5), st.floats(1e-5, 0.1), st.floats(0, 1e-6))


@given(curve=curves, order=st.randoms(use_true_random=False), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_order_does_not_matter(curve: tuple[float, float, float], order: object, seed: int):
    measured = points(repeats=2, noise_frac=0.03, seed=seed, curve=curve)
    shuffled = list(measured)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fit(shuffled).seconds(1500) == fit(measured).seconds(1500)


@given(curve=curves, scale=st.floats(1e-3, 1e3), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_the_unit_of_time_does_not_matter(
    curve: tuple[float, float, float], scale: float, seed: int
):
    measured = points(repeats=2, noise_frac=0.03, seed=seed, curve=curve)
    scaled = [structs.replace(p, s=p.s * scale) for p in measured]
    once, again = fit(measured).seconds(1500).scaled(scale), fit(scaled).seconds(1500)
    assert (again.low, again.likely, again.high) == pytest.approx(
        (once.low, once.likely, once.high), rel=1e-6
    )


def hidden(template: int, *, lengths: Sequence[int] = LENGTHS) -> list[PrefillPoint]:
    """Timings of a runtime that never tells that the head of each prompt was cached."""
    curve = (0.0, 2e-3, 2.5e-7)
    return [
        structs.replace(
            point(n, truth(n - template, template, curve=curve), record=number),
            cached_is_assumed=True,
        )
        for number, n in enumerate(lengths, 1)
    ]


@pytest.mark.parametrize("template", [0, 4, 24])
def test_a_hidden_chat_template_does_not_bend_the_curve(template: int):
    fit = fit_prefill(hidden(template))
    assert fit is not None
    assert fit.per_token_s == pytest.approx(2e-3, rel=0.01)
    assert fit.per_token2_s == pytest.approx(2.5e-7, rel=0.05)
    assert all(abs(p.cached_tokens - template) <= 1 for p in fit.points)


def test_a_real_overhead_is_no_template():
    timings = [structs.replace(p, cached_is_assumed=True) for p in points()]
    fit = fit_prefill(timings)
    assert fit is not None
    assert fit.overhead_s == pytest.approx(0.03, rel=0.02)
    assert all(p.cached_tokens == 0 for p in fit.points)


def test_told_counts_are_left_alone():
    timings = [structs.replace(p, cached_is_assumed=False) for p in hidden(24)]
    fit = fit_prefill(timings)
    assert fit is not None
    assert all(p.cached_tokens == 0 for p in fit.points)


def test_timings_that_came_out_far_too_short_do_not_rule_the_curve():
    # As from a stream whose first event was taken to hold more tokens than it did.
    lengths = (64, 64, 127, 127, 127, 253, 253, 500, 500, 1000, 1000)
    timings = [point(n, 0.0005 * n if n > 64 else 0.001) for n in lengths]
    fit = fit_prefill(timings)
    assert fit is not None
    assert fit.seconds(1000).likely == pytest.approx(0.5, rel=0.1)
