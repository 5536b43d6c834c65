"""How long one answer token takes: `t(d) = p + q·d` at depth d.

p is reading the weights, q·d reading the KV cache. Source: Pope et al., Efficiently Scaling
Transformer Inference (2022), §2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from twospeed.fits.curve import Floats, fit_curve, interval_of, near_cells
from twospeed.fits.interval import Interval
from twospeed.fits.observations import DecodePoint
from twospeed.records.request_record import Origin

FEWEST_POINTS = 2
NO_DRAWS: Floats = np.empty((0, 2))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecodeFit:
    """The decode curve and how well it is known.

    Made by `fit_decode`; one made by hand, without draws, is taken as exactly known.
    """

    per_token_s: float
    """Seconds per token at depth 0, or at the measured depth when there was only one."""
    per_depth_token_s: float | None
    """Seconds that each token of depth adds; None when the measured depths do not span enough."""
    points: tuple[DecodePoint, ...]
    """The timings that were fitted, wild ones left out."""
    shallowest_tokens: float
    deepest_tokens: float
    origin: Origin
    """Whose clock the timings come from."""
    noise_frac: float | None = None
    """Relative standard deviation of one timing about the curve."""
    draws: Floats = field(default_factory=lambda: NO_DRAWS, repr=False)

    def per_token(self, depth_tokens: float) -> Interval:
        """Seconds per token at a depth; where the slope is unknown, as at the measured depth."""
        return self._sum_of(1.0, depth_tokens, depth_tokens)

    def tps(self, depth_tokens: float) -> Interval:
        """Decode speed at a depth, in tokens per second."""
        return self.per_token(depth_tokens).divided_into(1.0)

    def seconds(self, from_depth_tokens: float, tokens: float) -> Interval:
        """Seconds for so many decode steps, the first of them at the given depth."""
        middle = from_depth_tokens + max(tokens - 1, 0) / 2
        return self._sum_of(tokens, middle, from_depth_tokens + tokens)

    @property
    def half_speed_depth(self) -> float | None:
        """Depth in tokens at which decode is half as fast as at depth 0; None without a slope."""
        if not self.per_depth_token_s:
            return None
        return self.per_token_s / self.per_depth_token_s

    def _sum_of(self, steps: float, middle_depth: float, last_depth: float) -> Interval:
        row = steps * np.array([1.0, middle_depth])
        likely = row @ np.array([self.per_token_s, self.per_depth_token_s or 0.0])
        beyond = last_depth / max(self.deepest_tokens, 1.0)
        return interval_of(float(likely), self.draws @ row, beyond=beyond)


def fit_decode(points: Sequence[DecodePoint]) -> DecodeFit | None:
    """The curve through per-token timings of one clock.

    Returns:
        None when there are fewer than 2 points. The slope is fitted when the deepest point is at
        least twice as deep as the shallowest, and 64 tokens more.
    """
    if len(points) < FEWEST_POINTS:
        return None
    points = sorted(points, key=lambda point: (point.depth_tokens, point.per_token_s))
    depths = np.array([point.depth_tokens for point in points], dtype=float)
    sloped = bool(depths[-1] >= 2 * depths[0] + 64)
    features = np.stack((np.ones_like(depths), depths), axis=1)
    if not sloped:
        features = features[:, :1]
    seconds = np.array([point.per_token_s for point in points])
    # 64 added, because a few tokens more are nothing to a shallow request.
    curve = fit_curve(features, seconds, near_cells([depth + 64.0 for depth in depths]))
    kept = [point for index, point in enumerate(points) if index not in curve.wild]
    return DecodeFit(
        per_token_s=float(curve.coefficients[0]),
        per_depth_token_s=float(curve.coefficients[1]) if sloped else None,
        points=tuple(kept),
        shallowest_tokens=kept[0].depth_tokens,
        deepest_tokens=kept[-1].depth_tokens,
        origin=points[0].origin,
        noise_frac=curve.noise_frac,
        draws=curve.draws if sloped else np.pad(curve.draws, ((0, 0), (0, 1))),
    )
