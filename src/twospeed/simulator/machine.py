"""How fast the simulated machine is: seconds of each phase from its few parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Two speeds and how they fall with depth.

    A token of the prompt at depth `d` costs `(1 + d/attention_half_depth) / prefill_tps`, so `n`
    tokens behind `c` cached ones take `a·n + b·n² + 2b·c·n` with `a = 1/prefill_tps` and
    `b = a / (2·attention_half_depth)`. A token of the answer at depth `d` costs
    `(1 + d/decode_half_depth) / decode_tps`. Each speed is halved at its half depth.
    """

    prefill_tps: float
    decode_tps: float
    attention_half_depth: float = math.inf
    """Tokens."""
    decode_half_depth: float = math.inf
    """Tokens."""
    shared_batch_frac: float = 0.0
    """What every other stream that decodes at the same time adds to the time of a token."""
    jitter_frac: float = 0.0
    """Largest deviation of one step from its time, either way."""
    draft_tokens: int = 0
    """Tokens that are drafted per step."""
    accepted_frac: float = 0.5
    """Part of the drafted tokens that is accepted (0 to 1)."""

    def prefill_s(self, tokens: int, cached_tokens: int = 0) -> float:
        """Seconds to process so many prompt tokens behind cached ones.

        Args:
            tokens: uncached prompt tokens.
            cached_tokens: tokens already in the cache.
        """
        deeper = (tokens * tokens / 2 + cached_tokens * tokens) / self.attention_half_depth
        return (tokens + deeper) / self.prefill_tps

    def token_s(self, depth_tokens: int, streams: int = 1) -> float:
        """Seconds of one token of the answer.

        Args:
            depth_tokens: tokens in the cache before it.
            streams: streams that decode at the same time, this one included.
        """
        alone = (1 + depth_tokens / self.decode_half_depth) / self.decode_tps
        return alone * (1 + self.shared_batch_frac * (streams - 1))

    @property
    def tokens_per_step(self) -> float:
        """Mean tokens of a decode step; a step lasts as long as that many tokens."""
        return 1 + self.draft_tokens * self.accepted_frac

    def bursts(self) -> Iterator[int]:
        """Tokens of each decode step, for ever; their mean is that of `tokens_per_step`.

        Where half is accepted, drafts go round all numbers from 0 to all, large and small in turn,
        so that the mean speed is kept within every round and not only by chance in the long run.
        Any other part comes as evenly as whole tokens allow.
        """
        if self.accepted_frac != HALF:
            yield from self._even_bursts()
        order = [
            self.draft_tokens - i // 2 if i % 2 == 0 else i // 2
            for i in range(self.draft_tokens + 1)
        ]
        while True:
            for accepted in order:
                yield 1 + accepted

    def _even_bursts(self) -> Iterator[int]:
        """A token and the whole drafts that are due by then."""
        given = 0
        for step in count(1):
            due = math.floor(step * self.draft_tokens * self.accepted_frac)
            yield 1 + due - given
            given = due
