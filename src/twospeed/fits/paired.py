"""Is the second arm faster, by how much, and when is that settled?

Each pair gives the logarithm of second / first seconds for each phase. What is promised: over all
phases and all looks together, a comparison of equals shows a difference in at most 5 % of
experiments, and all intervals hold the truth in at least 95 %.

* The 5 % are split evenly over the three phases (Bonferroni), so each of them is judged alone.
* The data are looked at after 12, 16, 24, 32 and 48 pairs, and once more at the end. Each early
  look may spend 6 % of its phase's share, the end what is left: the sum never exceeds the share,
  and by the union bound no dependence between looks can raise the error. Alpha spending: Lan &
  DeMets, Biometrika 70 (1983); intervals that stay true at every look: Jennison & Turnbull, JRSS
  B 51 (1989).
* The interval of one look is that of `ranks`: exact for whatever scatter, drift or wild values.

When the end comes (budget, Ctrl-C) must not depend on the ratios: nobody is shown them before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, exp, log, sqrt
from statistics import median
from typing import Literal, get_args

from msgspec import Struct

from twospeed.fits.ranks import Bounds, paired_bounds, robust_sd, shift_bounds, trend

Phase = Literal["prefill", "decode", "workload"]
PHASES: tuple[Phase, ...] = get_args(Phase)
ComparisonVerdict = Literal["faster", "slower", "no difference shown", "cannot tell"]
Why = Literal[
    "too_few", "too_noisy", "changed_midway", "disturbed", "not_measured", "sessions", "alone"
]
"""Why nothing can be told.

too_few: pairs for an interval. too_noisy: the interval reaches beyond 25 %. changed_midway: the
difference turned round during the run. disturbed: other programs were at work. not_measured: the
runtime does not show the phase. sessions: two separate runs differ by less than their moods do.
alone: only one of several prompt lengths shows it.
"""

ERROR = 0.05
"""Share of experiments with equal arms that may show any difference."""
PHASE_ERROR = ERROR / len(PHASES)
LOOKS = (12, 16, 24, 32, 48)
LOOK_ERROR = 0.06 * PHASE_ERROR
MOST_PAIRS = 64
FEWEST_PAIRS = 7
"""Six agreeing signs happen too often by chance: 2 / 2^6 is more than a phase's share."""

NARROW = log(1.03)
"""A difference within 3 % is settled as none ..."""
NARROW_SHARE = 0.25
"""... and one that is known to a quarter of itself is settled as shown."""
TOO_WIDE = log(1.25)
WILD_DEVIATIONS = 5.0
CLEARLY_DEVIATIONS = 3.0
MEDIAN_ERROR = 1.25
"""Standard error of a median of normal values over that of their mean."""
LEAST_SD = 0.01
"""Below this scatter of the log-ratio, nothing counts as wild."""
POWER_DEVIATIONS = 1.2816
"""Standard deviations above the bound at which nine of ten experiments show a difference."""
TREND_DEVIATIONS = 1.645
"""A trend of pure scatter has the standard error sd · √(12 / n), and stays below so many."""
SESSION_FRAC = 0.05
"""How far the same machine is off between two sessions, assumed where it cannot be interleaved."""


class Comparison(Struct, frozen=True, kw_only=True):
    """The second arm against the first in one phase; ratios of seconds, below 1 is faster."""

    verdict: ComparisonVerdict
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    minimum_detectable: float | None = None
    """Smallest change (0.04 is 4 %) that nine of ten experiments like this one would show."""
    why: Why | None = None
    """Why nothing can be told; None where something can."""


def error_of(looks_made: int, *, at_end: bool) -> float:
    """Share of experiments in which this look's interval of one phase may be wrong.

    Args:
        looks_made: early looks before this one.
        at_end: no further look follows.
    """
    return PHASE_ERROR - looks_made * LOOK_ERROR if at_end else LOOK_ERROR


def compare_pairs(values: Sequence[float], error: float = PHASE_ERROR) -> Comparison:
    """What the pairs show.

    Args:
        values: log(second / first) of each pair, in the order of measuring.
        error: see `error_of`.
    """
    bounds = paired_bounds(values, error)
    if bounds is None:
        return _unknown("too_few" if values else "not_measured", values)
    if turned_round(values):
        return _told(bounds, values, why="changed_midway")
    return _told(bounds, values)


def compare_sessions(
    first: Sequence[float], second: Sequence[float], drift: float, error: float = PHASE_ERROR
) -> Comparison:
    """What two separate sessions show: weaker, since the machine's mood is part of the difference.

    The interval is widened on both sides by 5 % and by the drift that the second session itself
    showed.

    Args:
        first: log seconds of the earlier session, each against the same reference for its length.
        second: those of the later one.
        drift: log change over the later session.
        error: see `error_of`.
    """
    bounds = shift_bounds(first, second, error)
    fewer = first if len(first) < len(second) else second
    if bounds is None:
        return _unknown("too_few" if first and second else "not_measured", fewer)
    allowance = log(1.0 + SESSION_FRAC) + abs(drift)
    wide = Bounds(bounds.low - allowance, bounds.likely, bounds.high + allowance)
    shown_alone = not bounds.low <= 0.0 <= bounds.high
    hidden = shown_alone and wide.low <= 0.0 <= wide.high
    return _told(wide, fewer, why="sessions" if hidden else None)


def whole(
    parts: Sequence[tuple[Comparison, float]], *, fixed_s: float, first_s: float
) -> Comparison:
    """A whole request, from what its parts show.

    Both ends add up, so that the interval holds whenever those of the parts do.

    Args:
        parts: each with the seconds that it would take in the first arm.
        fixed_s: seconds of the second arm that are known without a comparison.
        first_s: seconds of the whole in the first arm.
    """
    hidden = next((part.why for part, _ in parts if part.why is not None), None)
    if first_s <= 0.0 or any(part.low is None for part, _ in parts):
        return Comparison(verdict="cannot tell", why=hidden or "not_measured")
    low, likely, high = (
        log((fixed_s + sum(getattr(part, end) * seconds for part, seconds in parts)) / first_s)
        for end in ("low", "ratio", "high")
    )
    pairs = min(part.pairs for part, _ in parts)
    return _comparison(Bounds(low, likely, high), pairs, None, hidden)


def shown_drift(values: Sequence[float]) -> float:
    """Log change from the first to the last value, beyond what their scatter gives by itself."""
    if len(values) < 2:
        return 0.0
    scatter = TREND_DEVIATIONS * robust_sd(values) * sqrt(12.0 / len(values))
    change = trend(values)
    return copysign(max(abs(change) - scatter, 0.0), change)


def settled(comparison: Comparison) -> bool:
    """Whether more pairs would not change what is told."""
    if comparison.ratio is None or not comparison.low or comparison.high is None:
        return False
    likely = log(comparison.ratio)
    half = max(log(comparison.high) - likely, likely - log(comparison.low))
    shown = comparison.verdict in ("faster", "slower")
    return half <= NARROW or (shown and half <= NARROW_SHARE * abs(likely))


def pairs_needed(comparison: Comparison) -> int | None:
    """Pairs after which an interval like this one would be within 3 %; None without an interval."""
    if comparison.ratio is None or not comparison.low or comparison.high is None:
        return None
    half = (log(comparison.high) - log(comparison.low)) / 2
    return max(FEWEST_PAIRS, round(comparison.pairs * (half / NARROW) ** 2))


def turned_round(values: Sequence[float]) -> bool:
    """Whether the difference was clearly one way in the first half and the other way after it."""
    half = len(values) // 2
    if half < FEWEST_PAIRS // 2:
        return False
    before, after = values[:half], values[half:]
    sd = max(robust_sd(before), robust_sd(after), LEAST_SD)
    margin = CLEARLY_DEVIATIONS * MEDIAN_ERROR * sd / sqrt(half)
    first, second = median(before), median(after)
    return first * second < 0.0 and min(abs(first), abs(second)) > margin


def wild_places(values: Sequence[float]) -> list[int]:
    """Which values lie more than five standard deviations off the rest."""
    if not values:
        return []
    centre, sd = median(values), max(robust_sd(values), LEAST_SD)
    return [i for i, value in enumerate(values) if abs(value - centre) > WILD_DEVIATIONS * sd]


def _told(bounds: Bounds, values: Sequence[float], *, why: Why | None = None) -> Comparison:
    sd = robust_sd(values)
    smallest = bounds.half_width + POWER_DEVIATIONS * sd / sqrt(len(values))
    return _comparison(bounds, len(values), exp(smallest) - 1.0, why)


def _comparison(
    bounds: Bounds, pairs: int, minimum_detectable: float | None, why: Why | None
) -> Comparison:
    verdict: ComparisonVerdict = "no difference shown"
    if why is not None:
        verdict = "cannot tell"
    elif bounds.high < 0.0:
        verdict = "faster"
    elif bounds.low > 0.0:
        verdict = "slower"
    elif max(bounds.high, -bounds.low) > TOO_WIDE:
        verdict, why = "cannot tell", "too_noisy"
    return Comparison(
        verdict=verdict,
        ratio=exp(bounds.likely),
        low=exp(bounds.low),
        high=exp(bounds.high),
        pairs=pairs,
        minimum_detectable=minimum_detectable,
        why=why,
    )


def _unknown(why: Why, values: Sequence[float]) -> Comparison:
    ratio = exp(median(values)) if values else None
    return Comparison(verdict="cannot tell", ratio=ratio, pairs=len(values), why=why)
