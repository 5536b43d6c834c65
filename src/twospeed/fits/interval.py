"""A number with its 90 % interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from msgspec import Struct

LEVEL = 0.90
"""Share of repetitions of the experiment whose interval holds the truth."""


class Interval(Struct, frozen=True):
    """The likely value, and the bounds that hold the true one in nine of ten experiments."""

    low: float
    likely: float
    high: float

    @property
    def width_frac(self) -> float:
        """Whole width as a share of the likely value; infinite when that is 0."""
        if self.likely == 0:
            return 0.0 if self.high == self.low else float("inf")
        return (self.high - self.low) / abs(self.likely)

    def scaled(self, factor: float) -> Self:
        """The interval of `factor` times the quantity."""
        ends = (self.low * factor, self.high * factor)
        return type(self)(min(ends), self.likely * factor, max(ends))

    def plus(self, other: Interval) -> Interval:
        """The interval of a sum whose parts err together, being read off the same curves."""
        return Interval(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def through(self, rising: Callable[[float], float]) -> Interval:
        """The interval of a function of the quantity that rises with it."""
        return Interval(rising(self.low), rising(self.likely), rising(self.high))

    def divided_into(self, amount: float) -> Self:
        """The interval of `amount` / quantity, for a quantity and an amount ≥ 0.

        A bound of 0 gives an infinite bound on the other side.
        """
        low, likely, high = (
            amount / value if value > 0 else float("inf")
            for value in (self.high, self.likely, self.low)
        )
        return type(self)(low, likely, high)

    def holds(self, value: float) -> bool:
        """Whether the value lies inside the bounds."""
        return self.low <= value <= self.high
