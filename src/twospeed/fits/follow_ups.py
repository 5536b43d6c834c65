"""What to ask once the curves are known: the user's own fields, reuse of prompts, company.

All cost more than they tell about the workload itself, so they get what the curves left of the
budget. The length of their prompts is the longest measured one for which everything fits; where
nothing fits the dearest questions fall away first, and are named.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from twospeed.fits.rates import Rates, rates_of
from twospeed.records.request_record import Change, Probe, RequestRecord, Step
from twospeed.records.run import Blind

CURVE_SHARE = 0.8
"""Share of the budget that the curves may take."""
FIELDS_CURVE_SHARE = 0.6
"""The same where the user asks what his fields cost."""
OUTPUT_TOKENS = 16
TOGETHER_OUTPUT_TOKENS = 32
SHORTEST_TOKENS = 200
"""Shorter prompts are mostly template: reuse of them says little about real ones."""
SHORTEST_PREFILL_S = 0.1
"""Shorter prefills cannot be told from reused ones by time alone."""
CHANGES: tuple[Change, ...] = (
    "appended",
    "end_edited",
    "middle_edited",
    "other",
    "returned",
    "start_edited",
)
"""In the order of their sending: each leaves the server able to answer the next."""
LEAST_NEEDED: tuple[Change, ...] = ("start_edited", "middle_edited", "end_edited")
"""Left out one after the other where there is no time for all."""
COMPANY = (2, 4)
FIELD_STEPS: tuple[Step, ...] = ("bare", "curve", "curve", "bare")
"""Without the user's fields and with them, so that a machine's drift tells nothing."""
_QUESTION: dict[Change, str] = {
    "start_edited": "whether anything is reused after an edit at the start of a prompt",
    "middle_edited": "what an edit in the middle of a prompt costs",
    "end_edited": "what an edit at the end of a prompt costs",
}


class FollowUps:
    """The questions of one diagnosis after its curves.

    Args:
        budget_s: time for the whole experiment, curves included, in seconds.
        company: whether requests may be sent beside each other.
        fields: whether the user adds fields to each request.
        output_tokens: of the workload, for a model that never came to its answer.
        round_trip_s: of a trivial request.
        ignore_timings: leave the server's clocks unused.

    Attributes:
        skipped: what was left out and why, and what would show it.
    """

    def __init__(
        self,
        *,
        budget_s: float,
        company: bool,
        fields: bool = False,
        output_tokens: int = OUTPUT_TOKENS,
        round_trip_s: float | None = None,
        ignore_timings: bool = False,
    ) -> None:
        self._budget_s = budget_s
        self._company = company
        self._answer_tokens: int | None = output_tokens
        self._round_trip_s = round_trip_s
        self._ignore_timings = ignore_timings
        self._base: int | None = None
        self._prompt_tokens: int | None = None
        self._changes: list[Change] = []
        self._together = list(COMPANY) if company else []
        self._field_steps = list(FIELD_STEPS) if fields else []
        self.skipped: list[Blind] = []

    def next_probes(
        self, records: Sequence[RequestRecord], elapsed_s: float
    ) -> tuple[Probe, ...] | None:
        """What to send next: one request, or several at once; None when nothing is left.

        Args:
            records: every request so far, in order.
            elapsed_s: since the experiment began, in seconds.
        """
        if not records or records[-1].error is not None:
            return None
        if self._field_steps:
            return self._with_and_without(records, elapsed_s)
        if self._prompt_tokens is None:
            return self._whole_answer(records, elapsed_s) or self._begin(records, elapsed_s)
        if self._base is None:
            self._base = records[-1].number
        if self._changes:
            return (self._changed(self._changes.pop(0)),)
        return self._beside(records, elapsed_s)

    def _with_and_without(
        self, records: Sequence[RequestRecord], elapsed_s: float
    ) -> tuple[Probe, ...] | None:
        """The shortest request of the curves again, without the user's fields or with them."""
        probes = [record.probe for record in records if record.step == "curve" and record.probe]
        least = min(probes, key=lambda probe: probe.prompt_tokens, default=None)
        left = len(self._field_steps)
        cost_s = (
            self._rates(records).cost_s(least.prompt_tokens, least.output_tokens) if least else 0.0
        )
        if least is None or elapsed_s + left * cost_s > self._budget_s:
            self._field_steps = []
            self._skip("what the fields of --request cost")
            return self.next_probes(records, elapsed_s)
        return (replace(least, step=self._field_steps.pop(0), repeats=None, change=None),)

    def _whole_answer(
        self, records: Sequence[RequestRecord], elapsed_s: float
    ) -> tuple[Probe, ...] | None:
        """One output as long as the workload's, where all so far ended while still reasoning."""
        output, self._answer_tokens = self._answer_tokens, None
        curve = [record for record in records if record.step == "curve" and record.probe]
        kinds = {arrival.kind for record in curve for arrival in record.arrivals}
        if output is None or kinds != {"reasoning"}:
            return None
        length = min(record.probe.prompt_tokens for record in curve if record.probe)
        if elapsed_s + self._rates(records).cost_s(length, output) > self._budget_s:
            return None
        return (Probe(step="curve", prompt_tokens=length, output_tokens=output),)

    def _begin(
        self, records: Sequence[RequestRecord], elapsed_s: float
    ) -> tuple[Probe, ...] | None:
        """The prompt that all changes start from, which is one more point of the curve."""
        left_s = self._budget_s - elapsed_s
        for dropped in range(len(LEAST_NEEDED) + 1):
            changes = [one for one in CHANGES if one not in LEAST_NEEDED[:dropped]]
            length = self._longest(records, left_s / (len(changes) + 1))
            if length is not None:
                for change in LEAST_NEEDED[:dropped]:
                    self._skip(_QUESTION[change])
                self._prompt_tokens, self._changes = length, changes
                return (Probe(step="curve", prompt_tokens=length, output_tokens=OUTPUT_TOKENS),)
        self._skip("how edits, and other conversations, change what is reused")
        return None

    def _longest(self, records: Sequence[RequestRecord], most_s: float) -> int | None:
        """The longest measured length of which one cold request takes no longer than that."""
        rates = self._rates(records)
        lengths = {r.probe.prompt_tokens for r in records if r.step == "curve" and r.probe}
        fitting = [
            length
            for length in lengths
            if rates.cost_s(length, OUTPUT_TOKENS) <= most_s
            and length >= SHORTEST_TOKENS
            and rates.prefill_s(length) >= SHORTEST_PREFILL_S
        ]
        return max(fitting, default=None)

    def _changed(self, change: Change) -> Probe:
        return Probe(
            step="reuse",
            prompt_tokens=self._prompt_tokens or 0,
            output_tokens=OUTPUT_TOKENS,
            repeats=self._base,
            change=change,
        )

    def _beside(
        self, records: Sequence[RequestRecord], elapsed_s: float
    ) -> tuple[Probe, ...] | None:
        if not self._together or self._prompt_tokens is None:
            return None
        streams = self._together.pop(0)
        one_s = self._rates(records).cost_s(self._prompt_tokens, TOGETHER_OUTPUT_TOKENS)
        if elapsed_s + streams * one_s > self._budget_s:
            self._skip(f"what {streams} requests at once cost each other")
            return None
        probe = Probe(
            step="together",
            prompt_tokens=self._prompt_tokens,
            output_tokens=TOGETHER_OUTPUT_TOKENS,
        )
        return (probe,) * streams

    def _rates(self, records: Sequence[RequestRecord]) -> Rates:
        return rates_of(
            records, round_trip_s=self._round_trip_s, ignore_timings=self._ignore_timings
        )

    def _skip(self, what: str) -> None:
        self.skipped.append(Blind(what=what, needs="a larger --budget"))
