"""Which request a trial sends next: lengths, blocks of two pairs, and when the time is up.

Two pairs of one length make a block, in which the arms take turns as ABBA or BAAB, drawn by lot: a
machine that grows steadily slower favours neither arm. The workload's own length gives the verdict.
Shorter ones show whether a change pays in long prompts only: they get every fourth block where
there is time for many pairs, every second one once the wait is settled, all of them once everything
is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from twospeed.fits.ladder import MARGIN_TOKENS, longest_prompt
from twospeed.fits.paired import MOST_PAIRS
from twospeed.fits.plan import DECODE_TARGET_S, LEAST_OUTPUT_TOKENS, TIGHT_OUTPUT_TOKENS
from twospeed.fits.rates import rates_of, spent_s
from twospeed.records.request_record import Probe, RequestRecord, Step
from twospeed.records.run import Workload

WARMUP_PROMPT_TOKENS = 64
WARMUP_OUTPUT_TOKENS = 16
RENEWING_PROMPT_TOKENS = 512
"""llama.cpp's usual micro-batch: whatever a longer prompt touches, this one has touched."""
WANTED_PAIRS = 12
"""A prompt of which fewer pairs would fit the time is halved, ..."""
SHORTEST_TOKENS = 64
HALVINGS = 4
"""... so many times at most."""
COLD_FACTOR = 1.5
"""A short warm-up request shows a rate that longer ones better by about so much."""
SHORT_SHARE = 4
LONG_TOKENS = 2000
"""From this length on, half of it is measured too once there is time."""
ENOUGH_SHORT_PAIRS = 10
MANY_PAIRS = 40
"""From so many pairs within the time on, shorter prompts need not wait for the verdict."""

HowSettled = Literal["nothing", "wait", "all"]


class TrialPlan:
    """The lengths and the order of one trial.

    Args:
        workload: request shape that the answer is for.
        n_ctx: context of the smaller arm in tokens; None when unknown.
        budget_s: seconds to spend.
        seed: of the lots.

    Attributes:
        main_tokens: prompt length that gives the verdict.
        output_tokens: answer length of every probe.
    """

    def __init__(
        self, workload: Workload, *, n_ctx: int | None, budget_s: float, seed: int
    ) -> None:
        self.workload = workload
        self.budget_s = budget_s
        self.main_tokens = longest_prompt(workload.prompt_tokens, n_ctx)
        self.output_tokens = min(workload.output_tokens, LEAST_OUTPUT_TOKENS)
        self._random = random.Random(seed)  # noqa: S311 (lots, not secrets)
        self._room_tokens = (
            workload.output_tokens if n_ctx is None else n_ctx - self.main_tokens - MARGIN_TOKENS
        )
        self._block_first = 0

    def small_warmup(self) -> Probe:
        """The first request to either arm: loads the model and gives first rates."""
        prompt = min(WARMUP_PROMPT_TOKENS, self.main_tokens)
        return Probe(step="warmup", prompt_tokens=prompt, output_tokens=WARMUP_OUTPUT_TOKENS)

    def full_warmup(self) -> Probe:
        """The second: as long as the ones that count."""
        return self._probe("warmup", self.main_tokens)

    def renewing_warmup(self) -> Probe:
        """What a server gets that was started anew: a batch of the prompt, hardly an answer."""
        prompt = min(RENEWING_PROMPT_TOKENS, self.main_tokens)
        return Probe(step="warmup", prompt_tokens=prompt, output_tokens=WARMUP_OUTPUT_TOKENS)

    def choose_lengths(self, small: Sequence[RequestRecord]) -> None:
        """Set both lengths by the small warm-ups of both arms."""
        rates = rates_of(small, round_trip_s=None, ignore_timings=False)
        step_s = rates.rough_decode_per_token_s
        if step_s:
            wanted = max(round(DECODE_TARGET_S / step_s), LEAST_OUTPUT_TOKENS)
            most = min(self.workload.output_tokens, self._room_tokens)
            self.output_tokens = max(min(wanted, most), TIGHT_OUTPUT_TOKENS)
        token_s = (rates.rough_prefill_per_token_s or 0.0) / COLD_FACTOR
        answer_s = self.output_tokens * (step_s or 0.0)
        self._halve_until_it_fits(lambda: 2.0 * (self.main_tokens * token_s + answer_s))

    def shorten(self, full: Sequence[RequestRecord]) -> bool:
        """Halve the prompt where the full warm-ups of both arms took too long.

        Returns:
            Whether it was changed.
        """
        tokens, cost_s = self.main_tokens, sum(map(spent_s, full))
        output_s = self.output_tokens * sum(
            rates_of([one], round_trip_s=None, ignore_timings=False).rough_decode_per_token_s or 0.0
            for one in full
        )
        if WANTED_PAIRS * cost_s > self.budget_s and self.output_tokens > TIGHT_OUTPUT_TOKENS:
            spared_s = output_s * (1.0 - TIGHT_OUTPUT_TOKENS / self.output_tokens)
            cost_s, output_s = cost_s - spared_s, output_s - spared_s
            self.output_tokens = TIGHT_OUTPUT_TOKENS
        prompt_s = max(cost_s - output_s, 0.0)
        self._halve_until_it_fits(lambda: output_s + prompt_s * self.main_tokens / tokens)
        return self.main_tokens != tokens

    @property
    def other_tokens(self) -> tuple[int, ...]:
        """The shorter lengths, the more telling one first."""
        lengths = [self.main_tokens // SHORT_SHARE]
        if self.main_tokens >= LONG_TOKENS:
            lengths.append(self.main_tokens // 2)
        return tuple(length for length in lengths if length >= SHORTEST_TOKENS)

    def next_probe(
        self, done: Mapping[int, int], left_s: float, cost_s: Mapping[int, float], how: HowSettled
    ) -> Probe | None:
        """The request of the next pair; None when nothing is left that fits the time.

        Args:
            done: pairs so far, by prompt length.
            left_s: seconds that may still be spent.
            cost_s: seconds of a pair, by prompt length, as far as seen.
            how: what needs no more pairs of the main length.
        """
        pair_s = cost_s.get(self.main_tokens)
        many = pair_s is not None and left_s + sum(done.values()) * pair_s > MANY_PAIRS * pair_s
        short_every = {"nothing": 4 if many else 0, "wait": 2, "all": 1}[how]
        tokens = self._next_tokens(done, short_every)
        if tokens is None or cost_s.get(tokens, cost_s.get(self.main_tokens, 0.0)) > left_s:
            return None
        return self._probe("curve", tokens)

    def first_arm(self, pair_in_length: int) -> int:
        """Which arm goes first: by lot in the first pair of a block, the other one in its second.

        Args:
            pair_in_length: how many pairs of this length there are already.
        """
        if pair_in_length % 2 == 0:
            self._block_first = self._random.randrange(2)
            return self._block_first
        return 1 - self._block_first

    def _next_tokens(self, done: Mapping[int, int], short_every: int) -> int | None:
        open_block = [tokens for tokens, count in done.items() if count % 2]
        if open_block:
            return open_block[0]
        short = [n for n in self.other_tokens if done.get(n, 0) < ENOUGH_SHORT_PAIRS]
        blocks = sum(done.values()) // 2
        if short and short_every and blocks % short_every == short_every - 1:
            return short[0]
        wanted = short_every != 1 and done.get(self.main_tokens, 0) < MOST_PAIRS
        return self.main_tokens if wanted else None

    def _probe(self, step: Step, tokens: int) -> Probe:
        return Probe(step=step, prompt_tokens=tokens, output_tokens=self.output_tokens)

    def _halve_until_it_fits(self, pair_s: Callable[[], float]) -> None:
        for _ in range(HALVINGS):
            half = self.main_tokens // 2
            if WANTED_PAIRS * pair_s() <= self.budget_s or half < SHORTEST_TOKENS:
                return
            self.main_tokens = half
