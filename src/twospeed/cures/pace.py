"""The seconds of one request as numbers that a change can act on.

Every number is an array: the likely value first, then one value for each resampled curve, so that
whatever is computed from them carries the uncertainty of the fit. A phase that was not measured is
NaN throughout: what is computed from it stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from twospeed.findings.observed import Observed
from twospeed.findings.phase_times import decode_steps
from twospeed.fits.curve import BEYOND_FRAC_PER_DOUBLING, RESAMPLES, Floats, interval_of
from twospeed.fits.interval import Interval

SHARE_BENT = Interval(0.0, 0.1, 0.4)
"""Part of a prefill that grows with the square of the prompt, where no curve was measured."""
SHARE_FIXED = Interval(0.0, 0.05, 0.2)
"""Part of it that does not grow with the prompt at all."""
SHARE_OF_DEPTH = Interval(0.0, 0.1, 0.4)
"""Part of a decode step that grows with depth, where one depth was measured."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pace:
    """One request: its tokens, and what each of them costs in seconds."""

    prompt_tokens: Floats
    cached_tokens: Floats
    reasoning_steps: Floats
    answer_steps: Floats
    load_s: Floats
    queue_s: Floats
    network_s: Floats
    held_s: Floats
    """What no part of the wait explains."""
    overhead_s: Floats
    per_token_s: Floats
    per_token2_s: Floats
    step_s: Floats
    """One decode step at depth 0."""
    depth_s: Floats
    """What each token of depth adds to a step."""

    @property
    def before_s(self) -> Floats:
        """Seconds before prefill begins, and those that nothing explains."""
        return self.load_s + self.queue_s + self.network_s + self.held_s

    @property
    def prefill_s(self) -> Floats:
        """Seconds of prefill of the uncached part of the prompt."""
        new = np.maximum(self.prompt_tokens - self.cached_tokens, 0.0)
        looked_back = new**2 + 2.0 * self.cached_tokens * new
        return self.overhead_s + self.per_token_s * new + self.per_token2_s * looked_back

    @property
    def reasoning_s(self) -> Floats:
        """Seconds of the hidden decode steps before the answer."""
        return self._steps_s(self.prompt_tokens, self.reasoning_steps)

    @property
    def answer_s(self) -> Floats:
        """Seconds of the decode steps of the answer."""
        return self._steps_s(self.prompt_tokens + self.reasoning_steps, self.answer_steps)

    @property
    def mid_answer_step_s(self) -> Floats:
        """Seconds of a decode step in the middle of the output."""
        output = self.reasoning_steps + self.answer_steps + 1.0
        return self.step_s + self.depth_s * (self.prompt_tokens + output / 2.0)

    def _steps_s(self, from_depth: Floats, steps: Floats) -> Floats:
        middle = from_depth + np.maximum(steps - 1.0, 0.0) / 2.0
        return steps * (self.step_s + self.depth_s * middle)


Factor = float | Floats
Change = Callable[[Pace], Pace]
"""What becomes of the seconds of a request once something is changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Seconds that a change saves; a loss is negative, None where its phase was not measured."""

    wait_s: Interval | None
    answer_s: Interval | None
    total_s: Interval | None


def pace_of(observed: Observed) -> Pace:
    """The workload's request at the measured pace."""
    work, budget = observed.run.workload, observed.budget
    steps, share = decode_steps(work), observed.reasoning.share or 0.0
    overhead, linear, bent = _prefill(observed)
    step, depth = _decode(observed)
    return Pace(
        prompt_tokens=constant(work.prompt_tokens),
        cached_tokens=constant(min(work.cached_prompt_tokens, work.prompt_tokens)),
        reasoning_steps=constant(steps * share),
        answer_steps=constant(steps * (1.0 - share)),
        load_s=constant(budget.load_s or 0.0),
        queue_s=constant(budget.queue_s or 0.0),
        network_s=constant(budget.network_s or 0.0),
        held_s=constant(max(budget.unexplained_s or 0.0, 0.0)),
        overhead_s=overhead,
        per_token_s=linear,
        per_token2_s=bent,
        step_s=step,
        depth_s=depth,
    )


def saved_between(observed: Observed, now: Pace, then: Pace) -> Saved:
    """Seconds that lie between two paces of one run."""
    wait = _known_sum(
        now.before_s - then.before_s,
        now.prefill_s - then.prefill_s,
        now.reasoning_s - then.reasoning_s,
    )
    answer = now.answer_s - then.answer_s
    beyond = stretch(observed, then)
    return Saved(
        wait_s=interval(wait, beyond),
        answer_s=interval(answer, beyond),
        total_s=interval(_known_sum(wait, answer), beyond),
    )


def interval(values: Floats, beyond: float = 1.0) -> Interval | None:
    """The 90 % interval of an array with the likely value first; None where it is unknown.

    Args:
        values: see the module.
        beyond: how many times the measured range it lies away; the interval widens with it.
    """
    if not np.isfinite(values).all():
        return None
    found = interval_of(float(values[0]), values[1:])
    wider = 1.0 + BEYOND_FRAC_PER_DOUBLING * max(float(np.log2(beyond)), 0.0)
    # Outwards from 0 on both sides: what is certain to save stays a saving.
    low = found.low / wider if found.low > 0.0 else found.low * wider
    high = found.high / wider if found.high < 0.0 else found.high * wider
    return Interval(low, found.likely, high)


def stretch(observed: Observed, pace: Pace) -> float:
    """How many times the measured range the request now and after the change lies away."""
    fit, decode = observed.prefill, observed.decode
    longest = max(float(pace.prompt_tokens[0]), observed.run.workload.prompt_tokens)
    deepest = longest + float(pace.reasoning_steps[0] + pace.answer_steps[0])
    beyond = [1.0]
    if fit is not None and fit.longest_tokens > 0:
        beyond.append(longest / fit.longest_tokens)
    if decode is not None and decode.per_depth_token_s:
        beyond.append(deepest / max(decode.deepest_tokens, 1.0))
    return max(beyond)


def slowed(
    pace: Pace,
    *,
    linear: Factor = 1.0,
    bent: Factor = 1.0,
    step: Factor = 1.0,
    depth: Factor = 1.0,
) -> Pace:
    """The pace with parts of its cost multiplied; below 1 is faster.

    Args:
        pace: the pace before.
        linear: prefill of a token, whatever comes before it.
        bent: the attention of prefill, which grows with what comes before.
        step: a decode step at depth 0.
        depth: what depth adds to it.
    """
    return replace(
        pace,
        per_token_s=pace.per_token_s * linear,
        per_token2_s=pace.per_token2_s * bent,
        step_s=pace.step_s * step,
        depth_s=pace.depth_s * depth,
    )


def phases_slowed(pace: Pace, *, prefill: Factor, decode: Factor) -> Pace:
    """The pace with the cost of both phases multiplied, whatever it consists of."""
    return slowed(pace, linear=prefill, bent=prefill, step=decode, depth=decode)


def constant(value: float) -> Floats:
    """A number that is known exactly."""
    return np.full(RESAMPLES + 1, float(value))


def chance(range_of: Interval, name: str) -> Floats:
    """An unknown factor: its likely value, then values spread over its 90 % range.

    Args:
        range_of: the range; nothing is drawn outside it.
        name: factors of different names vary independently.
    """
    ranks = (np.random.default_rng(crc32(name.encode())).permutation(RESAMPLES) + 0.5) / RESAMPLES
    ends = (range_of.low, range_of.likely, range_of.high)
    return np.concatenate(([range_of.likely], np.interp(ranks, (0.05, 0.5, 0.95), ends)))


def _known_sum(*parts: Floats) -> Floats:
    """The sum of the parts that are known; NaN where none is."""
    known = [part for part in parts if np.isfinite(part).all()]
    return np.sum(known, axis=0) if known else constant(np.nan)


def _prefill(observed: Observed) -> tuple[Floats, Floats, Floats]:
    fit, seconds = observed.prefill, observed.prefill_s
    if fit is not None:
        likely = (fit.overhead_s, fit.per_token_s, fit.per_token2_s)
        overhead, linear, bent = (
            _column(value, fit.draws, column) for column, value in enumerate(likely)
        )
        return overhead, linear, bent
    work = observed.run.workload
    cached = min(work.cached_prompt_tokens, work.prompt_tokens)
    new = work.prompt_tokens - cached
    if seconds is None or new <= 0:
        unknown = constant(np.nan)
        return unknown, unknown, unknown
    total = chance(seconds, "prefill without a curve")
    fixed = chance(SHARE_FIXED, "fixed share of prefill")
    bent_share = chance(SHARE_BENT, "bent share of prefill")
    return (
        total * fixed,
        total * (1.0 - fixed - bent_share) / new,
        total * bent_share / (new * (new + 2 * cached)),
    )


def _decode(observed: Observed) -> tuple[Floats, Floats]:
    fit, seconds, steps = observed.decode, observed.decode_s, decode_steps(observed.run.workload)
    if fit is not None and fit.per_depth_token_s is not None:
        return _column(fit.per_token_s, fit.draws, 0), _column(fit.per_depth_token_s, fit.draws, 1)
    if seconds is None or not steps:
        return constant(np.nan), constant(np.nan)
    if fit is not None:
        whole = _column(fit.per_token_s, fit.draws, 0)
    else:
        whole = chance(seconds.scaled(1.0 / steps), "decode without a curve")
    share = chance(SHARE_OF_DEPTH, "share of depth")
    return whole * (1.0 - share), whole * share / max(observed.depth_tokens, 1.0)


def _column(likely: float, draws: Floats, column: int) -> Floats:
    if draws.size == 0:
        return constant(likely)
    return np.concatenate(([likely], draws[:, column]))
