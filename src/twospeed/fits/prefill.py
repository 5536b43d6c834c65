"""How long the prompt takes: `t(n, c) = overhead + a·n + b·(n² + 2·c·n)`.

n is the uncached part of the prompt, c the cached part before it. The quadratic part is attention:
token i looks back at c + i others. Source: Kaplan et al. 2020, §2.1 (operations per
token: 2N for the weights and a share that grows with context).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec import structs

from twospeed.fits.curve import Floats, fit_curve, interval_of, near_cells
from twospeed.fits.interval import Interval
from twospeed.fits.observations import PrefillPoint
from twospeed.records.request_record import Origin

MOST_TEMPLATE_TOKENS = 64

NO_DRAWS: Floats = np.empty((0, 3))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrefillFit:
    """The prefill curve and how well it is known.

    Made by `fit_prefill`; one made by hand, without draws, is taken as exactly known.
    """

    overhead_s: float
    per_token_s: float
    per_token2_s: float
    """0.0 when the timings do not show a quadratic part; the intervals still allow for one."""
    points: tuple[PrefillPoint, ...]
    """The timings that were fitted, wild ones left out."""
    shortest_tokens: int
    longest_tokens: int
    """Range of whole prompts that were measured."""
    origin: Origin
    """Whose clock the timings come from."""
    noise_frac: float | None = None
    """Relative standard deviation of one timing about the curve."""
    draws: Floats = field(default_factory=lambda: NO_DRAWS, repr=False)

    def seconds(self, prompt_tokens: float, cached_tokens: float = 0) -> Interval:
        """Prefill time in seconds of a prompt of which the first part is cached.

        Args:
            prompt_tokens: the whole prompt.
            cached_tokens: its cached part, at most the prompt.
        """
        cached = min(max(cached_tokens, 0), prompt_tokens)
        row = _features(np.array([prompt_tokens - cached]), np.array([cached]))[0]
        likely = row @ np.array([self.overhead_s, self.per_token_s, self.per_token2_s])
        beyond = prompt_tokens / self.longest_tokens
        return interval_of(float(likely), self.draws @ row, beyond=beyond)

    def tps(self, prompt_tokens: float, cached_tokens: float = 0) -> Interval:
        """Prefill speed: uncached tokens per second."""
        uncached = max(prompt_tokens - cached_tokens, 0)
        return self.seconds(prompt_tokens, cached_tokens).divided_into(uncached)

    @property
    def crossover_tokens(self) -> float | None:
        """Prompt length at which the quadratic part equals the linear one; None without either."""
        if self.per_token2_s == 0 or self.per_token_s == 0:
            return None
        return self.per_token_s / self.per_token2_s


def fit_prefill(points: Sequence[PrefillPoint]) -> PrefillFit | None:
    """The curve through prefill timings of one clock.

    Three distinct uncached lengths (more than 5 % apart) allow the quadratic part, which is kept
    only when the timings show it (see `fit_curve`). Two lengths at least a factor of 2 apart
    allow a straight line.

    Returns:
        None when there are fewer.
    """
    points = without_template(points)
    points = sorted(points, key=lambda point: (point.uncached_tokens, point.cached_tokens, point.s))
    lengths = _lengths(points)
    if len(lengths) < 2 or (len(lengths) == 2 and lengths[1] < 2 * lengths[0]):
        return None
    width = min(len(lengths), 3)
    features = _features(
        np.array([point.uncached_tokens for point in points], dtype=float),
        np.array([point.cached_tokens for point in points], dtype=float),
    )[:, :width]
    seconds = np.array([point.s for point in points])
    curve = fit_curve(features, seconds, _cells(points), doubtful=2 if width == 3 else None)
    kept = [point for index, point in enumerate(points) if index not in curve.wild]
    overhead_s, per_token_s, per_token2_s = (
        float(x) for x in _widened(curve.coefficients[None])[0]
    )
    return PrefillFit(
        overhead_s=overhead_s,
        per_token_s=per_token_s,
        per_token2_s=per_token2_s,
        points=tuple(kept),
        shortest_tokens=min(point.prompt_tokens for point in kept),
        longest_tokens=max(point.prompt_tokens for point in kept),
        origin=points[0].origin,
        noise_frac=curve.noise_frac,
        draws=_widened(curve.draws),
    )


def without_template(points: Sequence[PrefillPoint]) -> Sequence[PrefillPoint]:
    """The points with the cached head of the chat template told apart, where the runtime hides it.

    A unique prompt still shares its template (3 to 24 tokens were seen). Counted as processed,
    those tokens bend the curve: its beginning would have to lie below 0. So the number of tokens is
    what brings it back to 0, at most 64 and half the shortest prompt.
    """
    if len(_lengths(points)) < 4 or not all(point.cached_is_assumed for point in points):
        return points
    tokens = np.array([point.uncached_tokens for point in points], dtype=float)
    seconds = np.array([point.s for point in points])
    rows = _features(tokens, np.zeros_like(tokens)) / seconds[:, None]
    start, per_token, _ = np.linalg.lstsq(rows, np.ones_like(seconds), rcond=None)[0]
    most = min(MOST_TEMPLATE_TOKENS, int(tokens.min()) // 2)
    shared = round(min(max(-start / per_token, 0.0), most)) if per_token > 0 else 0
    return [structs.replace(point, cached_tokens=point.cached_tokens + shared) for point in points]


def _features(uncached: Floats, cached: Floats) -> Floats:
    looked_back = uncached**2 + 2 * cached * uncached
    return np.stack((np.ones_like(uncached, dtype=float), uncached, looked_back), axis=1)


def _lengths(points: Sequence[PrefillPoint]) -> list[int]:
    """Shortest uncached length of each group of nearly equal ones, ascending."""
    uncached = [point.uncached_tokens for point in points]
    first: dict[int, int] = {}
    for cell, tokens in zip(near_cells(uncached), uncached, strict=True):
        first.setdefault(cell, tokens)
    return list(first.values())


def _cells(points: Sequence[PrefillPoint]) -> list[int]:
    """Timings that are repeats: nearly equal both in the uncached and in the cached part."""
    uncached = near_cells([point.uncached_tokens for point in points])
    # Small cached parts (a chat template) do not tell timings apart: they count from 64 up.
    cached = near_cells([point.cached_tokens + 64 for point in points], within_frac=0.2)
    pairs = list(zip(uncached, cached, strict=True))
    order = sorted(set(pairs))
    return [order.index(pair) for pair in pairs]


def _widened(coefficients: Floats) -> Floats:
    """Rows of three coefficients, the ones that were not fitted being 0."""
    missing = 3 - coefficients.shape[1]
    return np.pad(coefficients, ((0, 0), (0, missing)))
