"""The paired trial: both arms in turn, the same request, until the answer is settled.

It holds no socket: what it needs of the world is a `measure` and a clock. Every pair that was
answered stays, so that a trial that was stopped can be judged by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

from twospeed.cures.pair import (
    Clock,
    Measure,
    Pair,
    Reading,
    Sample,
    clock_for,
    log_ratios,
)
from twospeed.cures.trial_plan import HowSettled, TrialPlan
from twospeed.fits.paired import (
    FEWEST_PAIRS,
    LOOKS,
    PHASES,
    Comparison,
    Phase,
    compare_pairs,
    error_of,
    settled,
)
from twospeed.records.request_record import Probe, RequestRecord

TrialStop = Literal["settled", "budget", "errors", "interrupted"]
"""settled: more pairs would not change the answer. budget: the next pair would not fit. errors: two
pairs in a row were not answered. interrupted: it never came to an end of its own."""
FULL_WARMUPS = 2
Renew = Callable[[Probe, int], bool]
"""Starts both arms anew, the given one first, and warms them up; whether it did."""
LOADING_SHARE = 0.05
"""Small warm-ups that take more of the budget have waited for a model: off the clock, and again."""


class Trial:
    """One experiment on two arms.

    Args:
        measure: sends a probe to an arm.
        plan: what to send.
        clock: seconds that count against the budget.
        same_runtime: both arms are served by the same software, whose clock can then be used.
        round_trips_s: of a trivial request, in either arm.
        per_prompt_token: see `Reading`.
        renew: called before each pair but the first. Two servers with the same settings, started
            apart, differ for as long as they run, which no number of pairs between those two can
            see; with new ones in each pair it is scatter like any other.

    Attributes:
        pairs: every pair that was answered.
        renewals: pairs behind the first whose arms were started anew for them.
        warmups: the requests before them.
        why_stopped: "interrupted" until it ends by itself.
        pair_s: seconds of one pair at each length.
    """

    def __init__(
        self,
        measure: Measure,
        plan: TrialPlan,
        clock: Callable[[], float],
        *,
        same_runtime: bool = True,
        round_trips_s: tuple[float | None, float | None] = (None, None),
        per_prompt_token: bool = False,
        renew: Renew | None = None,
    ) -> None:
        self.plan = plan
        self.pairs: list[Pair] = []
        self.warmups: list[Sample] = []
        self.failed: list[RequestRecord] = []
        self.why_stopped: TrialStop = "interrupted"
        self.looks_made = 0
        self.renewals = 0
        self.settled_with: dict[Phase, Comparison] | None = None
        self._measure = measure
        self._clock = clock
        self._began_s = clock()
        self._same_runtime = same_runtime
        self._round_trips_s = round_trips_s
        self._per_prompt_token = per_prompt_token
        self._renew = renew
        self._prompts = 0
        self._wait_settled = False
        self._costs_s: dict[int, list[float]] = {}

    def run(self) -> None:
        """Measure until the plan ends or an error does; an interruption leaves what is there."""
        if not self._warm_up():
            self.why_stopped = "errors"
            return
        failures = 0
        while (probe := self._next_probe()) is not None:
            failures = 0 if self._take_pair(probe) else failures + 1
            if failures >= 2:
                self.why_stopped = "errors"
                return
            self._look()
        self.why_stopped = "settled" if self.settled_with is not None else "budget"

    def reading(self) -> Reading:
        """How the records are read: one clock for everything, chosen by the first pairs."""
        first = self.pairs[:FEWEST_PAIRS]
        clock: Clock = clock_for(first, same_runtime=self._same_runtime)
        return Reading(
            clock=clock,
            round_trips_s=self._round_trips_s,
            per_prompt_token=self._per_prompt_token,
        )

    def main_pairs(self, *, disturbed: bool | None = False) -> list[Pair]:
        """Pairs of the length that gives the verdict: undisturbed, disturbed, or (None) all."""
        return [
            pair
            for pair in self.pairs
            if pair.prompt_tokens == self.plan.main_tokens
            if disturbed is None or pair.disturbed == disturbed
        ]

    @property
    def pair_s(self) -> dict[int, float]:
        """Seconds of one pair at each length, as far as seen."""
        return {tokens: median(seconds) for tokens, seconds in self._costs_s.items()}

    @property
    def elapsed_s(self) -> float:
        """Seconds that the trial has taken."""
        return self._clock() - self._began_s

    def _warm_up(self) -> bool:
        small = self._both(self.plan.small_warmup(), 0)
        if small is not None and self.elapsed_s > LOADING_SHARE * self.plan.budget_s:
            self._began_s = self._clock()
            small = self._both(self.plan.small_warmup(), 0)
        if small is None:
            return False
        self.plan.choose_lengths([sample.record for sample in small])
        for _ in range(FULL_WARMUPS):
            full = self._both(self.plan.full_warmup(), 0)
            if full is None:
                return False
            if not self.plan.shorten([sample.record for sample in full]):
                break
        return True

    def _both(self, probe: Probe, first: int) -> tuple[Sample, Sample] | None:
        """A probe in both arms; None when either failed."""
        self._prompts += 1
        found: dict[int, Sample] = {}
        for arm in (first, 1 - first):
            sample = self._measure(arm, probe, self._prompts)
            if probe.step == "warmup":
                self.warmups.append(sample)
            if sample.record.error is not None:
                self.failed.append(sample.record)
                return None
            found[arm] = sample
        return found[0], found[1]

    def _next_probe(self) -> Probe | None:
        done = Counter(pair.prompt_tokens for pair in self.pairs)
        left_s = self.plan.budget_s - self.elapsed_s
        how: HowSettled = (
            "all" if self.settled_with else "wait" if self._wait_settled else "nothing"
        )
        return self.plan.next_probe(done, left_s, self.pair_s, how)

    def _take_pair(self, probe: Probe) -> bool:
        count = sum(pair.prompt_tokens == probe.prompt_tokens for pair in self.pairs)
        first = self.plan.first_arm(count)
        renewed = False
        if self._renew is not None and self.pairs:
            renewed = self._renew(self.plan.renewing_warmup(), first)
        began_s = self._clock()
        samples = self._both(probe, first)
        if samples is None:
            return False
        self.renewals += renewed
        self._costs_s.setdefault(probe.prompt_tokens, []).append(self._clock() - began_s)
        self.pairs.append(
            Pair(
                number=len(self.pairs) + 1,
                prompt_tokens=probe.prompt_tokens,
                first_sent=first,
                samples=samples,
            )
        )
        return True

    def _look(self) -> None:
        """Look at the numbers after so many pairs as were fixed beforehand, and only then."""
        clean = self.main_pairs()
        due = self.looks_made < len(LOOKS) and len(clean) >= LOOKS[self.looks_made]
        if self.settled_with is not None or not due:
            return
        found = self.compare(clean, error_of(self.looks_made, at_end=False))
        self.looks_made += 1
        self._wait_settled = settled(found["prefill"])
        if all(settled(one) or one.why == "not_measured" for one in found.values()):
            self.settled_with = found

    def compare(self, pairs: Sequence[Pair], error: float) -> dict[Phase, Comparison]:
        """What pairs of one length show in each phase."""
        reading, workload = self.reading(), self.plan.workload
        return {
            phase: compare_pairs(log_ratios(pairs, phase, reading, workload), error)
            for phase in PHASES
        }
