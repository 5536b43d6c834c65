"""How large a difference is, by ranks: no shape of the scatter is assumed.

Paired: the Hodges-Lehmann estimate (median of the Walsh averages) with the interval of Wilcoxon's
signed-rank test. When the order inside pairs is drawn by lot and both arms are alike, a difference
and its negative are equally likely whatever the machine did meanwhile, so the test is exact. One
wild value moves a bound by a few places in the order, however wild it is.

Unpaired: the median of all differences with the interval of the Mann-Whitney test.

Source: Hodges & Lehmann, Estimates of location based on rank tests, Ann. Math. Stat. 34 (1963);
Hollander, Wolfe & Chicken, Nonparametric Statistical Methods (3rd ed.), §3.1-3.3 and §4.1-4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_EXACT = 40
"""Above so many unpaired values of a side, the evenly spaced middle ones stand for all."""
MAD_TO_SD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""


class Bounds(NamedTuple):
    """A likely value and the interval around it."""

    low: float
    likely: float
    high: float

    @property
    def half_width(self) -> float:
        """The farther bound's distance from the likely value."""
        return max(self.high - self.likely, self.likely - self.low)


def paired_bounds(values: Sequence[float], error: float) -> Bounds | None:
    """The centre of symmetric differences.

    Args:
        values: one difference for each pair.
        error: share of experiments (0 … 1) in which the interval may miss the truth.

    Returns:
        None when there are too few for that error: n pairs allow 2 / 2^n at best.
    """
    if not values:
        return None
    seen = np.asarray(values, dtype=float)
    rows, columns = np.triu_indices(len(seen))
    walsh = np.sort((seen[rows] + seen[columns]) / 2)
    return _bounds(walsh, signed_rank_chances(len(seen)), error)


def shift_bounds(first: Sequence[float], second: Sequence[float], error: float) -> Bounds | None:
    """How far the values of the second side lie above those of the first.

    Args:
        first: independent values of one distribution.
        second: values of the same distribution, shifted.
        error: as for `paired_bounds`.

    Returns:
        None when there are too few for that error.
    """
    if not first or not second:
        return None
    left, right = _at_most(first), _at_most(second)
    differences = np.sort((right[None, :] - left[:, None]).ravel())
    return _bounds(differences, mann_whitney_chances(len(left), len(right)), error)


def robust_sd(values: Sequence[float]) -> float:
    """Standard deviation of the ordinary values, from their median absolute deviation."""
    seen = np.asarray(values, dtype=float)
    return MAD_TO_SD * float(np.median(np.abs(seen - np.median(seen)))) if len(seen) else 0.0


def trend(values: Sequence[float]) -> float:
    """Change from the first to the last of evenly spaced values (Theil-Sen's median slope)."""
    seen = np.asarray(values, dtype=float)
    rows, columns = np.triu_indices(len(seen), k=1)
    if not len(rows):
        return 0.0
    slopes = (seen[columns] - seen[rows]) / (columns - rows)
    return float(np.median(slopes)) * (len(seen) - 1)


@lru_cache(maxsize=256)
def signed_rank_chances(pairs: int) -> Floats:
    """Chance of each sum of the ranks 1 … n when every sign is a fair coin."""
    chances = np.ones(1)
    for rank in range(1, pairs + 1):
        longer = np.zeros(len(chances) + rank)
        longer[: len(chances)] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return chances


@lru_cache(maxsize=4096)
def mann_whitney_chances(first: int, second: int) -> Floats:
    """Chance of each count of (second above first) pairs when all values are of one distribution.

    The largest value is one of the second side with chance n / (m + n), and is then above all m.
    """
    chances = np.zeros(first * second + 1)
    if not first or not second:
        chances[0] = 1.0
        return chances
    share = second / (first + second)
    with_it = mann_whitney_chances(first, second - 1)
    without = mann_whitney_chances(first - 1, second)
    chances[first:] += share * with_it
    chances[: len(without)] += (1.0 - share) * without
    return chances


def _bounds(ordered: Floats, chances: Floats, error: float) -> Bounds | None:
    """The interval that leaves out as many of the ordered values at each end as the error allows.

    Leaving out k of them is the test that rejects at a rank sum of k - 1 or less.
    """
    left_out = int(np.searchsorted(np.cumsum(chances), error / 2, side="right"))
    if left_out == 0:
        return None
    left_out = min(left_out, (len(ordered) + 1) // 2)
    low, high = ordered[left_out - 1], ordered[len(ordered) - left_out]
    return Bounds(float(low), float(np.median(ordered)), float(high))


def _at_most(values: Sequence[float]) -> Floats:
    seen = np.sort(np.asarray(values, dtype=float))
    if len(seen) <= MOST_EXACT:
        return seen
    places = np.linspace(0, len(seen) - 1, MOST_EXACT)
    return np.asarray(np.interp(places, np.arange(len(seen)), seen))
