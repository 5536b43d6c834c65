"""Here or elsewhere: for which requests the local machine is faster than a remote one, and dearer.

here:   the fitted curves.  there:  ttft + ttft_per_1k · n / 1000 + (m - 1) / tps
for n tokens in and m out; a remote prompt is taken to be read anew each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import numpy as np
from msgspec import Struct

from twospeed.cures.pace import Pace, constant, interval, pace_of, stretch
from twospeed.findings.observed import Observed
from twospeed.fits.curve import Floats
from twospeed.fits.interval import Interval

PROMPTS = (500, 2000, 8000, 32_000)
OUTPUTS = (100, 300, 1000)
"""Shapes of the table: question, chat turn, document, code base; note, answer, essay."""
LONGEST_TOKENS = 131_072
"""Lines are looked for up to here, or to the context of the model."""
SCAN = 96
BISECTIONS = 40
TOKENS_PER_PRICE = 1e6
JOULES_PER_KWH = 3.6e6

Faster = Literal["here", "there", "too close to tell", "unknown"]


class Remote(Struct, frozen=True, kw_only=True):
    """Another server, as its user knows it; prices in one currency, None where unknown."""

    ttft_s: float
    """Time to first token of a short prompt."""
    tps: float
    """Tokens per second of the stream."""
    ttft_per_1k_s: float = 0.0
    """What each thousand prompt tokens add."""
    price_in: float | None = None
    """Of a million tokens in."""
    price_out: float | None = None
    """Of a million tokens out."""
    local_watts: float | None = None
    """What this machine draws beyond idling while it works."""
    price_kwh: float | None = None


class Shape(Struct, frozen=True, kw_only=True):
    """One kind of request, here and there."""

    prompt_tokens: int
    output_tokens: int
    here_s: Interval | None
    there_s: float
    here_price: float | None
    there_price: float | None
    faster: Faster


class Line(Struct, frozen=True, kw_only=True):
    """Where both are equally fast."""

    at_tokens: int | None
    """None where one of them is faster throughout."""
    below: Faster
    """Which one is faster below, or throughout."""


class Elsewhere(Struct, frozen=True, kw_only=True):
    """The local machine beside a remote one."""

    remote: Remote
    request: Shape
    """The workload's request."""
    prompt_line: Line
    """Prompts, at the workload's output."""
    output_line: Line
    """Outputs, at the workload's prompt."""
    shapes: tuple[Shape, ...]


def compare(observed: Observed, remote: Remote) -> Elsewhere:
    """The workload's request and others, here and there, and where the line runs."""
    work = observed.run.workload
    prompt, output = work.prompt_tokens, max(work.output_tokens, 1)
    most = observed.run.facts.n_ctx or LONGEST_TOKENS

    def ahead(prompt_tokens: float, output_tokens: float) -> float:
        """Seconds by which the remote one is faster."""
        here = float(here_s(observed, prompt_tokens, output_tokens)[0])
        return here - there_s(remote, prompt_tokens, output_tokens)

    return Elsewhere(
        remote=remote,
        request=_shape(observed, remote, prompt, output),
        prompt_line=_line(lambda tokens: ahead(tokens, output), most),
        output_line=_line(lambda tokens: ahead(prompt, tokens), most),
        shapes=tuple(_shape(observed, remote, n, m) for n in PROMPTS for m in OUTPUTS if n <= most),
    )


def request_of(pace: Pace, prompt_tokens: float, output_tokens: float) -> Pace:
    """Another request at the same pace; its prompt is cached in the same part, if at all."""
    cached = pace.cached_tokens * (prompt_tokens / np.maximum(pace.prompt_tokens, 1.0))
    steps = pace.reasoning_steps + pace.answer_steps
    reasoning = pace.reasoning_steps / np.maximum(steps, 1.0) * (output_tokens - 1.0)
    return replace(
        pace,
        prompt_tokens=constant(prompt_tokens),
        cached_tokens=cached,
        reasoning_steps=reasoning,
        answer_steps=output_tokens - 1.0 - reasoning,
    )


def here_s(observed: Observed, prompt_tokens: float, output_tokens: float) -> Floats:
    """Seconds of a request on the measured machine, likely value first."""
    pace = request_of(pace_of(observed), prompt_tokens, output_tokens)
    return pace.before_s + pace.prefill_s + pace.reasoning_s + pace.answer_s


def there_s(remote: Remote, prompt_tokens: float, output_tokens: float) -> float:
    """Seconds of a request on the remote one."""
    wait_s = remote.ttft_s + remote.ttft_per_1k_s * prompt_tokens / 1000.0
    return wait_s + max(output_tokens - 1.0, 0.0) / remote.tps


def _shape(observed: Observed, remote: Remote, prompt: int, output: int) -> Shape:
    seconds = here_s(observed, prompt, output)
    beyond = stretch(observed, request_of(pace_of(observed), prompt, output))
    here, there = interval(seconds, beyond), there_s(remote, prompt, output)
    return Shape(
        prompt_tokens=prompt,
        output_tokens=output,
        here_s=here,
        there_s=there,
        here_price=_price_here(remote, here),
        there_price=_price_there(remote, prompt, output),
        faster=_faster(here, there),
    )


def _faster(here: Interval | None, there: float) -> Faster:
    if here is None:
        return "unknown"
    if here.high < there:
        return "here"
    return "there" if here.low > there else "too close to tell"


def _price_here(remote: Remote, here: Interval | None) -> float | None:
    if here is None or remote.local_watts is None or remote.price_kwh is None:
        return None
    return here.likely * remote.local_watts / JOULES_PER_KWH * remote.price_kwh


def _price_there(remote: Remote, prompt: int, output: int) -> float | None:
    if remote.price_in is None or remote.price_out is None:
        return None
    return (prompt * remote.price_in + output * remote.price_out) / TOKENS_PER_PRICE


def _line(ahead: Callable[[float], float], most: float) -> Line:
    """The first length, from the short end, at which the other one becomes faster."""
    lengths = np.geomspace(1.0, max(most, 2.0), SCAN)
    first = ahead(float(lengths[0]))
    if not np.isfinite(first):
        return Line(at_tokens=None, below="unknown")
    below: Faster = "there" if first > 0.0 else "here"
    for low, high in pairwise(lengths):
        if (ahead(float(high)) > 0.0) != (first > 0.0):
            return Line(at_tokens=round(_crossing(ahead, float(low), float(high))), below=below)
    return Line(at_tokens=None, below=below)


def _crossing(ahead: Callable[[float], float], low: float, high: float) -> float:
    sign = ahead(low) > 0.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if (ahead(middle) > 0.0) == sign else (low, middle)
    return high
