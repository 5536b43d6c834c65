"""A non-negative curve through noisy timings, and how well it is known.

Timings are `seconds = features · coefficients` with multiplicative noise: a run that is 3 % slow
is so at any length, so residuals count relative to the curve. Both phases use this: prefill with
the features (1, n, n² + 2cn), decode with (1, depth).

Method: a fit of least absolute deviations finds wild repeats; the rest is reduced to one median
per cell (timings at nearly equal features); weighted least squares under coefficients ≥ 0 follow.
The interval comes from a parametric bootstrap of the medians.

Source: Lawson & Hanson, Solving Least Squares Problems (1974), ch. 23 (NNLS; with at most three
coefficients every active set is tried instead). Davison & Hinkley, Bootstrap Methods and their
Application (1997), §6.2 (parametric resampling of a regression). Gelman et al., Bayesian Data
Analysis (3rd ed.), §2.6 (scaled inverse χ² prior of a variance).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from twospeed.fits.interval import LEVEL, Interval

Floats = NDArray[np.float64]

RESAMPLES = 400
SEED = 20_261_130
NOISE_PRIOR_FRAC = 0.04
"""Scatter of repeats that is assumed before any was seen, ..."""
NOISE_PRIOR_WEIGHT = 2.0
"""... counted as that many seen deviations, so that three lucky repeats do not claim certainty."""
WILD_DEVIATIONS = 5.0
"""A timing further off than this many standard deviations is a wild repeat ..."""
TOO_SHORT = -0.7
WILD_SHARE = 0.2
"""... unless more than this share were: then it is noise."""
BAD_DEVIATION = 0.3
"""A curve that the timings miss by this share on average is not the one they follow."""
BEYOND_FRAC_PER_DOUBLING = 0.10
"""Past the measured range the shape itself is an assumption: this much wider per doubling."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Fitted coefficients and the resampled ones that say how well they are known."""

    coefficients: Floats
    draws: Floats
    """One row per resample."""
    noise_frac: float
    """Relative standard deviation of one timing about the curve."""
    wild: tuple[int, ...]
    """Timings that were left out, by their index."""


def fit_curve(
    features: Floats, seconds: Floats, cells: Sequence[int], *, doubtful: int | None = None
) -> Curve:
    """Fit `seconds = features · coefficients` under coefficients ≥ 0.

    A doubtful coefficient is kept only when, fitted without the bound, it exceeds √2 standard
    errors: then keeping it lowers the expected error of the curve (Mallows 1973, Some Comments on
    C_p; the AIC rule for one coefficient). Otherwise the likely curve lacks it, but the draws keep
    it: not shown is not the same as shown to be zero.

    Args:
        features: one row per timing; more distinct rows than columns, or as many.
        seconds: above 0, one per timing.
        cells: timings with the same number are repeats of each other.
        doubtful: column of the coefficient that must earn its place.
    """
    robust = _least_absolute(features, seconds)
    slowness = seconds / _fitted(features, robust, seconds)
    cell = np.asarray(cells)
    wild = _wild(slowness - 1.0, cell)
    kept = ~wild
    rows, medians, repeats = _cell_medians(
        features[kept], seconds[kept], slowness[kept], cell[kept]
    )
    # The scatter of a median of m, relative to one timing: π/2m for large m, exact for m = 1 and
    # within 1 % for m = 3 and 5.
    spread = np.sqrt((np.pi / 2) / (repeats + np.pi / 2 - 1))
    # By the curve and not by the timings: a slow one would count less, and one that came out far
    # too short would count for all.
    weights = 1.0 / (_fitted(rows, robust, medians) * spread)
    for _ in range(2):
        scaled = rows * weights[:, None]
        full = likely = _non_negative(scaled, (medians * weights)[None])[0]
        weights = 1.0 / (_fitted(rows, full, medians) * spread)
    kept_fit = _fitted(features[kept], full, seconds[kept])
    noise, freedom = _noise(seconds[kept] / kept_fit - 1.0, features.shape[1])
    scaled = rows * weights[:, None]
    resampled = _resamples(rows @ full, spread * noise, freedom) * weights
    if doubtful is not None and not _is_shown(scaled, medians * weights, noise, doubtful):
        likely = _without(scaled, medians * weights, doubtful)
    return Curve(
        coefficients=likely,
        draws=_non_negative(scaled, resampled),
        noise_frac=noise,
        wild=tuple(int(index) for index in np.flatnonzero(wild)),
    )


def interval_of(likely: float, draws: Floats, *, beyond: float = 1.0) -> Interval:
    """The 90 % interval of a quantity from its resampled values.

    Args:
        likely: its value on the fitted curve.
        draws: its values on the resampled curves; none for a curve that is known exactly.
        beyond: how many times the measured range it lies away; 1 or less is inside.
    """
    if draws.size == 0:
        low = high = likely
    else:
        low, high = np.quantile(draws, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    if beyond > 1:
        widening = 1.0 + BEYOND_FRAC_PER_DOUBLING * np.log2(beyond)
        low, high = low / widening, high * widening
    return Interval(float(min(low, likely)), float(likely), float(max(high, likely)))


def near_cells(values: Sequence[float], *, within_frac: float = 0.05) -> list[int]:
    """Number of the group of nearly equal values that each one belongs to, smallest first."""
    cells = [0] * len(values)
    start: float | None = None
    cell = -1
    for index in sorted(range(len(values)), key=values.__getitem__):
        if start is None or values[index] > start * (1 + within_frac):
            start, cell = values[index], cell + 1
        cells[index] = cell
    return cells


def _least_absolute(features: Floats, seconds: Floats) -> Floats:
    """Coefficients of least absolute relative deviation, by reweighted least squares.

    Timings that came out far too short can hold the search where it begins; when what it finds fits
    badly, it begins once more from the long ones.
    """
    found = _reweighted(features, seconds, 1.0 / seconds)
    if _deviation(features, found, seconds) < BAD_DEVIATION:
        return found
    other = _reweighted(features, seconds, np.ones_like(seconds))
    return min(found, other, key=lambda each: _deviation(features, each, seconds))


def _reweighted(features: Floats, seconds: Floats, weights: Floats) -> Floats:
    found: Floats = np.zeros(features.shape[1])
    for _ in range(8):
        found = _non_negative(features * weights[:, None], (seconds * weights)[None])[0]
        fitted = _fitted(features, found, seconds)
        # Deviations under 1 % are all the same to it, which also keeps the weights finite.
        weights = 1.0 / (fitted * np.sqrt(np.maximum(abs(seconds / fitted - 1.0), 0.01)))
    return found


def _deviation(features: Floats, coefficients: Floats, seconds: Floats) -> float:
    """Mean relative distance of the timings from the curve."""
    return float(abs(seconds / _fitted(features, coefficients, seconds) - 1.0).mean())


def _fitted(features: Floats, coefficients: Floats, seconds: Floats) -> Floats:
    """The curve at the timings, kept off 0 because it is divided by."""
    fitted: Floats = np.maximum(features @ coefficients, 1e-3 * seconds)
    return fitted


def _wild(deviations: Floats, cells: NDArray[np.int_]) -> NDArray[np.bool_]:
    typical = max(1.4826 * float(np.median(abs(deviations))), NOISE_PRIOR_FRAC)
    wild = abs(deviations) > WILD_DEVIATIONS * typical
    if wild.mean() > WILD_SHARE:
        return np.zeros_like(wild)
    # Alone at its length it may be the curve that bends: only a repeat can be called wild, or what
    # took a fraction of the time, as no overhead, linear or quadratic part could make it.
    return wild & (np.isin(cells, cells[~wild]) | (deviations < TOO_SHORT))


def _cell_medians(
    features: Floats, seconds: Floats, slowness: Floats, cells: NDArray[np.int_]
) -> tuple[Floats, Floats, Floats]:
    """Features, seconds and number of repeats of each cell's median timing."""
    rows, medians, repeats = [], [], []
    for cell in np.unique(cells):
        members = np.flatnonzero(cells == cell)
        # Ranked against the curve, so that the longest prompt of a cell is not its slowest.
        ranked = members[np.argsort(slowness[members], kind="stable")]
        middle = ranked[(len(members) - 1) // 2 : len(members) // 2 + 1]
        rows.append(features[middle].mean(axis=0))
        medians.append(seconds[middle].mean())
        repeats.append(len(members))
    return np.array(rows), np.array(medians), np.array(repeats, dtype=float)


def _non_negative(rows: Floats, targets: Floats) -> Floats:
    """Least-squares coefficients ≥ 0 for each row of targets, by trying every active set."""
    size = np.linalg.norm(rows, axis=0)
    size[size == 0] = 1.0
    unit = rows / size
    gram, moments = unit.T @ unit, targets @ unit
    width = rows.shape[1]
    sets = np.array(list(product((0.0, 1.0), repeat=width)))
    masked = gram * sets[:, :, None] * sets[:, None, :]
    # Ones on the diagonal of what is left out; a trace elsewhere keeps collinear columns solvable.
    masked += np.eye(width) * (1.0 - sets + 1e-12)[:, None, :]
    right = moments.T[None] * sets[:, :, None]
    solutions = np.linalg.solve(masked, right)
    gain = (2 * solutions * moments.T[None]).sum(axis=1)
    gain -= (solutions * (gram @ solutions)).sum(axis=1)
    gain[(solutions < 0).any(axis=1)] = -np.inf
    best = gain.argmax(axis=0)
    chosen: Floats = solutions[best, :, np.arange(len(targets))] / size
    return chosen


def _without(rows: Floats, target: Floats, column: int) -> Floats:
    others = [index for index in range(rows.shape[1]) if index != column]
    found = np.zeros(rows.shape[1])
    found[others] = _non_negative(rows[:, others], target[None])[0]
    return found


def _noise(deviations: Floats, coefficients: int) -> tuple[float, float]:
    """Relative standard deviation of one timing, and the degrees of freedom it rests on."""
    freedom = max(len(deviations) - coefficients, 0)
    seen = float(deviations @ deviations) if freedom else 0.0
    total = NOISE_PRIOR_WEIGHT + freedom
    return float(np.sqrt((NOISE_PRIOR_WEIGHT * NOISE_PRIOR_FRAC**2 + seen) / total)), total


def _resamples(curve: Floats, noise: Floats, freedom: float) -> Floats:
    """Medians as they might have come out; t-distributed, since the noise itself is estimated."""
    random = np.random.default_rng(SEED)
    half = random.standard_normal((RESAMPLES // 2, len(curve)))
    scale = np.sqrt(freedom / random.chisquare(freedom, RESAMPLES // 2))[:, None]
    drawn: Floats = np.concatenate((half * scale, -half * scale))
    return curve * np.maximum(1.0 + noise * drawn, 1e-3)


def _is_shown(rows: Floats, target: Floats, noise: float, column: int) -> bool:
    size = np.linalg.norm(rows, axis=0)
    found = np.linalg.lstsq(rows / size, target, rcond=None)[0][column]
    variance = np.linalg.pinv((rows / size).T @ (rows / size))[column, column]
    return bool(found > np.sqrt(2 * variance) * noise)
