"""Two machines of known speed on a virtual clock, measured by the real trial."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from twospeed.cures.pair import Sample
from twospeed.cures.trial import Trial
from twospeed.cures.trial_plan import TrialPlan
from twospeed.cures.trial_result import TrialResult, result_of
from twospeed.records.request_record import (
    ClientTimes,
    Probe,
    RequestError,
    RequestRecord,
    ServerTimes,
    TokenCounts,
)
from twospeed.records.run import Conditions, Workload

WORKLOAD = Workload(prompt_tokens=2000, output_tokens=300)


@dataclass
class TwoMachines:
    """Every default is a pair of equals with requests of about 1.4 s."""

    seed: int = 0
    prefill_factor: float = 1.0
    """Of the second arm's seconds."""
    decode_factor: float = 1.0
    short_prefill_factor: float | None = None
    """The same for prompts below 1,000 tokens."""
    jitter: float = 0.03
    drift: float = 0.0
    """Share by which both become slower over 60 s."""
    prefill_s: float = 0.0004
    decode_s: float = 0.01
    output_share: float = 1.0
    """Of the second arm's answers."""
    hog_from_s: float | None = None
    hog_factors: tuple[float, float] = (1.3, 1.3)
    start_sd: float = 0.0
    """Scatter of the log seconds of a phase from one start of an arm to another."""
    renews: bool = False
    """Both arms are started anew for each pair."""
    load_s: float = 0.0
    """Before the first request, told by nobody."""
    wild_number: int | None = None
    stop_after: int | None = None
    fail_from: int | None = None
    now_s: float = 0.0
    sent: list[tuple[int, Probe, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.start_anew()

    def start_anew(self) -> None:
        drawn = np.random.default_rng((self.seed, len(self.sent))).standard_normal((2, 2))
        self.started = np.exp(self.start_sd * drawn)

    def renew(self, warmup: Probe, first: int) -> bool:
        assert warmup.step == "warmup"
        assert first in (0, 1)
        if self.renews:
            self.start_anew()
        return self.renews

    def clock(self) -> float:
        return self.now_s

    def measure(self, arm: int, probe: Probe, prompt: int) -> Sample:
        self.sent.append((arm, probe, prompt))
        number = len(self.sent)
        if self.stop_after is not None and number > self.stop_after:
            raise KeyboardInterrupt
        if self.fail_from is not None and number >= self.fail_from:
            error = RequestError(kind="http", message="no")
            return Sample(record=RequestRecord(number=number, step=probe.step, error=error))
        hogged = self.hog_from_s is not None and self.now_s >= self.hog_from_s
        slow = 1.0 + self.drift * self.now_s / 60.0
        slow *= self.hog_factors[arm] if hogged else 1.0
        slow *= 8.0 if number == self.wild_number else 1.0
        factor = self.prefill_factor
        if self.short_prefill_factor is not None and probe.prompt_tokens < 1000:
            factor = self.short_prefill_factor
        noise = [float(x) for x in np.exp(self.jitter * self.random.standard_normal(2))]
        output = round(probe.output_tokens * (self.output_share if arm else 1.0))
        of_start = [float(x) for x in self.started[arm]]
        prefill_s = self.prefill_s * probe.prompt_tokens * slow * noise[0] * of_start[0]
        decode_s = self.decode_s * (output - 1) * slow * noise[1] * of_start[1]
        if arm:
            prefill_s, decode_s = prefill_s * factor, decode_s * self.decode_factor
        load_s = self.load_s if number == 1 else 0.0
        self.now_s += load_s + prefill_s + decode_s + 0.002
        record = RequestRecord(
            number=number,
            step=probe.step,
            probe=probe,
            counts=TokenCounts(
                prompt_tokens=probe.prompt_tokens, cached_prompt_tokens=0, output_tokens=output
            ),
            client=ClientTimes(end_s=load_s + prefill_s + decode_s + 0.002),
            server=ServerTimes(
                told_by="timings",
                prefill_s=prefill_s,
                prefill_tokens=probe.prompt_tokens,
                decode_s=decode_s,
                decode_steps=output - 1,
            ),
        )
        load = 0.5 if hogged else 0.02
        return Sample(record=record, conditions=Conditions(host_load=load, trusted=not hogged))

    def trial(self, *, budget_s: float = 60.0, workload: Workload = WORKLOAD) -> Trial:
        plan = TrialPlan(workload, n_ctx=None, budget_s=budget_s, seed=self.seed)
        return Trial(self.measure, plan, self.clock, renew=self.renew)

    def result(self, **options) -> TrialResult:
        trial = self.trial(**options)
        try:
            trial.run()
        except KeyboardInterrupt:
            assert self.stop_after is not None
        return result_of(trial)
