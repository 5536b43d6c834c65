"""What the runs of one client came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from stream import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One place in the table."""

    load: str
    streams: int
    client: str


@dataclass(slots=True, kw_only=True)
class Outcome:
    """All runs of one cell."""

    seen: list[Stream] = field(default_factory=list)
    true: list[Stream] = field(default_factory=list)
    pairs: list[tuple[Stream, Stream]] = field(default_factory=list)
    """The client's and the simulator's account of the same request."""
    cpu_s: list[float] = field(default_factory=list)
    """Of the client, start-up included, by run."""
    lost: int = 0
    load_average: float = 0.0
    """The highest at a start."""
    others: float = 0.0
    """The largest share of the processors that programs other than ours used during a run."""
    unquiet: bool = False
    """The machine was not quiet before a run."""
    not_run: str | None = None

    def add(
        self, seen: Sequence[Stream], true: Sequence[Stream], *, requests: int, pairs: bool
    ) -> None:
        """One more run."""
        seen = sorted(seen, key=lambda stream: stream.sent)
        self.seen += seen
        self.true += true
        self.lost += requests - len(seen)
        if pairs and len(seen) == len(true):
            self.pairs += zip(seen, true, strict=True)


def figures(outcome: Outcome) -> dict[str, Any]:
    """Errors in milliseconds, each as [p50, p99], and what they were measured under."""
    if outcome.not_run or not outcome.seen:
        return {"not_run": outcome.not_run or "no request succeeded"}
    ttft_ms, gap_ms = pair_errors_ms(outcome.pairs)
    return {
        "requests": len(outcome.seen),
        "lost": outcome.lost,
        "ttft_quantiles_ms": differences_ms(ttfts(outcome.seen), ttfts(outcome.true)),
        "gap_quantiles_ms": differences_ms(gaps(outcome.seen), gaps(outcome.true)),
        "ttft_pairs_ms": quantiles(ttft_ms),
        "gap_pairs_ms": quantiles(gap_ms),
        "ttft_alone": share_alone(outcome.pairs),
        "stamps_missing": len(outcome.true) - len(ttfts(outcome.true)),
        "gaps_alone": len(gap_ms) / len(gaps(outcome.true)) if outcome.pairs else None,
        "cpu_s": sum(outcome.cpu_s) / len(outcome.cpu_s),
        "load_average": outcome.load_average,
        "other_programs": outcome.others,
        "quiet_before": not outcome.unquiet,
    }


def share_alone(pairs: Sequence[tuple[Stream, Stream]]) -> float | None:
    """Of the first events, those that came in a read of their own."""
    marked = [seen.shared[:1] == [True] for seen, _ in pairs]
    return 1 - sum(marked) / len(marked) if marked else None


def ttfts(streams: Sequence[Stream]) -> list[float]:
    return [stream.ttft_s for stream in streams if stream.ttft_s is not None]


def gaps(streams: Sequence[Stream]) -> list[float]:
    return [gap_s for stream in streams for gap_s in stream.gaps_s]


def quantiles(values: Sequence[float]) -> list[float] | None:
    """p50 and p99."""
    return np.quantile(values, [0.5, 0.99]).tolist() if values else None


def differences_ms(seen_s: Sequence[float], true_s: Sequence[float]) -> list[float] | None:
    """The client's p50 and p99, less the true ones."""
    seen, true = quantiles(seen_s), quantiles(true_s)
    if seen is None or true is None:
        return None
    return [(told - right) * 1e3 for told, right in zip(seen, true, strict=True)]


def pair_errors_ms(
    pairs: Sequence[tuple[Stream, Stream]],
) -> tuple[list[float], list[float]]:
    """|client - truth| of each TTFT and of each gap whose events came alone in their reads."""
    ttft_ms: list[float] = []
    gap_ms: list[float] = []
    for seen, true in pairs:
        shared = seen.shared or [False] * (len(true.gaps_s) + 1)
        if not (shared[0] or seen.ttft_s is None or true.ttft_s is None):
            ttft_ms.append(abs(seen.ttft_s - true.ttft_s) * 1e3)
        if len(seen.gaps_s) != len(true.gaps_s):
            continue
        for index, (told_s, right_s) in enumerate(zip(seen.gaps_s, true.gaps_s, strict=True)):
            if not (shared[index] or shared[index + 1]):
                gap_ms.append(abs(told_s - right_s) * 1e3)
    return ttft_ms, gap_ms
