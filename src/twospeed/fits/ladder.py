"""Which prompt lengths an experiment measures: a ladder of rungs a fixed factor apart.

Rungs are fixed by the workload and the context, never by speed, so that repeats of one length
stay repeats; on a slow machine only lower rungs are climbed.
"""

from __future__ import annotations

import math

SHORTEST_TOKENS = 24
"""Shortest prompt worth sending; only slow machines go down to it."""
MOST_RUNGS = 5
SMALLEST_STEP = 1.5
MOST_OUTPUT_TOKENS = 64
MARGIN_TOKENS = 64
"""Room for a chat template and for a prompt that comes out longer than wanted."""


def longest_prompt(wanted_tokens: int, n_ctx: int | None) -> int:
    """Longest prompt to send for a workload: its own, as far as the context holds it.

    Args:
        wanted_tokens: prompt of the workload; below 64, 64 are measured all the same.
        n_ctx: context of one slot in tokens, None when unknown.
    """
    wanted = max(wanted_tokens, 64)
    if n_ctx is None:
        return wanted
    return min(wanted, max(n_ctx - MOST_OUTPUT_TOKENS - MARGIN_TOKENS, n_ctx // 2))


def ladder(top_tokens: int) -> tuple[int, ...]:
    """Prompt lengths in tokens, ascending, up to the top; none when the top is below 24.

    Up to five, a factor of at least 1.5 apart, span the workload from a sixteenth of it up; below
    them 24, 48, 96 … serve machines for which those take too long.
    """
    if top_tokens < SHORTEST_TOKENS:
        return ()
    share = max(64, top_tokens // 16) if top_tokens >= 256 else top_tokens // 4
    low = max(SHORTEST_TOKENS, share)
    steps = min(MOST_RUNGS - 1, int(math.log(top_tokens / low) / math.log(SMALLEST_STEP)))
    main = [round(low * (top_tokens / low) ** (step / max(steps, 1))) for step in range(steps + 1)]
    main[-1] = top_tokens
    below = []
    rung = SHORTEST_TOKENS
    while rung * SMALLEST_STEP < main[0]:
        below.append(rung)
        rung *= 2
    return (*below, *main)
