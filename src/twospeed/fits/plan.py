"""What to measure next, and when the answer is settled: the experiment without its hands.

The plan holds no clock and sends nothing. Asked with the records so far, it names the next probe:

1. a warm-up (64 tokens in, 16 out), which loads the model and gives first rates;
2. rounds over a ladder of prompt lengths, in round one the shortest first (it corrects the rates of
   a cold warm-up), otherwise shuffled: interleaved, so that drift of the machine does not pass for
   an effect of length;
3. right after the first prompt of middle length the same prompt again, to see whether it is reused.

It ends when the answer is settled, or when the next probe would not fit the budget.

Settled, after two rounds: prefill seconds of the workload and decode seconds per token at
mid-answer are known to ± 5 % each and neither interval holds its goal. An interval that lies a
factor of 2 away from its goal may be ± 10 % wide, since the judgement cannot turn; one that still
holds its goal at ± 2 % is as settled as it gets.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal, NamedTuple

from twospeed.fits.hidden_reasoning import hides_reasoning
from twospeed.fits.interval import Interval
from twospeed.fits.ladder import MOST_OUTPUT_TOKENS, MOST_RUNGS, ladder, longest_prompt
from twospeed.fits.rates import Rates, rates_of, spent_s
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.records.run import Blind, Goals, Workload

WARMUP_PROMPT_TOKENS = 64
WARMUP_OUTPUT_TOKENS = 16
FIRST_OUTPUT_TOKENS = 24
LEAST_OUTPUT_TOKENS = 16
TIGHT_OUTPUT_TOKENS = 10
"""Where every second counts: nine decode steps, one more than a timing needs."""
HIDDEN_OUTPUT_TOKENS = 256
"""For a model that spent a whole answer on reasoning that it does not show."""
DECODE_TARGET_S = 0.8
"""Decode time that one probe aims at: long against its stamps, short against the budget."""
FEWEST_ROUNDS = 2
MOST_ROUNDS = 4
ROUND_SHARE = 0.8
"""A round may take this share of the budget; longer prompts are left to the curve."""
OVERRUN = 1.5
"""As long as no curve can be fitted, the budget may be exceeded by this factor."""
SEED = 20_261_130
MORE_TIME = "a larger --budget"

WhyStopped = Literal["settled", "budget", "errors", "requests", "context"]
"""settled: see above. budget: the next probe would not fit. errors: two failures in a row, or no
length is answered. requests: as many as allowed were sent. context: it is too small to measure in.
"""


class Announcement(NamedTuple):
    """What the experiment may cost at most."""

    requests: int
    tokens: int
    """Prompts and answers together."""
    seconds: float


class Plan:
    """The experiment of one diagnosis.

    Args:
        workload: request shape that the answer is for.
        goals: from where on a number counts as slow.
        n_ctx: context of one slot in tokens, None when unknown.
        budget_s: time to spend, in seconds.
        max_requests: most requests to send, warm-up and failures included.
        round_trip_s: of a trivial request, for timings by our own clock.
        ignore_timings: leave the server's clocks unused.

    Attributes:
        rungs: prompt lengths that may be measured, ascending.
        why_stopped: None while there is something to measure.
        skipped: what was left out and why, and what would show it.
    """

    def __init__(
        self,
        workload: Workload,
        goals: Goals | None = None,
        *,
        n_ctx: int | None = None,
        budget_s: float = 40.0,
        max_requests: int = 2 + MOST_ROUNDS * MOST_RUNGS,
        round_trip_s: float | None = None,
        ignore_timings: bool = False,
    ) -> None:
        self.workload = workload
        self.goals = goals or Goals()
        self.n_ctx = n_ctx
        self.budget_s = budget_s
        self.max_requests = max_requests
        self.round_trip_s = round_trip_s
        self.ignore_timings = ignore_timings
        self.rungs = ladder(longest_prompt(workload.prompt_tokens, n_ctx))
        self.why_stopped: WhyStopped | None = None
        self.skipped: list[Blind] = []
        top = self.rungs[-1] if self.rungs else 0
        if top < workload.prompt_tokens:
            self._skip(
                f"prompts above {top} tokens: the context of {n_ctx} tokens does not hold the "
                f"workload's {workload.prompt_tokens}",
                needs="a larger context",
            )

    def announce(self) -> Announcement:
        """Most requests, tokens and seconds that will be spent, before anything is sent."""
        if not self.rungs:
            return Announcement(0, 0, 0.0)
        lengths = sorted(self.rungs * MOST_ROUNDS, reverse=True)[: self.max_requests]
        prompts = WARMUP_PROMPT_TOKENS + sum(lengths) + self.rungs[-1]
        return Announcement(
            self.max_requests, prompts + self._output_allowance(), OVERRUN * self.budget_s
        )

    def next_probe(self, records: Sequence[RequestRecord], elapsed_s: float) -> Probe | None:
        """The request to measure next; None when the experiment is over (see `why_stopped`).

        Args:
            records: every request of this experiment so far, failed ones included, in order.
            elapsed_s: since the experiment began, in seconds. Model loads that the server tells of
                do not count against the budget; one that it hides does.
        """
        elapsed_s -= sum(map(self._told_load_s, records))
        self.why_stopped = self._must_stop(records)
        if self.why_stopped:
            probe = None
        elif not any(record.step == "warmup" and record.error is None for record in records):
            probe = Probe(
                step="warmup",
                prompt_tokens=min(WARMUP_PROMPT_TOKENS, self.rungs[-1]),
                output_tokens=WARMUP_OUTPUT_TOKENS,
            )
        else:
            probe = self._probe_after_warmup(records, elapsed_s)
        if probe is None:
            self._say_what_is_extrapolated(records)
        return probe

    def settled(self, records: Sequence[RequestRecord]) -> bool:
        """Whether more measuring would change neither numbers nor judgements (see the module)."""
        rates = self._rates(records)
        return self._is_settled(records, rates, self._window(records, rates))

    def cost_s(self, records: Sequence[RequestRecord], probe: Probe) -> float:
        """Seconds that a probe is expected to take, judged by the records so far."""
        return self._rates(records).cost_s(probe.prompt_tokens, probe.output_tokens)

    def _probe_after_warmup(
        self, records: Sequence[RequestRecord], elapsed_s: float
    ) -> Probe | None:
        rates = self._rates(records)
        window = self._window(records, rates)
        if (reuse := self._reuse_probe(records, elapsed_s, rates, window)) is not None:
            return reuse
        if self._is_settled(records, rates, window):
            self.why_stopped = "settled"
            return None
        return self._curve_probe(records, elapsed_s, rates, window)

    def _rates(self, records: Sequence[RequestRecord]) -> Rates:
        return rates_of(records, round_trip_s=self.round_trip_s, ignore_timings=self.ignore_timings)

    def _must_stop(self, records: Sequence[RequestRecord]) -> WhyStopped | None:
        if not self.rungs:
            return "context"
        if len(records) >= 2 and all(record.error for record in records[-2:]):
            return "errors"
        return "requests" if len(records) >= self.max_requests else None

    def _is_settled(
        self, records: Sequence[RequestRecord], rates: Rates, window: Sequence[int]
    ) -> bool:
        rounds = min((_sent(records, rung, failed=False) for rung in window), default=0)
        if rounds < FEWEST_ROUNDS or rates.prefill is None or rates.decode is None:
            return False
        prompt = min(self.workload.prompt_tokens, self._answered_rungs(records)[-1])
        cached = min(self.workload.cached_prompt_tokens, prompt)
        wait = rates.prefill.seconds(prompt, cached)
        depth = prompt + self.workload.output_tokens / 2
        step = rates.decode.per_token(min(depth, self.n_ctx or depth))
        return _is_known(wait, self.goals.wait_s) and _is_known(step, 1 / self.goals.stream_tps)

    def _window(self, records: Sequence[RequestRecord], rates: Rates) -> tuple[int, ...]:
        """The three to five rungs of a round: the highest ones that a round has time for."""
        rungs = self._answered_rungs(records)
        warmups = sum(
            spent_s(record) - self._told_load_s(record)
            for record in records
            if record.step == "warmup"
        )
        share_s = ROUND_SHARE * max(self.budget_s - warmups, 0.0)
        for top in range(len(rungs), 2, -1):
            for size in range(min(MOST_RUNGS, top), 2, -1):
                window = rungs[top - size : top]
                if sum(self._cost_s(records, rates, rung) for rung in window) <= share_s:
                    return window
        pair = [rung for rung in rungs if rung == rungs[0] or rung >= 2 * rungs[0]]
        return tuple(pair[:2])

    def _told_load_s(self, record: RequestRecord) -> float:
        told = None if self.ignore_timings else record.server
        # Not more than the request itself took: the budget must not depend on a server's word.
        return min(told.load_s or 0.0, spent_s(record)) if told else 0.0

    def _answered_rungs(self, records: Sequence[RequestRecord]) -> tuple[int, ...]:
        """The ladder without lengths that the server refuses or twice left unanswered."""
        refused = [
            record.probe.prompt_tokens
            for record in records
            if record.probe and record.error and record.error.http_status in (400, 413, 422)
            if record.step == "curve"
        ]
        limit = min(refused, default=self.rungs[-1] + 1)
        kept = tuple(
            rung
            for rung in self.rungs
            if rung < limit
            if _sent(records, rung, failed=True) < 2 or _sent(records, rung, failed=False)
        )
        for rung in set(self.rungs) - set(kept):
            self._skip(
                f"prompts of {rung} tokens: the server does not answer them",
                needs="a larger context, or a look into the server's log",
            )
        return kept

    def _reuse_probe(
        self,
        records: Sequence[RequestRecord],
        elapsed_s: float,
        rates: Rates,
        window: Sequence[int],
    ) -> Probe | None:
        last = records[-1]
        if last.step != "curve" or last.error or last.probe is None or len(window) < 3:
            return None
        if any(record.step == "reuse" for record in records):
            return None
        prompt = last.probe.prompt_tokens
        if prompt != window[len(window) // 2]:
            return None
        output = self._output_tokens(records, rates, prompt)
        if elapsed_s + rates.cost_s(prompt, output) > self.budget_s:
            self._skip("whether a processed prompt is reused", needs=MORE_TIME)
            return None
        return Probe(step="reuse", prompt_tokens=prompt, output_tokens=output, repeats=last.number)

    def _curve_probe(
        self,
        records: Sequence[RequestRecord],
        elapsed_s: float,
        rates: Rates,
        window: Sequence[int],
    ) -> Probe | None:
        """The next rung of this round that there is time for."""
        sent = {rung: _sent(records, rung) for rung in window}
        number = min(sent.values(), default=MOST_ROUNDS)
        if number >= MOST_ROUNDS:
            self.why_stopped = "requests" if window else "errors"
            return None
        limit_s = self.budget_s if rates.prefill else OVERRUN * self.budget_s
        tight = len(window) < 3
        for rung in _order(window, number):
            output = self._output_tokens(records, rates, rung, tight=tight)
            if sent[rung] == number and elapsed_s + rates.cost_s(rung, output) <= limit_s:
                return Probe(step="curve", prompt_tokens=rung, output_tokens=output)
        self.why_stopped = "budget"
        return None

    def _cost_s(self, records: Sequence[RequestRecord], rates: Rates, rung: int) -> float:
        return rates.cost_s(rung, self._output_tokens(records, rates, rung))

    def _output_tokens(
        self, records: Sequence[RequestRecord], rates: Rates, rung: int, *, tight: bool = False
    ) -> int:
        step_s = rates.per_output_token_s(rung)
        if hides_reasoning(records, MOST_OUTPUT_TOKENS):
            wanted = HIDDEN_OUTPUT_TOKENS
        elif tight:
            wanted = TIGHT_OUTPUT_TOKENS
        elif not step_s:
            wanted = FIRST_OUTPUT_TOKENS
        else:
            wanted = round(DECODE_TARGET_S / step_s)
            wanted = min(max(wanted, LEAST_OUTPUT_TOKENS), MOST_OUTPUT_TOKENS)
        asked = sum(record.probe.output_tokens for record in records if record.probe)
        room = self._output_allowance() - asked
        if self.n_ctx is not None:
            room = min(room, (self.n_ctx - rung) // 2)
        return max(min(wanted, room), TIGHT_OUTPUT_TOKENS)

    def _output_allowance(self) -> int:
        return self.max_requests * MOST_OUTPUT_TOKENS

    def _say_what_is_extrapolated(self, records: Sequence[RequestRecord]) -> None:
        measured = [rung for rung in self.rungs if _sent(records, rung, failed=False)]
        if not measured and self.why_stopped == "budget":
            self._skip(
                "both curves: the first request took the whole budget",
                needs=f"the same again if the model was being loaded, else {MORE_TIME}",
            )
        wanted = min(self.workload.prompt_tokens, max(self.rungs, default=0))
        if measured and measured[-1] < wanted:
            self._skip(
                f"prompts above {measured[-1]} tokens: the workload of "
                f"{self.workload.prompt_tokens} is extrapolated",
                needs=MORE_TIME if self.why_stopped == "budget" else "requests that do not fail",
            )

    def _skip(self, what: str, *, needs: str) -> None:
        blind = Blind(what=what, needs=needs)
        if blind not in self.skipped:
            self.skipped.append(blind)


def _sent(records: Sequence[RequestRecord], rung: int, *, failed: bool | None = None) -> int:
    """How many unique prompts of this length were sent; only failed or only answered ones."""
    return sum(
        record.step == "curve"
        and record.probe is not None
        and record.probe.prompt_tokens == rung
        and (failed is None or (record.error is not None) == failed)
        for record in records
    )


def _order(window: Sequence[int], number: int) -> list[int]:
    """The rungs of a round in the order of their sending, the same in each experiment."""
    order = list(window)
    random.Random(SEED + number).shuffle(order)  # noqa: S311 (not a secret)
    return sorted(order, key=window[0].__ne__) if number == 0 else order


def _is_known(interval: Interval, goal: float) -> bool:
    half_width = interval.width_frac / 2
    if interval.holds(goal):
        return half_width <= 0.02
    is_far = interval.low > 2 * goal or interval.high < goal / 2
    return half_width <= (0.10 if is_far else 0.05)
