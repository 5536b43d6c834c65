"""A benchmark table: its set-ups, what each reads and writes per second, and how they differ.

Rows of one set-up differ in tokens and depth only. Set-ups of one model are compared; the slowest
of them is the one whose seconds are told, for it is the one to ask about.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal

from msgspec import Struct

from twospeed.fits.interval import Interval
from twospeed.fits.observations import DecodePoint, PrefillPoint
from twospeed.records.run import BenchmarkPoint, Run

NOT_A_SETTING = frozenset({"test", "model_path", "size_bytes", "parameters"})
Scalar = str | int | float | bool | None
Phase = Literal["prefill", "decode"]
Blame = Literal["layers", "batch", "threads", "devices", "kv_cache"]
"""What two set-ups differ in, where that is known to be able to slow a model down.

layers: fewer on the card. batch: smaller. threads: more. devices: more. kv_cache: off the card.
"""

MOST_SETUPS = 64
"""Of a longer table the slowest set-ups are compared."""
NOISY_FRAC = 0.2
"""Repeats whose standard deviation is more of their mean were disturbed."""


class Setup(Struct, frozen=True, kw_only=True):
    """One set-up and its rows."""

    settings: dict[str, Scalar]
    rows: tuple[BenchmarkPoint, ...]

    def tps(self, phase: Phase) -> float | None:
        """Median speed of a phase at the smallest depth that it was measured at."""
        rows = [row for row in self.rows if row.phase == phase]
        if not rows:
            return None
        depth = min(row.depth_tokens or 0 for row in rows)
        return median(row.tps for row in rows if (row.depth_tokens or 0) == depth)


class Contrast(Struct, frozen=True, kw_only=True):
    """Two set-ups of one model, and what the slower one has to its disadvantage."""

    slow: Setup
    fast: Setup
    blame: Blame

    def ratio(self, phase: Phase) -> float:
        """How many times slower the slow one is; 1 where a phase was not measured in both."""
        slow, fast = self.slow.tps(phase), self.fast.tps(phase)
        return fast / slow if slow and fast else 1.0


def setups(points: Sequence[BenchmarkPoint]) -> list[Setup]:
    """Rows by their set-up, in the order of the table."""
    rows: dict[tuple[tuple[str, Scalar], ...], list[BenchmarkPoint]] = {}
    for point in points:
        if point.phase != "mixed":
            kept = {k: v for k, v in point.settings.items() if k not in NOT_A_SETTING}
            rows.setdefault(tuple(sorted(kept.items())), []).append(point)
    return [Setup(settings=dict(key), rows=tuple(found)) for key, found in rows.items()]


def slowest_setup(points: Sequence[BenchmarkPoint]) -> Setup | None:
    """The set-up that would keep a user longest; None without rows."""
    found = setups(points)
    return max(found, key=_seconds_per_turn) if found else None


def models_of(points: Sequence[BenchmarkPoint]) -> tuple[str, ...]:
    """The models that the rows name, in the order of the table."""
    named = (point.settings.get("model") for point in points)
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str)))


def told_model(run: Run) -> str | None:
    """The model whose rows are told; None where requests are, or no row names one."""
    setup = None if run.records else slowest_setup(run.points)
    model = None if setup is None else setup.settings.get("model")
    return model if isinstance(model, str) else None


def contrasts(points: Sequence[BenchmarkPoint], blame: Blame | None = None) -> list[Contrast]:
    """Every two set-ups of which the slower has a known disadvantage and no other, worst first.

    Args:
        points: rows of a table.
        blame: only those with this disadvantage.
    """
    found = sorted(setups(points), key=_seconds_per_turn, reverse=True)[:MOST_SETUPS]
    pairs = [
        Contrast(slow=slow, fast=fast, blame=reason)
        for slow in found
        for fast in found
        if (reason := _disadvantage(slow, fast)) is not None and blame in (None, reason)
    ]
    worse = [pair for pair in pairs if max(pair.ratio("prefill"), pair.ratio("decode")) > 1.0]
    return sorted(worse, key=lambda pair: -pair.ratio("prefill") * pair.ratio("decode"))


def deep_loss(points: Sequence[BenchmarkPoint]) -> tuple[int, float] | None:
    """The greatest depth of one set-up and how many times slower decode is there.

    Compared with the least depth; the set-up that loses most; None where no depth was varied.
    """
    losses = []
    for setup in setups(points):
        rows = sorted(
            (row.depth_tokens, row.tps)
            for row in setup.rows
            if row.phase == "decode" and row.depth_tokens is not None
        )
        if rows and rows[-1][0] > rows[0][0]:
            losses.append((rows[-1][0], rows[0][1] / rows[-1][1]))
    return max(losses, key=lambda one: one[1], default=None)


def is_noisy(points: Sequence[BenchmarkPoint]) -> bool:
    """Whether most rows that tell their spread were disturbed."""
    spreads = [point.sd / point.tps for point in points if point.sd is not None]
    return bool(spreads) and median(spreads) > NOISY_FRAC


def table_prefill(setup: Setup | None) -> list[PrefillPoint]:
    """The rows of prefill as timings: their depth is what was there before."""
    return [
        PrefillPoint(
            prompt_tokens=row.tokens + (row.depth_tokens or 0),
            cached_tokens=row.depth_tokens or 0,
            s=row.tokens / row.tps,
            origin="server",
            record=0,
        )
        for row in (setup.rows if setup else ())
        if row.phase == "prefill" and row.tokens
    ]


def table_decode(setup: Setup | None) -> list[DecodePoint]:
    """The rows of decode as timings in the middle of what they wrote."""
    return [
        DecodePoint(
            depth_tokens=(row.depth_tokens or 0) + (row.tokens or 0) / 2,
            per_token_s=1.0 / row.tps,
            steps=row.tokens or 1,
            origin="server",
            record=0,
        )
        for row in (setup.rows if setup else ())
        if row.phase == "decode"
    ]


def table_seconds(points: Sequence[PrefillPoint], uncached_tokens: int) -> Interval | None:
    """Prefill of so many tokens in proportion to the shallowest rows, where no curve is known."""
    if not points:
        return None
    depth = min(point.cached_tokens for point in points)
    shallow = [point for point in points if point.cached_tokens == depth]
    rates = [point.s / point.uncached_tokens * uncached_tokens for point in shallow]
    return Interval(min(rates), median(rates), max(rates))


def _seconds_per_turn(setup: Setup) -> float:
    """Seconds of the default chat turn, by which set-ups are put in order."""
    prefill, decode = setup.tps("prefill"), setup.tps("decode")
    return (2000 / prefill if prefill else 0.0) + (300 / decode if decode else 0.0)


_SMALLER: dict[frozenset[str], Blame] = {
    frozenset({"layers_offloaded"}): "layers",
    frozenset({"n_batch"}): "batch",
    frozenset({"n_ubatch"}): "batch",
    frozenset({"n_batch", "n_ubatch"}): "batch",
}
_LARGER: dict[frozenset[str], Blame] = {
    frozenset({"threads"}): "threads",
    frozenset({"devices"}): "devices",
    frozenset({"devices", "split_mode"}): "devices",
    frozenset({"no_kv_offload"}): "kv_cache",
}


def _disadvantage(slow: Setup, fast: Setup) -> Blame | None:
    """What the first has less or more of than the second; None where anything else differs."""
    names = frozenset(
        name
        for name in slow.settings.keys() | fast.settings.keys()
        if slow.settings.get(name) != fast.settings.get(name)
    )
    if names in _SMALLER and _all_below(slow, fast, names):
        return _SMALLER[names]
    if names in _LARGER and _all_below(fast, slow, names - {"split_mode"}):
        return _LARGER[names]
    return None


def _all_below(one: Setup, other: Setup, names: frozenset[str]) -> bool:
    pairs = [(one.settings.get(name), other.settings.get(name)) for name in names]
    return all(
        isinstance(low, int) and isinstance(high, int) and low <= high for low, high in pairs
    )
